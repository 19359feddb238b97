#include "tuner/revalidate/revalidation.h"

#include <algorithm>
#include <utility>

#include "compiler_core/base/clock.h"
#include "compiler_core/base/statistics.h"
#include "tuner/study/present.h"

namespace tuner {
namespace {

using std::chrono::steady_clock;
constexpr double kLeast_s = 4;  // a task is not begun with less left

steady_clock::duration duration_of(double s) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

Result<RevalidatePlan> remote_plan(const DaemonClient& client, const std::vector<JobRow::Task>& tasks) {
  RevalidatePlan plan;
  for (const JobRow::Task& task : tasks) {
    ASSIGN_OR_RETURN(const std::optional<TunedConfig> tuned, client.tuned(task));
    if (tuned)
      plan.items.push_back({task, *tuned, staleness(*tuned, present_here(Target{}))});
    else
      ++plan.untuned;
  }
  return plan;
}

Result<RevalidatePlan> local_plan(const Store& store, const std::vector<JobRow::Task>& tasks,
                                  bool current_too) {
  std::map<std::string, Present> present;  // asking a GPU costs tenths of a second
  const auto present_of = [&](const std::string& target) {
    const auto known = present.find(target);
    return known != present.end() ? known->second
                                  : present.emplace(target, present_here(target)).first->second;
  };
  const auto measurable = [](const std::string& target) {
    const Result<Target> parsed = parse_target(target);
    return parsed && is_this_machine(*parsed);
  };
  return plan_revalidation(store, tasks,
                           {.current_too = current_too, .present = present_of, .measurable = measurable});
}

Revalidation::Revalidation(const DaemonClient& client, const Store* store, RevalidationOptions options)
    : client_(client),
      store_(store),
      options_(std::move(options)),
      end_(options_.begin + duration_of(options_.budget_s)) {}

Status Revalidation::run(const RevalidatePlan& plan) {
  for (const RevalidateItem& item : plan.items) {
    const double left_s = seconds_left();
    if (left_s < usual_s() || options_.interrupted()) break;
    ProgressView view(1);
    view.say(str("task ", done_ + 1, " of ", plan.items.size(), ": ", item.task.workload_key, ", ",
                 static_cast<int64_t>(left_s), " s left"));
    const steady_clock::time_point item_begin = steady_clock::now();
    Result<RevalidateVerdict> verdict =
        measure_again(client_, item, options_.top, end_ - duration_of(kWindUp_s), options_.interrupted, view);
    view.finish();
    if (!verdict) return verdict.status();
    if (store_ != nullptr) RETURN_IF_ERROR(look_up(*store_, item, *verdict));
    if (verdict->finished) took_s_.push_back(seconds_since(item_begin));
    ++endings_[std::string(ending(item, *verdict))];
    done_ += verdict->finished ? 1 : 0;
    options_.verdict(item, *verdict);
  }
  return Status::ok();
}

double Revalidation::seconds() const { return seconds_since(options_.begin); }

bool Revalidation::succeeded() const {
  return !options_.interrupted() && !endings_.contains("failed") && done_ > 0;
}

double Revalidation::seconds_left() const {
  return std::chrono::duration<double>(end_ - steady_clock::now()).count() - kWindUp_s;
}

// What a task takes: most of the median of those that are done.
double Revalidation::usual_s() const {
  return took_s_.empty() ? kLeast_s : std::max(kLeast_s, 0.8 * median(took_s_));
}

}  // namespace tuner
