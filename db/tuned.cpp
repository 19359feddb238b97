// Tuned configs: what the records of a task say is the fastest.
#include "db/sql.h"
#include "db/sqlite_store.h"
#include "db/stats.h"
#include "db/superseded.h"

namespace tuner::db {

namespace {

// The newest race of the task, without its samples.
Result<std::optional<StoredRace>> newest_race(Connection& c, int64_t task_id) {
  ASSIGN_OR_RETURN(const SqlRow row, c.one(kNewestRaceOfTask, {task_id}));
  if (row.empty()) return std::optional<StoredRace>();
  ASSIGN_OR_RETURN(StoredRace stored, race_without_samples(row));
  return std::optional(std::move(stored));
}

// The latest race of the task that the trial took part in, without its samples. It is mostly `newest`: a
// race's row is long, it is read again only where that is another.
Result<std::optional<RaceRow>> race_of(Connection& c, int64_t task_id, int64_t trial,
                                       std::optional<StoredRace>& newest) {
  if (!newest) return std::optional<RaceRow>();
  for (const RaceFinalist& f : newest->race.finalists)
    if (f.trial_id == trial_id_text(trial)) return std::optional(std::move(newest->race));
  ASSIGN_OR_RETURN(const SqlRow row, c.one(kLatestRaceOfTrial, {task_id, str("\"trial\":", trial, "}")}));
  if (row.empty()) return std::optional<RaceRow>();
  ASSIGN_OR_RETURN(StoredRace stored, race_without_samples(row));
  return std::optional(std::move(stored.race));
}

}  // namespace

Result<TunedConfig> SqliteStore::best(std::string_view workload_key, std::string_view target,
                                      const std::vector<std::string>& templates, bool counted) const {
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
    ASSIGN_OR_RETURN(StoredRecord best, record_from_row(best_row));
    ASSIGN_OR_RETURN(StoredTrial trial, find_trial_row(c, best.trial_seq));
    ASSIGN_OR_RETURN(std::optional<StoredRace> newest, newest_race(c, task.task_id));
    if (newest) {
      ASSIGN_OR_RETURN(std::optional<StoredRecord> newer, superseding_record(c, best, trial, *newest, names));
      if (newer) {
        best = *std::move(newer);
        ASSIGN_OR_RETURN(trial, find_trial_row(c, best.trial_seq));
      }
    }
    ASSIGN_OR_RETURN(std::optional<RaceRow> race, race_of(c, task.task_id, trial.trial.seq, newest));
    if (race && race->winner_trial_id != trial.trial.id) {
      ASSIGN_OR_RETURN(const int64_t winner_seq, trial_seq(race->winner_trial_id));
      ASSIGN_OR_RETURN(StoredTrial winner, find_trial_row(c, winner_seq));
      ASSIGN_OR_RETURN(const SqlRow record_row, c.one(kTerminalRecord, {winner_seq}));
      if (record_row.empty())
        return failed("trial ", winner.trial.id, " won a race and has no record: the file is damaged");
      if (names.empty() || names.find("," + winner.trial.template_name + ",") != std::string::npos) {
        ASSIGN_OR_RETURN(best, record_from_row(record_row));
        trial = std::move(winner);
      } else {
        race.reset();  // among the templates asked for, the trials' own medians are all there is
      }
    }
    const MeasureRecord& r = best.record;
    TunedConfig out{.workload_key = task.task.workload_key,
                    .target = task.task.target,
                    .template_name = trial.trial.template_name,
                    .config = trial.trial.config,
                    .template_version = trial.trial.template_version,
                    .time_ns = record_time_ns(r),
                    .peak_gflops = r.peak_gflops,
                    .trial_id = trial.trial.id,
                    .artifact_digest = r.artifact_digest,
                    .environment = r.environment,
                    .finished_at_us = r.finished_at_us};
    if (race) {
      out.time_ns = race->time_ns;
      out.time_low_ns = race->time_low_ns;
      out.time_high_ns = race->time_high_ns;
      out.race_id = race->id;
      out.ratio = race->ratio;
      out.ratio_low = race->ratio_low;
      out.ratio_high = race->ratio_high;
      out.regret_bound = race->regret_bound;
      out.finalists = static_cast<int>(race->finalists.size());
      out.tied = static_cast<int>(race->tie_set.size());
      out.environment = race->environment;
      out.finished_at_us = race->finished_at_us;
    } else {
      const Interval interval = median_interval(r.run_ns);
      out.time_low_ns = interval.low;
      out.time_high_ns = interval.high;
    }
    if (!counted) return out;
    ASSIGN_OR_RETURN(const std::vector<SqlRow> outcomes, c.all(kOutcomesOfTask, {task.task_id}));
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
