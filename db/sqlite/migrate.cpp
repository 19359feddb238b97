#include "db/sqlite/migrate.h"

#include <iterator>
#include <string>

#include "db/sqlite/rebuild.h"
#include "db/sqlite/rows.h"
#include "db/sqlite/schema.h"  // generated from schema.sql
#include "db/store.h"

namespace tuner::db {

namespace {

constexpr char kTrial7[] = R"SQL((
  seq               INTEGER PRIMARY KEY,
  job_seq           INTEGER NOT NULL REFERENCES job,
  task_index        INTEGER NOT NULL,
  task_id           INTEGER NOT NULL REFERENCES task,
  template_name     TEXT NOT NULL,
  template_version  INTEGER NOT NULL,
  config            TEXT NOT NULL,
  state             TEXT NOT NULL,
  attempt           INTEGER NOT NULL,
  fencing           INTEGER NOT NULL,
  worker_id         TEXT NOT NULL,
  rng_counter       INTEGER NOT NULL,
  model_digest      TEXT NOT NULL,
  grants            TEXT NOT NULL,
  crc               INTEGER NOT NULL
) STRICT)SQL";
constexpr char kOpenRace7[] = R"SQL((
  open_race_id       INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL UNIQUE,
  job_seq            INTEGER NOT NULL REFERENCES job,
  task_index         INTEGER NOT NULL,
  finalists          TEXT NOT NULL,
  default_trial_seq  INTEGER NOT NULL,
  options            TEXT NOT NULL,
  state              TEXT NOT NULL,
  attempt            INTEGER NOT NULL,
  fencing            INTEGER NOT NULL,
  worker_id          TEXT NOT NULL,
  race_id            INTEGER NOT NULL,
  message            TEXT NOT NULL,
  grants             TEXT NOT NULL,
  crc                INTEGER NOT NULL
) STRICT)SQL";

// A row with leases in columns `attempt` and `worker` gets a last column that tells the latest of them. Which
// life of the worker had it nobody wrote down.
Remake with_grant(size_t attempt, size_t worker) {
  return [attempt, worker](const SqlRow& old, SqlRow& row) {
    row = old;
    std::vector<Grant> grants;
    const int64_t latest = std::get<int64_t>(old[attempt]);
    const auto& worker_id = std::get<std::string>(old[worker]);
    if (latest > 0 && !worker_id.empty()) add_grant(grants, {static_cast<int>(latest), worker_id, ""});
    row.emplace_back(grants_text(grants));
    return true;
  };
}

Status tables_to_version_7(Connection& connection) {
  RETURN_IF_ERROR(add_columns(connection, "record", {{"isolation", "TEXT"}}));
  RETURN_IF_ERROR(add_columns(connection, "job", {{"tenant", "TEXT"}}));
  RETURN_IF_ERROR(rebuild_table(connection, "trial", kTrial7, with_grant(8, 10)));
  return rebuild_table(connection, "open_race", kOpenRace7, with_grant(8, 10));
}

// The oldest version that is converted. Older ones are refused.
constexpr int64_t kOldestVersion = 6;

// A step is never edited: it makes what schema.sql was at its version, whatever that became later.
constexpr Migration kMigrations[] = {
    // 6 -> 7: who had which lease, results that cannot be, the poison ledger, tenants, how candidates were
    // confined.
    {6, R"SQL(
CREATE TABLE quarantine (
  quarantine_id       INTEGER PRIMARY KEY,
  lease_id            TEXT NOT NULL,
  attempt             INTEGER NOT NULL,
  worker_id           TEXT NOT NULL,
  worker_incarnation  TEXT NOT NULL,
  host                TEXT NOT NULL,
  claimed_ns          REAL NOT NULL,
  why                 TEXT NOT NULL,
  received_at_us      INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
CREATE INDEX quarantine_lease ON quarantine (lease_id, quarantine_id);
CREATE TABLE poison (
  poison_id           INTEGER PRIMARY KEY,
  workload_key        TEXT NOT NULL,
  target              TEXT NOT NULL,
  template_name       TEXT NOT NULL,
  template_version    INTEGER NOT NULL,
  config              TEXT NOT NULL,
  phase               TEXT NOT NULL,
  worker_id           TEXT NOT NULL,
  worker_incarnation  TEXT NOT NULL,
  alone               INTEGER NOT NULL,
  happened_at_us      INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
)SQL",
     tables_to_version_7},
    // 7 -> 8: kernels that users brought as source.
    {7, R"SQL(
CREATE TABLE kernel (
  kernel_id      INTEGER PRIMARY KEY,
  digest         TEXT NOT NULL,
  tenant         TEXT NOT NULL,
  document       TEXT NOT NULL,
  brought_at_us  INTEGER NOT NULL,
  crc            INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX kernel_digest ON kernel (digest, tenant);
)SQL"},
    // 8 -> 9: what was pruned.
    {8, R"SQL(
CREATE TABLE pruned (
  pruned_id     INTEGER PRIMARY KEY,
  job_seq       INTEGER NOT NULL REFERENCES job,
  task_id       INTEGER NOT NULL REFERENCES task,
  outcome       TEXT NOT NULL,
  records       INTEGER NOT NULL,
  closed        INTEGER NOT NULL,
  run_ms        REAL NOT NULL,
  pruned_at_us  INTEGER NOT NULL,
  crc           INTEGER NOT NULL
) STRICT;
CREATE INDEX pruned_task ON pruned (task_id, outcome);
)SQL"},
};

// schema.sql with the record's columns in their place.
std::string with_record_columns(std::string sql) {
  const size_t at = sql.find("  -- RECORD FIELDS"), end = sql.find('\n', at);
  CHECK(at != std::string::npos) << "schema.sql has no place for the columns of record_fields.h";
  return sql.replace(at, end + 1 - at, record_columns_sql());
}

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

Status refuse_unknown(const Found& found, const SchemaPlan& plan) {
  if (found.tables > 0 && found.application_id != kApplicationId)
    return invalid_argument("is an SQLite file of another program (application_id ", found.application_id,
                            ", expected ", kApplicationId, "). Give another file ",
                            how_a_database_is_given());
  if (found.version > plan.version)
    return invalid_argument("has schema version ", found.version, ", this program knows up to ", plan.version,
                            ": written by a newer tuner. Update this one, or give another file ",
                            how_a_database_is_given());
  if (found.tables > 0 && found.version < plan.oldest())
    return invalid_argument(
        "has schema version ", found.version, ", this program opens ", plan.oldest(), " to ", plan.version,
        ": written by an older tuner. Export its records with that one (records export), import "
        "them here into a new file (records import), and give that file ",
        how_a_database_is_given());
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
    CHECK(step != nullptr) << "no step from schema version " << version;
    const std::string context = str("migration from schema version ", version, ": ");
    RETURN_IF_ERROR(connection.exec(step->sql).with_context(context));
    if (step->then != nullptr) RETURN_IF_ERROR(step->then(connection).with_context(context));
    ++version;
  }
  return connection.exec(str("PRAGMA user_version = ", version).c_str());
}

}  // namespace

const int64_t kSchemaVersion = kOldestVersion + std::ssize(kMigrations);

const SchemaPlan& current_schema() {
  static const std::string create = with_record_columns(kSchemaSql);
  static const SchemaPlan plan{create.c_str(), kSchemaVersion, kMigrations};
  return plan;
}

Status refuse_foreign(Connection& connection, const SchemaPlan& plan) {
  ASSIGN_OR_RETURN(const Found found, look(connection));
  return refuse_unknown(found, plan);
}

Status prepare_schema(Connection& connection, const SchemaPlan& plan) {
  // One transaction around looking and changing: killed in the middle, the file is as it was.
  RETURN_IF_ERROR(connection.exec("BEGIN IMMEDIATE"));
  const Status status = [&]() -> Status {
    ASSIGN_OR_RETURN(const Found found, look(connection));
    RETURN_IF_ERROR(refuse_unknown(found, plan));
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
  RETURN_IF_ERROR(refuse_unknown(found, plan));
  if (found.version < plan.version)
    return invalid_argument("has schema version ", found.version, ", this program reads ", plan.version,
                            ". The next `tuner submit` or `tuner serve` on this file migrates it");
  return Status::ok();
}

}  // namespace tuner::db
