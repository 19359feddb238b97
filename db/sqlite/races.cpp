// Races: the finalists of a task measured against each other.
#include <algorithm>
#include <cmath>

#include "db/plausible.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

Status check_race(const RaceRow& r) {
  const auto bad = [&](std::string_view field, double value, std::string_view expected) {
    return invalid_argument("race of job ", r.job_id, ", task ", r.task_index, ": ", field, " is ", value,
                            ", expected ", expected);
  };
  const std::pair<std::string_view, double> numbers[] = {
      {"time_low_ns", r.time_low_ns}, {"time_high_ns", r.time_high_ns}, {"ratio", r.ratio},
      {"ratio_low", r.ratio_low},     {"ratio_high", r.ratio_high},     {"regret_bound", r.regret_bound}};
  for (const auto& [field, value] : numbers)
    if (!std::isfinite(value) || value < 0) return bad(field, value, "a finite number >= 0");
  // Ends of an interval may lie anywhere: two processes that differ much tell next to nothing of a third.
  const std::pair<std::string_view, double> times[] = {
      {"time_ns", r.time_ns}, {"default_time_ns", r.default_time_ns}, {"other_time_ns", r.other_time_ns}};
  for (const auto& [field, value] : times)
    if (!is_plausible_or_none(value)) return bad(field, value, str(kPlausibleCall, ", or 0"));
  if (r.finalists.empty())
    return invalid_argument("race of job ", r.job_id, ", task ", r.task_index, ": no finalists");
  for (const RaceFinalist& f : r.finalists) {
    if (f.samples_ns.size() != f.sentinel_ns.size() || f.samples_ns.size() != f.process.size())
      return invalid_argument("race of job ", r.job_id, ": trial ", f.trial_id, " has ", f.samples_ns.size(),
                              " samples, ", f.sentinel_ns.size(), " sentinel times and ", f.process.size(),
                              " process numbers, expected as many of each");
    for (const std::vector<double>* values : {&f.samples_ns, &f.sentinel_ns, &f.memory_ns, &f.other_ns})
      for (const double value : *values)
        if (!is_plausible_call(value)) return bad(str("a time of trial ", f.trial_id), value, kPlausibleCall);
  }
  const auto races = [&](const std::string& id) {
    return std::ranges::any_of(r.finalists, [&](const RaceFinalist& f) { return f.trial_id == id; });
  };
  if (!races(r.winner_trial_id) || !std::ranges::all_of(r.tie_set, races))
    return invalid_argument("race of job ", r.job_id, ", task ", r.task_index, ": the winner ",
                            r.winner_trial_id, " or one of its ties is no finalist");
  return Status::ok();
}

Status SqliteStore::insert_race(Connection& c, RaceRow& race) {
  ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, race.job_id));
  ASSIGN_OR_RETURN(const int64_t winner_seq, trial_seq(race.winner_trial_id));
  ASSIGN_OR_RETURN(const StoredTrial winner, find_trial_row(c, winner_seq));
  race.id = next_seq();
  ASSIGN_OR_RETURN(const SqlRow row, to_row(StoredRace{race, job.job_seq, winner.task_id}));
  static const std::string kInsert =
      str("INSERT INTO race (", kRaceColumns, ") VALUES (", placeholders(kRaceColumns), ")");
  return c.run(kInsert, row);
}

Status SqliteStore::add_race(RaceRow& race) {
  RETURN_IF_ERROR(check_race(race));
  RaceRow added;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    added = race;
    return insert_race(c, added);
  }));
  race = std::move(added);
  return Status::ok();
}

Result<std::vector<RaceRow>> SqliteStore::races(std::string_view job_id) const {
  return read([&](Connection& c) -> Result<std::vector<RaceRow>> {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, job_id));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kRacesOfJob, {job.job_seq}));
    std::vector<RaceRow> out;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredRace stored, race_from_row(row));
      stored.race.job_id = job.job.id;
      out.push_back(std::move(stored.race));
    }
    return out;
  });
}

}  // namespace tuner::db
