// Tuned configs: what the records of a task say is the fastest.
#include <algorithm>

#include "db/sql.h"
#include "db/sqlite_store.h"
#include "db/stats.h"
#include "db/superseded.h"

namespace tuner::db {

namespace {

// A race that may answer, with its winner.
struct Candidate {
  StoredRace race;  // without its samples
  StoredTrial winner;
};

bool allowed(const std::string& names, const std::string& template_name) {
  return names.empty() || names.find("," + template_name + ",") != std::string::npos;
}

bool same_config(const TrialRow& a, const TrialRow& b) {
  return a.template_name == b.template_name && a.template_version == b.template_version &&
         a.config == b.config;
}

// Whether the config took part in the race: as that trial, or as one of another job.
Result<bool> took_part(Connection& c, const TrialRow& trial, const RaceRow& race) {
  for (const RaceFinalist& f : race.finalists)
    if (f.trial_id == trial.id) return true;
  for (const RaceFinalist& f : race.finalists) {
    ASSIGN_OR_RETURN(const int64_t seq, trial_seq(f.trial_id));
    ASSIGN_OR_RETURN(const StoredTrial other, find_trial_row(c, seq));
    if (same_config(other.trial, trial)) return true;
  }
  return false;
}

// The race that answers for the task: of the certified ones that no later one has decided anew, that with the
// fastest winner. Under another compiler, machine or harness a later race that is not certified takes the
// certificate of the old one away, too. Without a race that answers, `newest_uncertified` tells what became
// of the newest that was not certified.
Result<std::optional<Candidate>> deciding_race(Connection& c, int64_t task_id, const std::string& names,
                                               std::optional<StoredRace>& newest_uncertified) {
  ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kRacesOfTask, {task_id}));  // newest first
  std::vector<RaceRow> later;
  std::vector<Candidate> standing;
  for (const SqlRow& row : rows) {
    ASSIGN_OR_RETURN(StoredRace race, race_without_samples(row));
    if (!race.race.certified) {
      later.push_back(race.race);
      if (!newest_uncertified) newest_uncertified = std::move(race);
      continue;
    }
    ASSIGN_OR_RETURN(const int64_t winner_seq, trial_seq(race.race.winner_trial_id));
    ASSIGN_OR_RETURN(StoredTrial winner, find_trial_row(c, winner_seq));
    if (!allowed(names, winner.trial.template_name)) continue;
    bool decided_anew = false;
    for (const RaceRow& l : later) {
      if (decided_anew) break;
      if (!l.certified && same_environment(l.environment, race.race.environment)) continue;
      ASSIGN_OR_RETURN(decided_anew, took_part(c, winner.trial, l));
    }
    later.push_back(race.race);
    if (!decided_anew) standing.push_back({std::move(race), std::move(winner)});
  }
  const auto fastest = std::min_element(
      standing.begin(), standing.end(),
      [](const Candidate& a, const Candidate& b) { return a.race.race.time_ns < b.race.race.time_ns; });
  return fastest == standing.end() ? std::optional<Candidate>() : std::optional(std::move(*fastest));
}

}  // namespace

Result<TunedConfig> SqliteStore::best(std::string_view workload_key, std::string_view target,
                                      const std::vector<std::string>& templates, bool counted,
                                      Constants constants) const {
  std::string names;  // ",a,b,"
  for (const std::string& name : templates) names += (names.empty() ? "," : "") + name + ",";
  const JobRow::Task asked{
      .workload_key = std::string(workload_key), .target = std::string(target), .constants = constants};
  return read([&](Connection& c) -> Result<TunedConfig> {
    ASSIGN_OR_RETURN(const SqlRow task_row,
                     c.one(kTaskByKey, {std::string(workload_key), target_in_row(asked)}));
    if (task_row.empty()) return not_found("no trial of ", workload_key, " on \"", target, "\" in ", path_);
    ASSIGN_OR_RETURN(const StoredTask task, task_from_row(task_row));
    std::optional<StoredRace> uncertified;
    ASSIGN_OR_RETURN(std::optional<Candidate> decided, deciding_race(c, task.task_id, names, uncertified));
    StoredRecord best;
    StoredTrial trial;
    if (decided) {
      ASSIGN_OR_RETURN(const SqlRow row, c.one(kTerminalRecord, {decided->winner.trial.seq}));
      if (row.empty())
        return failed("trial ", decided->winner.trial.id,
                      " won a race and has no record: the file is damaged");
      ASSIGN_OR_RETURN(best, record_from_row(row));
      trial = std::move(decided->winner);
    } else {
      ASSIGN_OR_RETURN(const SqlRow row, names.empty()
                                             ? c.one(kBestRecord, {task.task_id})
                                             : c.one(kBestRecordOfTemplates, {task.task_id, names}));
      if (row.empty())
        return not_found("no trial of ", workload_key, " on \"", target,
                         "\" has been measured with a right answer yet, in ", path_);
      ASSIGN_OR_RETURN(best, record_from_row(row));
      ASSIGN_OR_RETURN(trial, find_trial_row(c, best.trial_seq));
      if (uncertified) {
        ASSIGN_OR_RETURN(std::optional<StoredRecord> newer,
                         superseding_record(c, best, trial, *uncertified, names));
        if (newer) {
          best = *std::move(newer);
          ASSIGN_OR_RETURN(trial, find_trial_row(c, best.trial_seq));
        }
      }
    }
    const MeasureRecord& r = best.record;
    TunedConfig out{.workload_key = task.task.workload_key,
                    .target = task.task.target,
                    .template_name = trial.trial.template_name,
                    .config = trial.trial.config,
                    .template_version = trial.trial.template_version,
                    .time_ns = record_time_ns(r),
                    .constants = constants,
                    .read_gbps = r.read_gbps,
                    .peak_gflops = r.peak_gflops,
                    .trial_id = trial.trial.id,
                    .artifact_digest = r.artifact_digest,
                    .environment = r.environment,
                    .finished_at_us = r.finished_at_us};
    if (decided) {
      const RaceRow& race = decided->race.race;
      out.time_ns = race.time_ns;
      out.time_low_ns = race.time_low_ns;
      out.time_high_ns = race.time_high_ns;
      out.race_id = race.id;
      out.ratio = race.ratio;
      out.ratio_low = race.ratio_low;
      out.ratio_high = race.ratio_high;
      out.regret_bound = race.regret_bound;
      out.finalists = static_cast<int>(race.finalists.size());
      out.tied = static_cast<int>(race.tie_set.size());
      out.certified = true;
      out.other_time_ns = race.other_time_ns;
      out.default_time_ns = race.default_time_ns;
      out.default_trial_id = race.default_trial_id;
      out.turns = race.turns;
      out.discarded = race.discarded;
      out.environment = race.environment;
      out.finished_at_us = race.finished_at_us;
    } else {
      const Interval interval = median_interval(r.run_ns);
      out.time_low_ns = interval.low;
      out.time_high_ns = interval.high;
      out.uncertified_why = uncertified ? uncertified->race.uncertified_why : "not raced";
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

Result<TrialWithRecord> SqliteStore::fastest_of_config(const JobRow::Task& task,
                                                       std::string_view template_name, int template_version,
                                                       std::string_view config) const {
  return read([&](Connection& c) -> Result<TrialWithRecord> {
    const Status none =
        not_found("no right trial of ", template_name, " ", config, " of ", task.workload_key, " in ", path_);
    ASSIGN_OR_RETURN(const SqlRow task_row, c.one(kTaskByKey, {task.workload_key, target_in_row(task)}));
    if (task_row.empty()) return none;
    ASSIGN_OR_RETURN(const StoredTask stored, task_from_row(task_row));
    ASSIGN_OR_RETURN(const SqlRow row,
                     c.one(kFastestOfConfig, {stored.task_id, std::string(template_name),
                                              int64_t{template_version}, std::string(config)}));
    if (row.empty()) return none;
    ASSIGN_OR_RETURN(StoredTrial trial, trial_from_row(row));
    return with_record(c, std::move(trial));
  });
}

}  // namespace tuner::db
