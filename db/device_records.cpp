#include "db/device_records.h"

#include <algorithm>

#include "compiler_core/target.h"
#include "db/task_view.h"

namespace tuner {
namespace {

constexpr int kMostTrialsOfConfig = 64;

// `a` was measured later, under other conditions, by somebody who also measured the config of `b` again: what
// `b` says is over, as within one task after a revalidation.
Result<bool> supersedes(const Store& store, const JobRow::Task& task, const TunedConfig& a,
                        const TunedConfig& b) {
  if (a.finished_at_us <= b.finished_at_us || same_environment(a.environment, b.environment)) return false;
  JobRow::Task of_a = task;
  of_a.target = a.target;
  ASSIGN_OR_RETURN(
      const std::vector<TrialWithRecord> again,
      store.trials_of_config(of_a, b.template_name, b.template_version, b.config, kMostTrialsOfConfig));
  return std::ranges::any_of(again, [&](const TrialWithRecord& t) {
    return same_environment(t.record->environment, a.environment);
  });
}

Result<bool> goes_before(const Store& store, const JobRow::Task& task, const TunedConfig& a,
                         const TunedConfig& b) {
  ASSIGN_OR_RETURN(const bool newer, supersedes(store, task, a, b));
  if (newer) return true;
  ASSIGN_OR_RETURN(const bool older, supersedes(store, task, b, a));
  if (older) return false;
  return a.certified != b.certified ? a.certified : a.time_ns < b.time_ns;
}

}  // namespace

CountsFor counts_for(const Target& asked, std::string_view there) {
  if (there == asked.name()) return CountsFor::kAll;
  if (there == asked.family->any_device(asked)) return CountsFor::kClass;
  const Result<Target> named = parse_target(there);
  const bool is_one_of =
      named && named->family == asked.family && asked.family->any_device(*named) == asked.name();
  return is_one_of ? CountsFor::kAll : CountsFor::kNothing;
}

Result<std::vector<RecordsElsewhere>> records_elsewhere(const Store& store, const JobRow::Task& task,
                                                        bool has_own) {
  std::vector<RecordsElsewhere> found;
  const Result<Target> target = parse_target(task.target);
  if (!target) return found;  // a name of another program: it stands for itself
  const std::string any = target->family->any_device(*target);
  if (!any.empty()) {
    found.push_back({task, target->device});
    found.back().task.target = any;
    return found;
  }
  if (has_own) return found;
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks, store.tasks_of(task.workload_key, task.constants));
  for (const JobRow::Task& other : tasks)
    if (other.target != task.target && counts_for(*target, other.target) == CountsFor::kAll) {
      found.push_back({task, {}});
      found.back().task.target = other.target;
    }
  return found;
}

Result<TunedConfig> best_on_device(const Store& store, const JobRow::Task& task,
                                   const std::vector<std::string>& templates, bool counted) {
  Result<TunedConfig> best = store.best(task.workload_key, task.target, templates, counted, task.constants);
  if (!best && best.status().code() != StatusCode::kNotFound) return best;
  ASSIGN_OR_RETURN(const std::vector<RecordsElsewhere> elsewhere,
                   records_elsewhere(store, task, best.is_ok()));
  for (const RecordsElsewhere& records : elsewhere) {
    Result<TunedConfig> found = store.best_of_class(records.task, *parse_target(task.target)->family,
                                                    records.device_class, templates, counted);
    if (!found && found.status().code() == StatusCode::kNotFound) continue;
    if (!found) return found;
    bool first = !best;
    if (best) {
      ASSIGN_OR_RETURN(first, goes_before(store, task, *found, *best));
    }
    if (first) best = std::move(found);
  }
  return best;
}

bool is_of_class(const TargetFamily& family, std::string_view device_class, std::string_view hardware) {
  return device_class.empty() || family.device_class(hardware) == device_class;
}

}  // namespace tuner
