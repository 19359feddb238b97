// Converts our structs to rows of schema.sql and back. Column lists, their order and the checksum are defined
// only here; those of a record come from record_fields.h.
#pragma once

#include <string>
#include <string_view>

#include "db/death.h"
#include "db/exchange/exchange_store.h"
#include "db/exchange/identity.h"
#include "db/open_race.h"
#include "db/quarantine.h"
#include "db/records.h"
#include "db/sqlite/sqlite.h"

namespace tuner::db {

inline constexpr char kTaskColumns[] = "task_id, workload_key, target, crc";
inline constexpr char kJobColumns[] =
    "job_seq, id, request_id, tasks, trials, search, seed, options, state, message, submitted_at_us, "
    "finished_at_us, tenant, crc";
inline constexpr char kTrialColumns[] =
    "seq, job_seq, task_index, task_id, template_name, template_version, config, state, attempt, fencing, "
    "worker_id, rng_counter, model_digest, grants, crc";
// The record columns of record_fields.h: their names, their number, and their lines in CREATE TABLE.
const std::string& record_columns();
size_t record_width();
std::string record_columns_sql();

inline constexpr char kProposalColumns[] =
    "proposal_seq, job_seq, task_index, asked, count, first_trial_seq, observed_record_id, donor_record_id, "
    "crc";
inline constexpr char kRaceColumns[] =
    "race_id, job_seq, task_index, task_id, winner_trial_seq, finalists, tie_set, time_ns, interval_low_ns, "
    "interval_high_ns, ratio, ratio_low, ratio_high, regret_bound, options, hardware, toolchain, "
    "harness_abi, "
    "worker_id, host, finished_at_us, crc";

inline constexpr char kOpenRaceColumns[] =
    "open_race_id, id, job_seq, task_index, finalists, default_trial_seq, options, state, attempt, fencing, "
    "worker_id, race_id, message, grants, crc";
inline constexpr char kQuarantineColumns[] =
    "quarantine_id, lease_id, attempt, worker_id, worker_incarnation, host, claimed_ns, why, received_at_us, "
    "crc";
inline constexpr char kPoisonColumns[] =
    "poison_id, workload_key, target, template_name, template_version, config, phase, worker_id, "
    "worker_incarnation, alone, happened_at_us, crc";

inline constexpr char kKernelColumns[] = "kernel_id, digest, tenant, document, brought_at_us, crc";
inline constexpr char kPrunedColumns[] =
    "pruned_id, job_seq, task_id, outcome, records, closed, run_ms, pruned_at_us, crc";
inline constexpr char kLearnedColumns[] =
    "learned_id, kind, op, target, until_record_id, document, made_at_us, crc";
inline constexpr char kOriginColumns[] = "origin_id, source, format, header, imported_at_us, crc";
inline constexpr char kImportedJobColumns[] = "job_seq, uid, home_id, origin_id, crc";
inline constexpr char kImportedTrialColumns[] = "seq, job_seq, home_seq, content, origin_id, crc";
inline constexpr char kForeignTaskColumns[] = "foreign_task_id, format, task, target, crc";
inline constexpr char kForeignRecordColumns[] =
    "foreign_id, foreign_task_id, origin_id, digest_high, digest_low, outcome, time_ns, finished_at_us, "
    "document, crc";

// Returns "?, ?, ..." with one mark per column of the list.
std::string placeholders(std::string_view columns);

// A row as stored: the struct, and the numbers that only the database knows.
struct StoredTask {
  int64_t task_id = 0;
  JobRow::Task task;
};
struct StoredJob {
  int64_t job_seq = 0;
  JobRow job;
};
struct StoredTrial {
  TrialRow trial;  // job_id is not in the row; the caller fills it
  int64_t job_seq = 0, task_id = 0;
};
struct StoredRecord {
  int64_t record_id = 0, trial_seq = 0, task_id = 0;
  bool terminal = true;
  MeasureRecord record;
};
struct StoredProposal {
  ProposalRow proposal;  // job_id is not in the row; the caller fills it
  int64_t job_seq = 0;
};
struct StoredRace {
  RaceRow race;  // job_id is not in the row; the caller fills it
  int64_t job_seq = 0, task_id = 0;
};
struct StoredOpenRace {
  int64_t open_race_id = 0;
  OpenRaceRow race;  // job_id is not in the row; the caller fills it
  int64_t job_seq = 0, race_id = 0;
  std::string message;
};
// So many records of a job and task, with that outcome, that are not there any more. Negative: an import
// brought them back.
struct PrunedRow {
  int64_t pruned_id = 0, job_seq = 0, task_id = 0;
  std::string outcome;
  int64_t records = 0;
  int64_t closed = 0;  // those of them that had closed their trial
  double run_ms = 0;
  int64_t pruned_at_us = 0;
};
struct StoredOrigin {
  int64_t origin_id = 0;
  Origin origin;
};
struct StoredImportedJob {
  int64_t job_seq = 0;
  std::string uid, home_id;
  int64_t origin_id = 0;
};
struct StoredImportedTrial {
  int64_t seq = 0, job_seq = 0, home_seq = 0, content = 0, origin_id = 0;
};
struct StoredForeignTask {
  int64_t foreign_task_id = 0;
  std::string format, task, target;
};
struct StoredForeignRecord {
  int64_t foreign_id = 0, foreign_task_id = 0, origin_id = 0, digest_high = 0, digest_low = 0;
  ForeignRecord record;  // format, task and target are not in the row; the caller fills them
};

// Converts to a row, with the checksum as the last column.
SqlRow to_row(const StoredTask& task);
SqlRow to_row(const StoredJob& job);
SqlRow to_row(const StoredTrial& trial);
SqlRow to_row(const StoredRecord& record);
SqlRow to_row(const StoredProposal& proposal);
Result<SqlRow> to_row(const StoredRace& race);  // NotFound: a malformed trial id
Result<SqlRow> to_row(const StoredOpenRace& race);
SqlRow to_row(const KernelRow& kernel);
SqlRow to_row(const LearnedRow& learned);
SqlRow to_row(const PrunedRow& row);
SqlRow to_row(const QuarantineRow& row);
SqlRow to_row(const DeathRow& row);
SqlRow to_row(const StoredOrigin& origin);
SqlRow to_row(const StoredImportedJob& job);
SqlRow to_row(const StoredImportedTrial& trial);
SqlRow to_row(const StoredForeignTask& task);
SqlRow to_row(const StoredForeignRecord& record);

// Converts from a row. Failed, naming table and row, if the checksum or a value is not as to_row() writes it.
Result<StoredTask> task_from_row(const SqlRow& row);
Result<StoredJob> job_from_row(const SqlRow& row);
Result<StoredTrial> trial_from_row(const SqlRow& row);
Result<StoredRecord> record_from_row(const SqlRow& row);
Result<StoredProposal> proposal_from_row(const SqlRow& row);
Result<StoredRace> race_from_row(const SqlRow& row);
// Reads only the trial ids of the finalists. Samples are most of a race, and an answer needs none of them.
Result<StoredRace> race_without_samples(const SqlRow& row);
Result<StoredOpenRace> open_race_from_row(const SqlRow& row);
Result<KernelRow> kernel_from_row(const SqlRow& row);
Result<LearnedRow> learned_from_row(const SqlRow& row);
Result<QuarantineRow> quarantine_from_row(const SqlRow& row);
Result<DeathRow> death_from_row(const SqlRow& row);
Result<StoredOrigin> origin_from_row(const SqlRow& row);
Result<StoredImportedJob> imported_job_from_row(const SqlRow& row);
Result<StoredImportedTrial> imported_trial_from_row(const SqlRow& row);
Result<StoredForeignTask> foreign_task_from_row(const SqlRow& row);
Result<StoredForeignRecord> foreign_record_from_row(const SqlRow& row);

// Returns the column `target` of a task's row: the target, with a mark if constants are cold.
std::string target_in_row(const JobRow::Task& task);
std::string job_options_json(const JobRow& job);
// The column `grants` of a trial or an open race. add_grant() appends, and forgets the oldest beyond
// kMostGrants.
std::string grants_text(const std::vector<Grant>& grants);
void add_grant(std::vector<Grant>& grants, Grant grant);

// Convert between "t12" and 12.
std::string trial_id_text(int64_t seq);
Result<int64_t> trial_seq(std::string_view trial_id);
// "j3.17" in its parts; nothing: it is no such name.
struct TrialName {
  std::string job_id;
  int64_t number = 0;
};
std::optional<TrialName> trial_name_parts(std::string_view name);

}  // namespace tuner::db
