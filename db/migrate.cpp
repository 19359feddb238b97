#include "db/migrate.h"

#include <string>

#include "db/schema.h"  // generated from schema.sql

namespace tuner::db {

namespace {

// A step is never edited once released: it makes what schema.sql was at its version, whatever that became
// later.
constexpr Migration kMigrations[] = {
    // 1 -> 2: what a search had seen when it proposed, and races. New tables only: rows of version 1 stay as
    // they are.
    {1, R"SQL(
CREATE TABLE proposal (
  proposal_seq        INTEGER PRIMARY KEY,
  job_seq             INTEGER NOT NULL REFERENCES job,
  task_index          INTEGER NOT NULL,
  asked               INTEGER NOT NULL,
  count               INTEGER NOT NULL,
  first_trial_seq     INTEGER NOT NULL,
  observed_record_id  INTEGER NOT NULL,
  donor_record_id     INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
CREATE INDEX proposal_job ON proposal (job_seq, proposal_seq);
CREATE TABLE race (
  race_id           INTEGER PRIMARY KEY,
  job_seq           INTEGER NOT NULL REFERENCES job,
  task_index        INTEGER NOT NULL,
  task_id           INTEGER NOT NULL REFERENCES task,
  winner_trial_seq  INTEGER NOT NULL REFERENCES trial,
  finalists         TEXT NOT NULL,
  tie_set           TEXT NOT NULL,
  time_ns           REAL NOT NULL,
  interval_low_ns   REAL NOT NULL,
  interval_high_ns  REAL NOT NULL,
  ratio             REAL NOT NULL,
  ratio_low         REAL NOT NULL,
  ratio_high        REAL NOT NULL,
  regret_bound      REAL NOT NULL,
  options           TEXT NOT NULL,
  hardware          TEXT NOT NULL,
  toolchain         TEXT NOT NULL,
  harness_abi       INTEGER NOT NULL,
  worker_id         TEXT NOT NULL,
  host              TEXT NOT NULL,
  finished_at_us    INTEGER NOT NULL,
  crc               INTEGER NOT NULL
) STRICT;
CREATE INDEX race_job ON race (job_seq, race_id);
CREATE INDEX race_task ON race (task_id, race_id);
)SQL"},
    // 2 -> 3: what was learned from records, what came from elsewhere. New tables only.
    {2, R"SQL(
CREATE TABLE learned (
  learned_id       INTEGER PRIMARY KEY,
  kind             TEXT NOT NULL,
  op               TEXT NOT NULL,
  target           TEXT NOT NULL,
  until_record_id  INTEGER NOT NULL,
  document         TEXT NOT NULL,
  made_at_us       INTEGER NOT NULL,
  crc              INTEGER NOT NULL
) STRICT;
CREATE INDEX learned_newest ON learned (kind, op, target, learned_id);
CREATE TABLE origin (
  origin_id       INTEGER PRIMARY KEY,
  source          TEXT NOT NULL,
  format          TEXT NOT NULL,
  header          TEXT NOT NULL,
  imported_at_us  INTEGER NOT NULL,
  crc             INTEGER NOT NULL
) STRICT;
CREATE TABLE imported_job (
  job_seq    INTEGER PRIMARY KEY REFERENCES job,
  uid        TEXT NOT NULL UNIQUE,
  home_id    TEXT NOT NULL,
  origin_id  INTEGER NOT NULL REFERENCES origin,
  crc        INTEGER NOT NULL
) STRICT;
CREATE TABLE imported_trial (
  seq        INTEGER PRIMARY KEY REFERENCES trial,
  job_seq    INTEGER NOT NULL REFERENCES job,
  home_seq   INTEGER NOT NULL,
  content    INTEGER NOT NULL,
  origin_id  INTEGER NOT NULL REFERENCES origin,
  crc        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX imported_trial_home ON imported_trial (job_seq, home_seq, content);
CREATE TABLE foreign_task (
  foreign_task_id  INTEGER PRIMARY KEY,
  format           TEXT NOT NULL,
  task             TEXT NOT NULL,
  target           TEXT NOT NULL,
  crc              INTEGER NOT NULL,
  UNIQUE (format, task, target)
) STRICT;
CREATE TABLE foreign_record (
  foreign_id       INTEGER PRIMARY KEY,
  foreign_task_id  INTEGER NOT NULL REFERENCES foreign_task,
  origin_id        INTEGER NOT NULL REFERENCES origin,
  digest_high      INTEGER NOT NULL,
  digest_low       INTEGER NOT NULL,
  outcome          TEXT NOT NULL,
  time_ns          REAL NOT NULL,
  finished_at_us   INTEGER NOT NULL,
  document         TEXT NOT NULL,
  crc              INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX foreign_digest ON foreign_record (digest_high, digest_low);
CREATE INDEX foreign_rank ON foreign_record (foreign_task_id, outcome, time_ns);
)SQL"},
};

Result<int64_t> number(Connection& connection, const char* sql) {
  ASSIGN_OR_RETURN(const SqlRow row, connection.one(sql));
  return !row.empty() ? std::get<int64_t>(row[0]) : 0;
}

struct Found {
  int64_t version, application_id, tables;
};
Result<Found> look(Connection& connection) {
  ASSIGN_OR_RETURN(const int64_t version, number(connection, "PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t application_id, number(connection, "PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t tables, number(connection, "SELECT count(*) FROM sqlite_master"));
  return Found{version, application_id, tables};
}

Status refuse_foreign_or_newer(const Found& found, const SchemaPlan& plan) {
  if (found.tables > 0 && found.application_id != kApplicationId)
    return invalid_argument("is an SQLite file of another program (application_id ", found.application_id,
                            ", expected ", kApplicationId, "). Give another file with --db");
  if (found.version > plan.version)
    return invalid_argument("has schema version ", found.version, ", this program knows up to ", plan.version,
                            ": written by a newer tuner. Update this one, or give another file with --db");
  return Status::ok();
}

Status create_or_step_up(Connection& connection, const SchemaPlan& plan, const Found& found) {
  int64_t version = found.version;
  if (found.tables == 0) {
    RETURN_IF_ERROR(connection.exec(plan.create_sql));
    RETURN_IF_ERROR(connection.exec(str("PRAGMA application_id = ", kApplicationId).c_str()));
    version = plan.version;
  }
  while (version < plan.version) {
    const Migration* step = nullptr;
    for (const Migration& m : plan.migrations)
      if (m.from == version) step = &m;
    if (step == nullptr)
      return invalid_argument("has schema version ", version,
                              ", older than any this program can migrate (to ", plan.version,
                              "). Use an earlier tuner to export its records");
    RETURN_IF_ERROR(
        connection.exec(step->sql).with_context(str("migration from schema version ", version, ": ")));
    ++version;
  }
  return connection.exec(str("PRAGMA user_version = ", version).c_str());
}

}  // namespace

const SchemaPlan& current_schema() {
  static const SchemaPlan plan{kSchemaSql, kSchemaVersion, kMigrations};
  return plan;
}

Status refuse_foreign(Connection& connection, const SchemaPlan& plan) {
  ASSIGN_OR_RETURN(const Found found, look(connection));
  return refuse_foreign_or_newer(found, plan);
}

Status prepare_schema(Connection& connection, const SchemaPlan& plan) {
  // One transaction around looking and changing: killed in the middle, the file is as it was.
  RETURN_IF_ERROR(connection.exec("BEGIN IMMEDIATE"));
  const Status status = [&]() -> Status {
    ASSIGN_OR_RETURN(const Found found, look(connection));
    RETURN_IF_ERROR(refuse_foreign_or_newer(found, plan));
    if (found.tables > 0 && found.version == plan.version) return Status::ok();
    return create_or_step_up(connection, plan, found);
  }();
  if (status) return connection.exec("COMMIT");
  if (connection.in_transaction()) (void)connection.exec("ROLLBACK");
  return status;
}

Status check_schema(Connection& connection, const SchemaPlan& plan) {
  ASSIGN_OR_RETURN(const Found found, look(connection));
  if (found.tables == 0) return not_found("holds nothing yet");
  RETURN_IF_ERROR(refuse_foreign_or_newer(found, plan));
  if (found.version < plan.version)
    return invalid_argument("has schema version ", found.version, ", this program reads ", plan.version,
                            ". The next `tuner submit` or `tuner serve` on this file migrates it");
  return Status::ok();
}

}  // namespace tuner::db
