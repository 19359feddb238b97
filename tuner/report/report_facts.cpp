#include "tuner/report/report_facts.h"

#include <algorithm>
#include <map>

#include "tuner/report/task_facts.h"
#include "tuner/text/format.h"

namespace tuner {

using nlohmann::ordered_json;

namespace {

constexpr int kFormat = 1;

std::string most_frequent_hardware(const std::vector<TrialWithRecord>& trials) {
  std::map<std::string, int64_t> counts;
  for (const TrialWithRecord& t : trials) ++counts[t.record->environment.hardware];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

// A result of a lost device says nothing of a config; records of a second machine do not compare.
Result<JobTask> load(const JobRow& job, int index, const std::vector<TrialWithRecord>& trials,
                     const std::vector<RaceRow>& races) {
  const JobRow::Task& row = job.tasks[static_cast<size_t>(index)];
  JobTask t{.job = &job, .index = index};
  ASSIGN_OR_RETURN(t.task, task_from_keys(row.workload_key, row.target));
  t.task.algorithms = row.algorithms;
  for (const TrialWithRecord& r : trials)
    if (r.trial.task_index == index && r.record) t.trials.push_back(r);
  t.hardware = most_frequent_hardware(t.trials);
  std::erase_if(t.trials, [&](const auto& r) { return r.record->environment.hardware != t.hardware; });
  std::sort(t.trials.begin(), t.trials.end(),
            [](const auto& a, const auto& b) { return a.record_id < b.record_id; });
  for (const RaceRow& race : races)
    if (race.task_index == index) t.races.push_back(race);
  if (Result<TaskSpace> space = make_task_space(row)) t.space = *std::move(space);
  return t;
}

size_t marks_of_task(const JobTask& t, const ReportOptions& options) {
  return std::clamp(options.marks / t.job->tasks.size(), ReportOptions::kLeastMarks,
                    ReportOptions::kMostMarks);
}

Result<ordered_json> task_facts(const Store& store, const JobTask& t, const ReportOptions& options) {
  const JobRow::Task& row = t.job->tasks[static_cast<size_t>(t.index)];
  std::map<std::string, int64_t> outcomes;
  int64_t cut = 0;
  for (const TrialWithRecord& r : t.trials) {
    ++outcomes[std::string(outcome_name(r.record->outcome))];
    cut += r.record->cut ? 1 : 0;
  }
  ordered_json j{{"index", t.index},
                 {"workload", row.workload_key},
                 {"op", t.task.workload.op_name()},
                 {"target", row.target},
                 {"uses", row.uses},
                 {"algorithms", row.algorithms},
                 {"hardware", t.hardware},
                 {"flops", t.task.workload.flops()},
                 {"bytes", t.task.workload.bytes()},
                 {"memory_bound", t.task.workload.memory_bound()},
                 {"right", t.task.workload.caveat()},
                 {"trials", t.trials.size()},
                 {"cut", cut},
                 {"outcomes", outcomes},
                 {"best", best_facts(t)},
                 {"convergence", convergence_facts(t, marks_of_task(t, options))}};
  ASSIGN_OR_RETURN(j["baseline"], baseline_facts(store, t, options));
  ASSIGN_OR_RETURN(j["importance"], importance_facts(t));
  j["race"] = race_facts(t);
  j["failures"] = failure_facts(t);
  j["phases"] = phase_facts(t);
  j["stopping"] = stopping_facts(t);
  j["roofline"] = roofline_facts(t, j["best"].is_null() ? 0 : j["best"]["time_ns"].get<double>(), options);
  return j;
}

}  // namespace

Result<ordered_json> report_facts(const Store& store, const std::string& job_id,
                                  const ReportOptions& options) {
  ASSIGN_OR_RETURN(const JobRow job, store.job(job_id));
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store.trials(job_id));
  ASSIGN_OR_RETURN(const std::vector<RaceRow> races, store.races(job_id));
  ordered_json tasks = ordered_json::array();
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks.size() > 1)
      options.progress(str("task ", i + 1, " of ", job.tasks.size(), ": ", job.tasks[i].workload_key));
    Result<JobTask> task = load(job, static_cast<int>(i), trials, races);
    if (!task) return task.status().with_context(str("task ", i + 1, " of job ", job_id, ": "));
    ASSIGN_OR_RETURN(ordered_json facts, task_facts(store, *task, options));
    tasks.push_back(std::move(facts));
  }
  return ordered_json{{"format", kFormat},
                      {"job", job.id},
                      {"search", job.search},
                      {"seed", job.seed},
                      {"state", job_state_name(job.state)},
                      {"message", job.message},
                      {"trials_wanted", job.trials},
                      {"submitted", iso_utc(job.submitted_at_us)},
                      {"finished", iso_utc(job.finished_at_us)},
                      {"tasks", tasks}};
}

}  // namespace tuner
