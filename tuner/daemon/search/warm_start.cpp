#include "tuner/daemon/search/warm_start.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "db/device_records.h"
#include "db/exchange/exchange_store.h"
#include "tuner/daemon/search/foreign_rows.h"
#include "tuner/search/known_best.h"

namespace tuner {
namespace {

constexpr size_t kMostTasks = 6;
constexpr int kMostRows = 150;        // of a task
constexpr double kOtherTarget = 1;    // distance between two processors, in doubled extents
constexpr double kOtherDevice = 0.5;  // two classes of devices of one architecture, or one and any
constexpr double kOtherWord = 0.5;    // one of type, layout, activation... differs
constexpr double kFarthest = 24;      // beyond this a task is no help

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// The target with its class of devices left open, where it names one.
std::string any_device(const std::string& name) {
  const Result<Target> target = parse_target(name);
  const std::string any = target ? target->family->any_device(*target) : std::string();
  return any.empty() ? name : any;
}

// "ic=512" into ic and 512; false when it is not of that form.
bool split_extent(std::string_view word, std::string_view& name, int64_t& value) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  name = word.substr(0, equals);
  const std::string_view digits = word.substr(equals + 1);
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && stop == digits.data() + digits.size();
}

}  // namespace

bool uses_priors(std::string_view strategy) {
  return strategy == "bayesian" || strategy.starts_with("xgb-") || strategy == kKnownBestStrategy;
}

double task_distance(const JobRow::Task& a, const JobRow::Task& b) {
  constexpr double kNothingInCommon = std::numeric_limits<double>::infinity();
  const std::vector<std::string_view> wa = words_of(a.workload_key), wb = words_of(b.workload_key);
  const std::vector<std::string_view> ta = words_of(a.target), tb = words_of(b.target);
  // The version of the key and the operator; the kind of target.
  if (wa.size() < 2 || wa.size() != wb.size() || wa[0] != wb[0] || wa[1] != wb[1]) return kNothingInCommon;
  if (ta.empty() || tb.empty() || ta[0] != tb[0]) return kNothingInCommon;
  double distance = a.target == b.target                           ? 0
                    : any_device(a.target) == any_device(b.target) ? kOtherDevice
                                                                   : kOtherTarget;
  for (size_t i = 2; i < wa.size(); ++i) {
    if (wa[i] == wb[i]) continue;
    std::string_view name_a, name_b;
    int64_t va = 0, vb = 0;
    if (split_extent(wa[i], name_a, va) && split_extent(wb[i], name_b, vb) && name_a == name_b && va > 0 &&
        vb > 0)
      distance += std::abs(std::log2(static_cast<double>(va) / static_cast<double>(vb)));
    else
      distance += kOtherWord;
  }
  return distance;
}

namespace {

// A task that others may learn from: one of ours, or of another tuner's records.
struct Donor {
  double distance;
  bool foreign;  // of two that are as near, ours
  size_t index;
  auto operator<=>(const Donor&) const = default;
};

// True for records of `donor` on that hardware that are records of `task` itself, under the name that leaves
// the device open (db/device_records.h).
bool is_of_this_device(const JobRow::Task& task, const JobRow::Task& donor, const std::string& hardware) {
  if (task.workload_key != donor.workload_key) return false;
  const Result<Target> target = parse_target(task.target);
  return target && counts_for(*target, donor.target) == CountsFor::kClass &&
         is_of_class(*target->family, target->device, hardware);
}

// One prior task for each machine that measured the donor.
Result<std::vector<PriorTask>> rows_of_ours(const Store& store, const JobRow::Task& task,
                                            const JobRow::Task& donor, const SearchSpace& space,
                                            int64_t until) {
  std::set<std::string> templates;
  for (const SearchSpace::Part& part : space.parts) templates.insert(part.template_name);
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> records, store.sample_records(donor, until, kMostRows));
  std::map<std::string, PriorTask> by_hardware;
  for (const TrialWithRecord& t : records) {
    if (!templates.contains(t.trial.template_name) || t.record->cut) continue;
    Result<Config> config = config_from_text(t.trial.config);
    if (!config) continue;
    PriorTask& prior = by_hardware[t.record->environment.hardware];
    prior.rows.push_back({t.trial.template_name, *std::move(config), t.record->outcome == Outcome::kOk,
                          record_time_ns(*t.record)});
  }
  std::vector<PriorTask> priors;
  for (auto& [hardware, prior] : by_hardware) {
    prior.source = str(donor.workload_key, " on ", donor.target, ", ", hardware);
    prior.same_task = is_of_this_device(task, donor, hardware);
    priors.push_back(std::move(prior));
  }
  return priors;
}

Result<std::vector<PriorTask>> rows_of_others(const ExchangeStore& others, const ForeignTask& task,
                                              const SearchSpace& space, int64_t until) {
  ASSIGN_OR_RETURN(const std::vector<ForeignRecord> records, others.sample_foreign(task, until, kMostRows));
  PriorTask prior;
  for (const ForeignRecord& record : records)
    if (std::optional<PriorTask::Row> row = foreign_row(record, space)) prior.rows.push_back(*std::move(row));
  if (prior.rows.empty()) return std::vector<PriorTask>();
  prior.source = str(task.task, " on ", task.target, ", ", task.format);
  return std::vector{std::move(prior)};
}

}  // namespace

Result<int64_t> last_donor_id(const Store& store) {
  ASSIGN_OR_RETURN(const int64_t ours, store.last_record_id());
  ASSIGN_OR_RETURN(const int64_t others, store.exchange().last_foreign_id());
  return std::max(ours, others);
}

Result<std::vector<PriorTask>> warm_start(const Store& store, const JobRow::Task& task,
                                          const SearchSpace& space, int64_t donor_record_id) {
  std::vector<PriorTask> priors;
  if (donor_record_id <= 0) return priors;
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> known, store.tasks());
  ASSIGN_OR_RETURN(const std::vector<ForeignTask> foreign, store.exchange().foreign_tasks());
  std::vector<Donor> nearest;
  const auto add = [&](const JobRow::Task& donor, bool is_foreign, size_t index) {
    if (const double d = task_distance(task, donor); d <= kFarthest)
      nearest.push_back({d, is_foreign, index});
  };
  for (size_t i = 0; i < known.size(); ++i) add(known[i], false, i);
  for (size_t i = 0; i < foreign.size(); ++i)
    add(task_of_foreign(foreign[i].format, foreign[i].task, foreign[i].target), true, i);
  std::sort(nearest.begin(), nearest.end());

  size_t used = 0;
  for (const Donor& donor : nearest) {
    if (used == kMostTasks) break;
    ASSIGN_OR_RETURN(std::vector<PriorTask> found,
                     donor.foreign
                         ? rows_of_others(store.exchange(), foreign[donor.index], space, donor_record_id)
                         : rows_of_ours(store, task, known[donor.index], space, donor_record_id));
    used += found.empty() ? 0 : 1;
    for (PriorTask& prior : found) {
      // What other tuners measured is no answer of ours, however near: it is not what known-best measures
      // again.
      prior.same_task = prior.same_task || (donor.distance == 0 && !donor.foreign);
      prior.weight = prior.same_task ? 1 : 1 / (1 + 0.1 * donor.distance);
      priors.push_back(std::move(prior));
    }
  }
  return priors;
}

}  // namespace tuner
