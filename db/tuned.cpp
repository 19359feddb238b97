// Tuned configs: what the records of a task say is the fastest.
#include "db/sql.h"
#include "db/sqlite_store.h"
#include "db/stats.h"

namespace tuner::db {

Result<TunedConfig> SqliteStore::best(std::string_view workload_key, std::string_view target,
                                      const std::vector<std::string>& templates) const {
  std::string names;  // ",a,b,"
  for (const std::string& name : templates) names += (names.empty() ? "," : "") + name + ",";
  return read([&](Connection& c) -> Result<TunedConfig> {
    ASSIGN_OR_RETURN(const SqlRow task_row,
                     c.one(kTaskByKey, {std::string(workload_key), std::string(target)}));
    if (task_row.empty()) return not_found("no trial of ", workload_key, " on \"", target, "\" in ", path_);
    ASSIGN_OR_RETURN(const StoredTask task, task_from_row(task_row));
    ASSIGN_OR_RETURN(const SqlRow best_row, names.empty()
                                                ? c.one(kBestRecord, {task.task_id})
                                                : c.one(kBestRecordOfTemplates, {task.task_id, names}));
    if (best_row.empty())
      return not_found("no trial of ", workload_key, " on \"", target,
                       "\" has been measured with a right answer yet, in ", path_);
    ASSIGN_OR_RETURN(const StoredRecord best, record_from_row(best_row));
    ASSIGN_OR_RETURN(const StoredTrial trial, find_trial_row(c, best.trial_seq));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> outcomes, c.all(kOutcomesOfTask, {task.task_id}));

    const MeasureRecord& r = best.record;
    const Interval interval = median_interval(r.run_ns);
    TunedConfig out{.workload_key = task.task.workload_key,
                    .target = task.task.target,
                    .template_name = trial.trial.template_name,
                    .config = trial.trial.config,
                    .template_version = trial.trial.template_version,
                    .time_ns = record_time_ns(r),
                    .time_low_ns = interval.low,
                    .time_high_ns = interval.high,
                    .peak_gflops = r.peak_gflops,
                    .trial_id = trial.trial.id,
                    .artifact_digest = r.artifact_digest,
                    .environment = r.environment,
                    .finished_at_us = r.finished_at_us};
    for (const SqlRow& row : outcomes) {
      const auto* name = std::get_if<std::string>(&row[0]);
      const std::optional<Outcome> outcome = name != nullptr ? outcome_from_name(*name) : std::nullopt;
      if (!outcome)
        return failed("a record of ", workload_key, " has an unknown outcome: the file is damaged");
      out.outcomes.emplace_back(*outcome, std::get<int64_t>(row[1]));
      out.trials += std::get<int64_t>(row[1]);
    }
    return out;
  });
}

}  // namespace tuner::db
