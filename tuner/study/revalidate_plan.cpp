#include "tuner/study/revalidate_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "templates/schedule_template.h"

namespace tuner {

double expected_loss(const Staleness& staleness) {
  double loss = 0;
  for (const StaleCause cause : staleness.causes) {
    switch (cause) {
      case StaleCause::kTemplate:
        loss += 0.05;
        break;
      case StaleCause::kToolchain:
        loss += 0.02;
        break;
      case StaleCause::kHardware:
        loss += 0.10;
        break;
      case StaleCause::kHarness:
        loss += 0.01;
        break;
    }
  }
  return loss;
}

double RevalidateItem::loss_ns() const {
  return expected_loss(staleness) * before.time_ns * static_cast<double>(task.uses);
}

Result<RevalidatePlan> plan_revalidation(const Store& store, const std::vector<JobRow::Task>& tasks,
                                         const RevalidateWishes& wishes) {
  std::map<std::pair<std::string, std::string>, int64_t> uses;
  ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, store.jobs());
  for (const JobRow& job : jobs)
    for (const JobRow::Task& task : job.tasks) {
      int64_t& most = uses[{task.workload_key, task.target}];
      most = std::max(most, task.uses);
    }
  RevalidatePlan plan;
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (JobRow::Task task : tasks) {
    if (!seen.insert({task.workload_key, task.target, task.algorithms}).second) continue;
    Result<TunedConfig> best = store.best(task.workload_key, task.target, templates_of(task.algorithms));
    if (!best && best.status().code() != StatusCode::kNotFound) return best.status();
    if (!best) {
      ++plan.untuned;
      continue;
    }
    if (!wishes.measurable(task.target)) {
      ++plan.elsewhere;
      continue;
    }
    Staleness stale = staleness(*best, wishes.present(task.target));
    if (!stale.stale() && !wishes.current_too) {
      ++plan.current;
      continue;
    }
    task.uses = std::max(task.uses, uses[{task.workload_key, task.target}]);
    plan.items.push_back({std::move(task), *std::move(best), std::move(stale)});
  }
  std::stable_sort(plan.items.begin(), plan.items.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.staleness.stale(), a.loss_ns()) > std::tuple(b.staleness.stale(), b.loss_ns());
  });
  return plan;
}

}  // namespace tuner
