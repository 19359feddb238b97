// Races under way: decided on, leased, given back, ended.
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

Result<StoredOpenRace> find_open_race(Connection& c, std::string_view race_id) {
  ASSIGN_OR_RETURN(const SqlRow row, c.one(kOpenRaceById, {std::string(race_id)}));
  if (row.empty()) return not_found("no race \"", race_id, "\"");
  return open_race_from_row(row);
}

Status save_open_race(Connection& c, const StoredOpenRace& stored) {
  ASSIGN_OR_RETURN(const SqlRow row, to_row(stored));
  const OpenRaceRow& r = stored.race;
  return c.run(
      "UPDATE open_race SET state = ?, attempt = ?, fencing = ?, worker_id = ?, grants = ?, race_id = ?, "
      "message = ?, crc = ? WHERE open_race_id = ?",
      {std::string(trial_state_name(r.state)), int64_t{r.attempt}, r.fencing, r.worker_id,
       grants_text(r.grants), stored.race_id, stored.message, row.back(), stored.open_race_id});
}

}  // namespace

Status SqliteStore::open_race(const OpenRaceRow& race) {
  if (race.id.empty() || race.finalists.empty())
    return invalid_argument("race \"", race.id, "\": found ", race.finalists.size(),
                            " finalists, expected an id and at least one");
  return write([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, race.job_id));
    StoredOpenRace stored{.race = race, .job_seq = job.job_seq};
    stored.race.state = TrialState::kQueued;
    stored.race.attempt = 0;
    stored.race.fencing = 0;
    stored.race.worker_id.clear();
    stored.race.grants.clear();
    stored.open_race_id = next_seq();
    ASSIGN_OR_RETURN(const SqlRow row, to_row(stored));
    static const std::string kInsert =
        str("INSERT INTO open_race (", kOpenRaceColumns, ") VALUES (", placeholders(kOpenRaceColumns), ")");
    return c.run(kInsert, row);
  });
}

Result<OpenRaceRow> SqliteStore::lease_race(std::string_view race_id, std::string_view worker_id,
                                            std::string_view incarnation) {
  OpenRaceRow leased;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(StoredOpenRace stored, find_open_race(c, race_id));
    OpenRaceRow& r = stored.race;
    if (r.state != TrialState::kQueued)
      return not_found("race \"", race_id, "\" is ", trial_state_name(r.state), ", not queued any more");
    r.state = TrialState::kLeased;
    r.attempt += 1;
    r.fencing = next_seq();
    r.worker_id = worker_id;
    add_grant(r.grants, {r.attempt, std::string(worker_id), std::string(incarnation)});
    leased = r;
    return save_open_race(c, stored);
  }));
  return leased;
}

Status SqliteStore::requeue_race(std::string_view race_id, int attempt) {
  return write([&](Connection& c) -> Status {
    ASSIGN_OR_RETURN(StoredOpenRace stored, find_open_race(c, race_id));
    OpenRaceRow& r = stored.race;
    if (r.state != TrialState::kLeased || r.attempt != attempt)
      return not_found("race \"", race_id, "\" is ", trial_state_name(r.state), " at attempt ", r.attempt,
                       ", not leased at attempt ", attempt);
    r.state = TrialState::kQueued;
    return save_open_race(c, stored);
  });
}

Status SqliteStore::end_race(std::string_view race_id, RaceRow* result, std::string_view message) {
  if (result != nullptr) RETURN_IF_ERROR(check_race(*result));
  RaceRow added;
  RETURN_IF_ERROR(write([&](Connection& c) -> Status {
    if (result != nullptr) added = *result;
    ASSIGN_OR_RETURN(StoredOpenRace stored, find_open_race(c, race_id));
    if (stored.race.state == TrialState::kDone) {
      added.id = stored.race_id;
      return Status::ok();
    }
    if (result != nullptr) {
      RETURN_IF_ERROR(insert_race(c, added));
      stored.race_id = added.id;
    }
    stored.race.state = TrialState::kDone;
    stored.message = message;
    return save_open_race(c, stored);
  }));
  if (result != nullptr) *result = std::move(added);
  return Status::ok();
}

Result<std::vector<OpenRaceRow>> SqliteStore::open_races(std::string_view job_id) const {
  return read([&](Connection& c) -> Result<std::vector<OpenRaceRow>> {
    ASSIGN_OR_RETURN(const StoredJob job, find_job_row(c, job_id));
    ASSIGN_OR_RETURN(const std::vector<SqlRow> rows, c.all(kOpenRacesOfJob, {job.job_seq}));
    std::vector<OpenRaceRow> out;
    for (const SqlRow& row : rows) {
      ASSIGN_OR_RETURN(StoredOpenRace stored, open_race_from_row(row));
      stored.race.job_id = job.job.id;
      out.push_back(std::move(stored.race));
    }
    return out;
  });
}

Result<std::vector<Grant>> SqliteStore::race_grants(std::string_view race_id) const {
  return read([&](Connection& c) -> Result<std::vector<Grant>> {
    ASSIGN_OR_RETURN(const StoredOpenRace stored, find_open_race(c, race_id));
    return stored.race.grants;
  });
}

}  // namespace tuner::db
