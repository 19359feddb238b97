#include "db/sqlite/migrate.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "db/sqlite/rebuild.h"
#include "db/sqlite/rows.h"
#include "db/sqlite/schema.h"  // generated from schema.sql
#include "db/store.h"

namespace tuner::db {

namespace {

constexpr char kRecord4[] = R"SQL((
  record_id                  INTEGER PRIMARY KEY,
  trial_seq                  INTEGER NOT NULL REFERENCES trial,
  task_id                    INTEGER NOT NULL REFERENCES task,
  terminal                   INTEGER NOT NULL,
  attempt                    INTEGER NOT NULL,
  outcome                    TEXT NOT NULL,
  cut                        INTEGER NOT NULL,
  message                    TEXT NOT NULL,
  time_ns                    REAL NOT NULL,
  run_ns                     TEXT NOT NULL,
  cpu_ns                     TEXT NOT NULL,
  sentinel_before_ns         REAL NOT NULL,
  sentinel_after_ns          REAL NOT NULL,
  queue_ms                   REAL NOT NULL,
  build_ms                   REAL NOT NULL,
  run_ms                     REAL NOT NULL,
  max_error                  REAL NOT NULL,
  peak_gflops                REAL NOT NULL,
  artifact_digest            TEXT NOT NULL,
  hardware                   TEXT NOT NULL,
  toolchain                  TEXT NOT NULL,
  harness_abi                INTEGER NOT NULL,
  worker_id                  TEXT NOT NULL,
  worker_incarnation         TEXT NOT NULL,
  host                       TEXT NOT NULL,
  options                    TEXT NOT NULL,
  finished_at_us             INTEGER NOT NULL,
  device_state               TEXT NOT NULL,
  memory_sentinel_before_ns  REAL NOT NULL,
  memory_sentinel_after_ns   REAL NOT NULL,
  discarded                  INTEGER NOT NULL,
  read_gbps                  REAL NOT NULL,
  crc                        INTEGER NOT NULL
) STRICT)SQL";

// Takes `key` out of the options and appends it to the row; `otherwise` where it is not there. False: it is
// of another kind than was ever written.
template <class T>
bool take_out(nlohmann::json& options, const char* key, T otherwise, SqlRow& row) {
  const auto at = options.find(key);
  if (at == options.end()) return row.emplace_back(std::move(otherwise)), true;
  const bool good = std::is_same_v<T, std::string> ? at->is_string() : at->is_number();
  row.emplace_back(good ? at->template get<T>() : std::move(otherwise));
  options.erase(at);
  return good;
}

Status record_to_version_4(Connection& connection) {
  return rebuild_table(connection, "record", kRecord4, [](const SqlRow& old, SqlRow& row) {
    // Place of each column of version 4 up to finished_at_us among those of version 3.
    constexpr size_t kFrom[] = {0,  1,  2,  3,  4,  5,  6,  10, 7,  8,  9,  11, 12, 15,
                                13, 14, 17, 18, 16, 19, 20, 21, 22, 23, 24, 25, 26};
    constexpr size_t kOptions = 25;
    for (const size_t from : kFrom) row.push_back(old[from]);
    nlohmann::json options = nlohmann::json::parse(std::get<std::string>(old[kOptions]), nullptr, false);
    const bool readable = options.is_object();
    if (!readable) options = nlohmann::json::object();
    const bool good[] = {readable,
                         take_out(options, "device_state", std::string(), row),
                         take_out(options, "memory_sentinel_before_ns", 0.0, row),
                         take_out(options, "memory_sentinel_after_ns", 0.0, row),
                         take_out(options, "discarded", int64_t{0}, row),
                         take_out(options, "read_gbps", 0.0, row)};
    if (readable) row[kOptions] = options.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return std::ranges::all_of(good, std::identity());
  });
}

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
    // 3 -> 4: what stood in the options of a record beside them are columns, in the order of a line.
    {3, "", record_to_version_4},
    // 4 -> 5: page faults.
    {4, "",
     [](Connection& c) {
       return add_columns(c, "record", {{"page_faults", "INTEGER"}});
     }},
    // 5 -> 6: races under way are rows. A new table only.
    {5, R"SQL(
CREATE TABLE open_race (
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
  crc                INTEGER NOT NULL
) STRICT;
CREATE INDEX open_race_job ON open_race (job_seq, open_race_id) WHERE state != 'done';
)SQL"},
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

Status refuse_foreign_or_newer(const Found& found, const SchemaPlan& plan) {
  if (found.tables > 0 && found.application_id != kApplicationId)
    return invalid_argument("is an SQLite file of another program (application_id ", found.application_id,
                            ", expected ", kApplicationId, "). Give another file ",
                            how_a_database_is_given());
  if (found.version > plan.version)
    return invalid_argument("has schema version ", found.version, ", this program knows up to ", plan.version,
                            ": written by a newer tuner. Update this one, or give another file ",
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
    if (step == nullptr)
      return invalid_argument("has schema version ", version,
                              ", older than any this program can migrate (to ", plan.version,
                              "). Use an earlier tuner to export its records");
    const std::string context = str("migration from schema version ", version, ": ");
    RETURN_IF_ERROR(connection.exec(step->sql).with_context(context));
    if (step->then != nullptr) RETURN_IF_ERROR(step->then(connection).with_context(context));
    ++version;
  }
  return connection.exec(str("PRAGMA user_version = ", version).c_str());
}

}  // namespace

const int64_t kSchemaVersion = 1 + std::ssize(kMigrations);

const SchemaPlan& current_schema() {
  static const std::string create = with_record_columns(kSchemaSql);
  static const SchemaPlan plan{create.c_str(), kSchemaVersion, kMigrations};
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
