// The statements whose query plan matters: a test asserts that none of them reads a whole table.
#pragma once

namespace tuner::db {

// Column lists are those of rows.h, or * where that is the column order of schema.sql.
inline constexpr char kTaskByKey[] = "SELECT * FROM task WHERE workload_key = ? AND target = ?";
inline constexpr char kTasksOfWorkload[] = "SELECT * FROM task WHERE workload_key = ?";
inline constexpr char kTaskById[] = "SELECT * FROM task WHERE task_id = ?";

inline constexpr char kJobById[] = "SELECT * FROM job WHERE id = ?";
inline constexpr char kJobBySeq[] = "SELECT * FROM job WHERE job_seq = ?";
inline constexpr char kJobByRequest[] = "SELECT * FROM job WHERE request_id = ?";
inline constexpr char kJobSame[] =
    "SELECT job.* FROM job LEFT JOIN imported_job ON imported_job.job_seq = job.job_seq "
    "WHERE tasks = ? AND search = ? AND seed = ? AND tenant = ? AND imported_job.job_seq IS NULL "
    "ORDER BY job.job_seq DESC LIMIT 1";

inline constexpr char kTrialBySeq[] = "SELECT * FROM trial WHERE seq = ?";
inline constexpr char kTrialsOfJob[] =
    "SELECT * FROM trial WHERE job_seq = ? AND seq > ? ORDER BY seq LIMIT ?";
inline constexpr char kTrialByNumber[] =
    "SELECT * FROM trial WHERE job_seq = ? ORDER BY seq LIMIT 1 OFFSET ?";
inline constexpr char kTrialsOfJobUpTo[] = "SELECT count(*) FROM trial WHERE job_seq = ? AND seq <= ?";
inline constexpr char kTrialsOfAll[] = "SELECT * FROM trial WHERE seq > ? ORDER BY seq LIMIT ?";
inline constexpr char kOpenTrialsOfJob[] =
    "SELECT * FROM trial WHERE job_seq = ? AND seq > ? AND state IN ('queued', 'leased') ORDER BY seq LIMIT "
    "?";

// Of open trials only, which an index lists: a token of a closed trial is never compared again.
inline constexpr char kLargestFencing[] =
    "SELECT max(fencing) FROM trial INDEXED BY trial_open WHERE state IN ('queued', 'leased')";
inline constexpr char kDoneTrialsOfJob[] = "SELECT count(*) FROM trial WHERE job_seq = ? AND state = 'done'";

inline constexpr char kUsage[] =
    "SELECT tenant, sum(jobs), sum(records), sum(run_ms) FROM ("
    "SELECT tenant, count(DISTINCT job.job_seq) AS jobs, count(record_id) AS records, total(run_ms) AS "
    "run_ms "
    "FROM job LEFT JOIN trial ON trial.job_seq = job.job_seq LEFT JOIN record ON record.trial_seq = "
    "trial.seq "
    "GROUP BY tenant UNION ALL "
    "SELECT tenant, 0, sum(records), total(run_ms) FROM pruned JOIN job ON job.job_seq = pruned.job_seq "
    "GROUP BY tenant) GROUP BY tenant ORDER BY tenant";

inline constexpr char kTerminalRecord[] = "SELECT * FROM record WHERE trial_seq = ? AND terminal = 1";
inline constexpr char kRecordsOfTrial[] = "SELECT * FROM record WHERE trial_seq = ? ORDER BY record_id";
inline constexpr char kBestRecord[] =
    "SELECT * FROM record WHERE task_id = ? AND terminal = 1 AND outcome = 'ok' AND cut = 0 "
    "ORDER BY time_ns, record_id LIMIT 1";
// The second parameter lists template names as ",a,b,".
inline constexpr char kBestRecordOfTemplates[] =
    "SELECT record.* FROM record JOIN trial ON trial.seq = record.trial_seq "
    "WHERE record.task_id = ? AND record.terminal = 1 AND record.outcome = 'ok' AND record.cut = 0 "
    "AND instr(?, ',' || trial.template_name || ',') > 0 ORDER BY record.time_ns, record.record_id LIMIT 1";
// The third and fourth parameters list template names likewise; "" for any.
inline constexpr char kBestRecordOfHardware[] =
    "SELECT record.* FROM record JOIN trial ON trial.seq = record.trial_seq "
    "WHERE record.task_id = ? AND record.terminal = 1 AND record.outcome = 'ok' AND record.cut = 0 "
    "AND record.hardware = ? AND (? = '' OR instr(?, ',' || trial.template_name || ',') > 0) "
    "ORDER BY record.time_ns, record.record_id LIMIT 1";
inline constexpr char kHardwareOfTask[] = "SELECT hardware FROM record WHERE task_id = ? AND terminal = 1";
// The index record_rank alone answers this.
inline constexpr char kRankOfTask[] =
    "SELECT outcome, cut, time_ns, record_id FROM record WHERE task_id = ? AND terminal = 1 AND record_id <= "
    "?";
inline constexpr char kTrialOfRecord[] =
    "SELECT trial.* FROM record CROSS JOIN trial ON trial.seq = record.trial_seq WHERE record.record_id = ?";
inline constexpr char kTrialSeqsOfTask[] = "SELECT trial_seq FROM record WHERE task_id = ? AND terminal = 1";
inline constexpr char kTrialSeqsOfTaskAfter[] =
    "SELECT trial_seq FROM record WHERE task_id = ? AND terminal = 1 AND record_id > ? "
    "ORDER BY record_id LIMIT ?";
inline constexpr char kTrialsOfConfig[] =
    "SELECT trial.* FROM record CROSS JOIN trial ON trial.seq = record.trial_seq "
    "WHERE record.task_id = ? AND record.terminal = 1 AND record.outcome = 'ok' AND record.cut = 0 "
    "AND trial.template_name = ? AND trial.template_version = ? AND trial.config = ? "
    "ORDER BY record.time_ns, record.record_id LIMIT ?";
inline constexpr char kOutcomesOfTask[] =
    "SELECT outcome, count(*) FROM record WHERE task_id = ? AND terminal = 1 GROUP BY outcome";
inline constexpr char kOutcomesOfHardware[] =
    "SELECT outcome, count(*) FROM record WHERE task_id = ? AND terminal = 1 AND hardware = ? GROUP BY "
    "outcome";
inline constexpr char kPrunedOutcomesOfTask[] =
    "SELECT outcome, sum(closed) FROM pruned WHERE task_id = ? GROUP BY outcome";

// Everything that db/prune.h asks of the records of a task.
inline constexpr char kPruneCandidates[] =
    "SELECT record_id, trial_seq, terminal, outcome, cut, time_ns, record.finished_at_us, run_ms, "
    "template_name, toolchain, hardware, harness_abi, trial.job_seq, task_index, job.state "
    "FROM record CROSS JOIN trial ON trial.seq = record.trial_seq "
    "CROSS JOIN job ON job.job_seq = trial.job_seq WHERE record.task_id = ?";
inline constexpr char kFirstTrialOfTask[] =
    "SELECT seq FROM trial WHERE job_seq = ? AND task_index = ? ORDER BY seq LIMIT 1";
inline constexpr char kLastRaceOfTask[] = "SELECT max(race_id) FROM race WHERE task_id = ?";
inline constexpr char kRecordIsThere[] = "SELECT record_id FROM record WHERE record_id = ?";
inline constexpr char kRemoveRecord[] = "DELETE FROM record WHERE record_id = ?";

inline constexpr char kProposalsOfJob[] = "SELECT * FROM proposal WHERE job_seq = ? ORDER BY proposal_seq";
inline constexpr char kRecordsAfter[] =
    "SELECT record.* FROM record CROSS JOIN trial ON trial.seq = record.trial_seq "
    "WHERE record.record_id > ? AND record.terminal = 1 AND trial.job_seq = ? ORDER BY record.record_id "
    "LIMIT ?";

inline constexpr char kRacesOfJob[] = "SELECT * FROM race WHERE job_seq = ? ORDER BY race_id";
inline constexpr char kOpenRacesOfJob[] =
    "SELECT * FROM open_race WHERE job_seq = ? AND state != 'done' ORDER BY open_race_id";
inline constexpr char kOpenRaceById[] = "SELECT * FROM open_race WHERE id = ?";
inline constexpr char kQuarantineOfLease[] =
    "SELECT * FROM quarantine WHERE lease_id = ? ORDER BY quarantine_id";
inline constexpr char kSameConfigInJob[] =
    "SELECT seq FROM trial WHERE job_seq = ? AND task_index = ? AND template_name = ? AND config = ? AND "
    "state = "
    "'done' LIMIT 1";
// The last two parameters list template names as ",a,b,"; "" stands for any.
inline constexpr char kBestRecordOfEnvironment[] =
    "SELECT record.* FROM record JOIN trial ON trial.seq = record.trial_seq "
    "WHERE record.task_id = ? AND record.terminal = 1 AND record.outcome = 'ok' AND record.cut = 0 "
    "AND record.toolchain = ? AND record.hardware = ? AND record.harness_abi = ? "
    "AND (? = '' OR instr(?, ',' || trial.template_name || ',') > 0) "
    "ORDER BY record.time_ns, record.record_id LIMIT 1";
inline constexpr char kRacesOfTask[] = "SELECT * FROM race WHERE task_id = ? ORDER BY race_id DESC";

inline constexpr char kKernelOfTenant[] = "SELECT * FROM kernel WHERE digest = ? AND tenant = ?";
inline constexpr char kKernelOfAnybody[] = "SELECT * FROM kernel WHERE digest = ? ORDER BY tenant LIMIT 1";
// length() of a text counts characters, and stops at a NUL.
inline constexpr char kKernelBytes[] =
    "SELECT coalesce(sum(length(CAST(document AS BLOB))), 0) FROM kernel WHERE tenant = ?";
inline constexpr char kKernelAfter[] = "SELECT * FROM kernel WHERE kernel_id > ? ORDER BY kernel_id LIMIT 1";
inline constexpr char kLearnedNewest[] =
    "SELECT * FROM learned WHERE kind = ? AND op = ? AND target = ? ORDER BY learned_id DESC LIMIT 1";

inline constexpr char kImportedJob[] = "SELECT * FROM imported_job WHERE uid = ?";
inline constexpr char kImportedTrial[] =
    "SELECT * FROM imported_trial WHERE job_seq = ? AND home_seq = ? AND content = ?";
inline constexpr char kImportedTrialByHome[] =
    "SELECT * FROM imported_trial WHERE job_seq = ? AND home_seq = ? ORDER BY content LIMIT 1";
inline constexpr char kForeignTaskByKey[] =
    "SELECT * FROM foreign_task WHERE format = ? AND task = ? AND target = ?";
inline constexpr char kForeignByDigest[] =
    "SELECT foreign_id FROM foreign_record WHERE digest_high = ? AND digest_low = ?";
// Trials with all their records (or none) and their origin (or none): the rows of three tables side by side.
inline constexpr char kTrialRowsOfAll[] =
    "SELECT trial.*, record.*, imported_trial.* FROM trial LEFT JOIN record ON record.trial_seq = trial.seq "
    "LEFT JOIN imported_trial ON imported_trial.seq = trial.seq "
    "WHERE trial.seq > ? AND trial.seq <= ? ORDER BY trial.seq, record.record_id";
inline constexpr char kTrialRowsOfJob[] =
    "SELECT trial.*, record.*, imported_trial.* FROM trial LEFT JOIN record ON record.trial_seq = trial.seq "
    "LEFT JOIN imported_trial ON imported_trial.seq = trial.seq "
    "WHERE trial.job_seq = ? AND trial.seq > ? AND trial.seq <= ? ORDER BY trial.seq, record.record_id";
inline constexpr char kForeignRows[] =
    "SELECT * FROM foreign_record WHERE foreign_id > ? ORDER BY foreign_id LIMIT ?";

// The index foreign_rank alone answers this.
inline constexpr char kForeignRankOfTask[] =
    "SELECT outcome, time_ns, foreign_id FROM foreign_record WHERE foreign_task_id = ? AND foreign_id <= ?";
inline constexpr char kForeignById[] = "SELECT * FROM foreign_record WHERE foreign_id = ?";
inline constexpr char kOriginById[] = "SELECT * FROM origin WHERE origin_id = ?";

inline constexpr char kEventsOfJob[] =
    "SELECT seq, json FROM event WHERE job_seq = ? AND seq > ? ORDER BY seq LIMIT ?";

}  // namespace tuner::db
