#include "tuner/study/task_records.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "compiler_core/base/statistics.h"
#include "compiler_core/target.h"
#include "db/device_records.h"
#include "templates/schedule_template.h"

namespace tuner {
namespace {

// Collects terminal records config by config.
class Collector {
 public:
  explicit Collector(TaskRecords& out) : out_(out) {}

  void add(const TrialWithRecord& t) {
    const MeasureRecord& record = *t.record;
    const AnyTemplate* current = find_template(t.trial.template_name);
    Result<Config> config = config_from_text(t.trial.config);
    if (!config || (current != nullptr && current->version() != t.trial.template_version)) {
      ++out_.outdated;
      return;
    }
    const auto [found, fresh] =
        row_of_.emplace(std::pair(t.trial.template_name, t.trial.config), out_.rows.size());
    if (fresh) {
      out_.rows.push_back({.template_name = t.trial.template_name,
                           .config = *std::move(config),
                           .outcome = record.outcome,
                           .samples_ns = {}});
    }
    TaskRecords::Row& row = out_.rows[found->second];
    // A right answer outweighs a failure, and any result a lost device, which says nothing about the config.
    if (record.outcome == Outcome::kOk || row.outcome == Outcome::kDeviceLost) row.outcome = record.outcome;
    if (record.outcome != Outcome::kOk) return;
    if (record.cut)
      row.bound_ns = std::max(row.bound_ns, record_time_ns(record));
    else
      row.samples_ns.insert(row.samples_ns.end(), record.run_ns.begin(), record.run_ns.end());
  }

 private:
  TaskRecords& out_;
  std::map<std::pair<std::string, std::string>, size_t> row_of_;
};

}  // namespace

double TaskRecords::Row::time_ns() const { return is_timed() ? median(samples_ns) : 0; }

namespace {
using Visit = std::function<bool(const TrialWithRecord&)>;

Result<TaskRecords> collect(const JobRow::Task& task, const std::string& hardware,
                            const std::function<Status(const Visit&)>& for_each) {
  TaskRecords out;
  out.task = task;
  Collector collector(out);
  std::set<std::string> machines;
  RETURN_IF_ERROR(for_each([&](const TrialWithRecord& t) {
    const std::string& machine = t.record->environment.hardware;
    if (!hardware.empty() && machine != hardware) return true;
    machines.insert(machine);
    collector.add(t);
    return true;
  }));
  if (machines.size() > 1) {
    std::string text;
    for (const std::string& machine : machines) text += str(text.empty() ? "" : ", ", '"', machine, '"');
    return invalid_argument("these records are of ", machines.size(),
                            " machines, whose times cannot be compared; choose one with --hardware: ", text);
  }
  if (!machines.empty()) out.hardware = *machines.begin();
  return out;
}
}  // namespace

Result<TaskRecords> records_of_job(const Store& store, const std::string& job_id, int task_index,
                                   const std::string& hardware) {
  ASSIGN_OR_RETURN(const JobRow job, store.job(job_id));
  const auto tasks = static_cast<int>(job.tasks.size());
  if (task_index < 0 && tasks > 1)
    return invalid_argument("job ", job_id, " has ", tasks, " tasks; choose one: --task 0 to ", tasks - 1);
  if (task_index >= tasks)
    return invalid_argument("--task: found ", task_index, ", expected 0 to ", tasks - 1,
                            ", the tasks of job ", job_id);
  const int index = std::max(task_index, 0);
  return collect(job.tasks[static_cast<size_t>(index)], hardware, [&](const Visit& visit) {
    return store.for_each_record(
        job_id, [&](const TrialWithRecord& t) { return t.trial.task_index != index || visit(t); });
  });
}

Result<TaskRecords> records_of_task(const Store& store, const JobRow::Task& task, const std::string& hardware,
                                    const std::string& device_class) {
  const Result<Target> target = parse_target(task.target);
  const auto counts = [&](const TrialWithRecord& t) {
    return device_class.empty() ||
           (target && is_of_class(*target->family, device_class, t.record->environment.hardware));
  };
  return collect(task, hardware, [&](const Visit& visit) {
    return store.for_each_record_of(task, [&](const TrialWithRecord& t) { return !counts(t) || visit(t); });
  });
}

RowIndex index_rows(const TaskRecords& records, const SearchSpace& space) {
  RowIndex index;
  for (size_t r = 0; r < records.rows.size(); ++r) {
    const TaskRecords::Row& row = records.rows[r];
    bool found = false;
    for (size_t p = 0; p < space.parts.size() && !found; ++p) {
      if (space.parts[p].template_name != row.template_name) continue;
      const Result<ConfigIndex> config = space.parts[p].space->index_of(row.config);
      if (!config) break;
      index.sorted.emplace_back(Candidate{static_cast<int>(p), *config}, static_cast<int>(r));
      found = true;
    }
    if (!found) ++index.unknown;
  }
  std::sort(index.sorted.begin(), index.sorted.end());
  return index;
}

int RowIndex::find(const Candidate& candidate) const {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), std::pair(candidate, -1));
  return at != sorted.end() && at->first == candidate ? at->second : -1;
}

}  // namespace tuner
