// Store: jobs, trials, measure records and tuned configs in one SQLite file. schema.sql tells the tables.
//
// One process opens it for writing (an OS lock on FILE-lock refuses a second and names the first); any number
// read. In the writing process one connection, behind one mutex and with group commit, does all writes and
// all checkpoints (Debian 12's SQLite 3.40 can corrupt a WAL that two connections checkpoint at once). Every
// method may be called from any thread. When a write returns OK it is on disk (synchronous=FULL). Rows are
// added; of a trial only its state changes. Keys are canonical text (Workload::key(), Target::name(),
// Config::to_text()); this module stores them, never looks inside. Every row read is checked against its
// checksum; a damaged one is an error that names it, never a wrong answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// As in proto/record.proto, same names in lower case in SQL and JSON.
enum class Outcome : uint8_t {
  kOk = 1,
  kInvalidConfig,
  kBuildError,
  kBuildTimeout,
  kRunTimeout,
  kCrashed,
  kWrongAnswer,
  kOutOfMemory,
  kDeviceLost,
};
std::string_view outcome_name(Outcome outcome);
std::optional<Outcome> outcome_from_name(std::string_view name);

enum class JobState : uint8_t { kQueued = 1, kRunning, kFinished, kCancelled, kFailed };
std::string_view job_state_name(JobState state);
std::optional<JobState> job_state_from_name(std::string_view name);

// Where a kernel's constants (weights) lie when a call is timed.
//   warm   as a loop of calls leaves them, like all its other operands: in the caches, as far as they fit
//   cold   in memory: flushed line by line before each timed call. All other operands are warm. So a network
//          finds the weights of a layer
// Times of the one say nothing about the other, so each has answers of its own. Without constants there is
// only warm.
enum class Constants : uint8_t { kWarm = 1, kCold };
std::string_view constants_name(Constants constants);  // warm, cold
std::optional<Constants> constants_from_name(std::string_view name);

struct MeasureOptions {
  double min_repeat_ms = 1;
  int repeats = 9;
  double build_timeout_s = 10, run_timeout_s = 10;
  int64_t memory_limit_bytes = int64_t{4} << 30;
  double cut_factor = 2;  // negative: never
  // Sampling may stop before `repeats` when half the median's 95 % interval is below this fraction of it; 0:
  // all are taken.
  double precision = 0.02;
  Constants constants = Constants::kWarm;
};

struct Environment {
  std::string hardware, toolchain;
  int harness_abi = 1;
  std::string worker_id, worker_incarnation, host;
};

struct MeasureRecord {
  std::string trial_id;
  int attempt = 1;
  Outcome outcome = Outcome::kOk;
  std::string message;
  std::vector<double> run_ns, cpu_ns;
  bool cut = false;
  double sentinel_before_ns = 0, sentinel_after_ns = 0;
  double build_ms = 0, run_ms = 0, queue_ms = 0;
  std::string artifact_digest;
  double max_error = 0;
  double peak_gflops = 0;
  Environment environment;
  MeasureOptions options;
  int64_t finished_at_us = 0;  // Unix time, UTC
  std::string device_state;    // of a GPU, right after timing: clocks, temperature, throttling
  // Of the sentinel that feels memory; 0: not timed (older records, GPUs).
  double memory_sentinel_before_ns = 0, memory_sentinel_after_ns = 0;
  int discarded = 0;     // runs thrown away because they were disturbed
  double read_gbps = 0;  // that the level of cache which holds its operands gives; 0: not known
  int page_faults = 0;   // of the candidate's process while it was sampled
};
// Median of run_ns: the figure a trial is ranked by (of a cut record: a bound). 0 unless ok.
double record_time_ns(const MeasureRecord& record);

// When a job ends before its trials are used up. Of one run: a job that is continued starts its clock anew.
struct StopOptions {
  double below = 0;  // a task ends when the chance of a gain within its next 100 trials is below; 0: never
  double time_limit_s = 0;  // for its trials and races together; 0: no limit
  bool operator==(const StopOptions&) const = default;
};

struct JobRow {
  std::string id;
  std::string request_id;
  struct Task {
    std::string workload_key, target;
    std::string algorithms;  // that its candidates may use, with commas between, canonical; empty: any
    int64_t uses = 1;        // how often the whole runs it: what a gain here counts against one elsewhere
    Constants constants = Constants::kWarm;  // what its times mean; records and answers of each are apart
  };
  std::vector<Task> tasks;
  int trials = 0;  // per task, on average: tasks that gain more get more
  std::string search;
  uint64_t seed = 0;
  MeasureOptions options;
  StopOptions stop;
  JobState state = JobState::kQueued;
  std::string message;
  int64_t submitted_at_us = 0, finished_at_us = 0;
};

enum class TrialState : uint8_t { kQueued = 1, kLeased, kDone, kCancelled };
std::string_view trial_state_name(TrialState state);
std::optional<TrialState> trial_state_from_name(std::string_view name);

struct TrialRow {
  std::string id;  // "t" + sequence number: short enough to type
  std::string job_id;
  int task_index = 0;
  std::string template_name;
  int template_version = 1;
  std::string config;
  TrialState state = TrialState::kQueued;
  int attempt = 0;        // leases so far
  int64_t fencing = 0;    // of the last lease
  std::string worker_id;  // of the last lease
  // Who proposed it: position of the proposer's random numbers, and the model it used.
  uint64_t rng_counter = 0;
  std::string model_digest;
  int64_t seq = 0;  // event sequence at creation; orders trials
};

struct TrialWithRecord {
  TrialRow trial;
  JobRow::Task task;
  std::optional<MeasureRecord> record;  // the terminal one
  int64_t record_id = 0;                // of that; records are observed by searches in this order. 0: none
};

// One call of SearchStrategy::propose: what it had seen, what it gave. Together with the job's search and
// seed this is enough to play the search again.
struct ProposalRow {
  int64_t seq = 0;
  std::string job_id;
  int task_index = 0;
  int asked = 0, count = 0;
  int64_t first_trial_seq = 0;  // its trials are this and the count - 1 that follow; 0 when count is 0
  // It had observed the terminal records of this job and task with record_id <= this, in that order, no
  // others.
  int64_t observed_record_id = 0;
  int64_t donor_record_id = 0;  // records of other jobs that warmed it have ids up to this; 0: none did
};

struct ObservedRecord {
  int64_t record_id = 0;
  MeasureRecord record;
};

struct RaceOptions {
  double min_repeat_ms = 1;  // one sample is as many calls as fill this
  int processes = 9;         // of each finalist, more while its interval is wide; each has fresh pages
  int rounds = 3;            // within a process: one turn of every finalist between sentinels
  double limit_s = 20;       // no further process is begun after this
  Constants constants = Constants::kWarm;  // which time ranks
};

struct RaceFinalist {
  std::string trial_id;
  // In the order taken: a sample (per call), the pulses timed beside it (harness ABI < 4: the sentinel), the
  // process it was taken in.
  std::vector<double> samples_ns, sentinel_ns;
  std::vector<int> process;
  std::vector<double> memory_ns;  // of the memory sentinel beside each sample; empty: not timed
  // With constants the other way, for information; empty where there are none.
  std::vector<double> other_ns;
  std::vector<int> other_process;
};

// The finalists of a task measured against each other, interleaved, in several processes.
struct RaceRow {
  int64_t id = 0;
  std::string job_id;
  int task_index = 0;
  std::string winner_trial_id;
  std::vector<RaceFinalist> finalists;
  std::vector<std::string> tie_set;  // trial ids; the winner is one of them
  double time_ns = 0;  // of the winner: trimmed mean over processes of the lower quartile within each
  double time_low_ns = 0, time_high_ns = 0;         // where that of a fresh process lies in 95 % of cases
  double ratio = 0, ratio_low = 0, ratio_high = 0;  // the same three of time over sentinel_ns
  double regret_bound = 0;  // the winner is slower than the best finalist by at most this fraction (95 %)
  // False: the machine was too disturbed to decide. The winner is then the first in the trials' order, and
  // best() looks past this race.
  bool certified = true;
  std::string uncertified_why;
  int turns = 0, discarded = 0;  // taken by all finalists; thrown away and taken anew. 0: not counted
  int disturbed = 0;             // of the turns that count
  std::string default_trial_id;  // the finalist that is the default config; empty: none was
  double default_time_ns = 0;
  double other_time_ns = 0;  // of the winner with constants the other way; 0: not known
  RaceOptions options;
  Environment environment;
  int64_t finished_at_us = 0;
};

// A race whose winner's interval is wider than this to either side, as a fraction of the time, certifies
// nothing.
inline constexpr double kCertifiedHalfWidth = 0.05;

struct TunedConfig {
  std::string workload_key, target, template_name, config;
  int template_version = 1;
  // Of a race's winner: RaceRow's. Else the median of its trial's samples with its 95 % bootstrap interval.
  double time_ns = 0, time_low_ns = 0, time_high_ns = 0;
  int64_t race_id = 0;                              // 0: not raced, and the four below are 0 as well
  double ratio = 0, ratio_low = 0, ratio_high = 0;  // time over the sentinel kernel's
  double regret_bound = 0;
  int finalists = 0, tied = 0;  // tied: finalists that cannot be told from it, itself included
  bool certified = false;       // by a race whose interval is narrow enough; else why not
  std::string uncertified_why;
  Constants constants = Constants::kWarm;
  double other_time_ns = 0;      // with constants the other way; 0: not known
  double default_time_ns = 0;    // of the default config in the same race; 0: not known
  std::string default_trial_id;  // the default's trial; empty: not known
  int turns = 0, discarded = 0;  // of the race
  double read_gbps = 0;          // as of MeasureRecord
  double peak_gflops = 0;
  std::string trial_id, artifact_digest;
  int64_t trials = 0;
  std::vector<std::pair<Outcome, int64_t>> outcomes;
  Environment environment;
  int64_t finished_at_us = 0;
};

// What was computed from records: a predictor, a cover set. schema.sql, table learned.
struct LearnedRow {
  int64_t id = 0;
  std::string kind;        // "predictor", "cover": whoever writes it tells what the document is
  std::string op, target;  // what it is about; empty: several
  int64_t until_record_id = 0;
  std::string document;  // JSON
  int64_t made_at_us = 0;
};

class Store {
 public:
  enum class Mode { kRead, kWrite };
  // kWrite creates (the folder only of default_db_path()) and migrates. Refused with InvalidArgument: a newer
  // schema, damage, a file of another program, a missing folder, a hard link, a network filesystem. Aborted:
  // another process has it open for writing; the message names its pid. Failed: the disk. kRead works beside
  // a writer, after one that was killed, and from a read-only folder. NotFound: no file, or an empty one.
  static Result<std::unique_ptr<Store>> open(const std::string& path, Mode mode);
  virtual ~Store() = default;

  // --- jobs ---
  // The same request_id twice keeps the first (job_by_request tells which); an empty one never repeats. `id`
  // must be new.
  virtual Status add_job(const JobRow& job) = 0;
  virtual Result<JobRow> job_by_request(std::string_view request_id) const = 0;
  // Sets finished_at_us to now when the state is a final one, else to 0.
  virtual Status set_job_state(std::string_view job_id, JobState state, std::string_view message) = 0;
  // Raises `trials`, sets `stop`; state back to queued.
  virtual Status extend_job(std::string_view job_id, int trials, const StopOptions& stop) = 0;
  virtual Result<JobRow> job(std::string_view job_id) const = 0;
  virtual Result<std::vector<JobRow>> jobs() const = 0;
  virtual Result<int64_t> trials_done(std::string_view job_id) const = 0;  // of all its tasks
  // The latest job with the same tasks, search and seed: what `submit` continues. Imported ones do not count.
  virtual Result<JobRow> find_job(const std::vector<JobRow::Task>& tasks, std::string_view search,
                                  uint64_t seed) const = 0;

  // --- trials ---
  // All of a proposed batch or none. Fills id and seq.
  virtual Status add_trials(std::vector<TrialRow>& trials) = 0;
  // queued -> leased, attempt + 1, a new fencing token. NotFound when it is not queued any more.
  virtual Result<TrialRow> lease_trial(std::string_view trial_id, std::string_view worker_id) = 0;
  // The same for several, in one commit: those that are still queued, in the order given; the others are left
  // out.
  virtual Result<std::vector<TrialRow>> lease_trials(const std::vector<std::string>& trial_ids,
                                                     std::string_view worker_id) = 0;
  // leased -> queued. NotFound unless it is leased with that attempt.
  virtual Status requeue_trial(std::string_view trial_id, int attempt) = 0;
  // A call of the search and the trials it gave (perhaps none), all or nothing. Fills seq, count and
  // first_trial_seq of the proposal, id and seq of the trials. Trials are of its job and task.
  virtual Status add_proposal(ProposalRow& proposal, std::vector<TrialRow>& trials) = 0;
  virtual Result<std::vector<ProposalRow>> proposals(std::string_view job_id) const = 0;  // in seq order
  virtual Status cancel_open_trials(std::string_view job_id) = 0;  // queued and leased -> cancelled
  // Stores records of open trials as their terminal ones, in one transaction; a record for a closed trial is
  // kept as an extra sample; the very same record again changes nothing. Returns OK when all of that is on
  // disk; else none of it is (NotFound: an unknown trial; InvalidArgument: a number that is not finite, or an
  // ok record without samples).
  virtual Status add_records(const std::vector<MeasureRecord>& records) = 0;
  virtual Result<std::vector<TrialWithRecord>> trials(std::string_view job_id) const = 0;  // in seq order
  virtual Result<TrialWithRecord> trial(std::string_view trial_id) const = 0;
  // Every record of a trial, extra samples too, oldest first.
  virtual Result<std::vector<MeasureRecord>> records(std::string_view trial_id) const = 0;
  // Terminal records of the job's trials with record_id > `after`, in that order. No record with a smaller id
  // can appear later: what one call returned and the next one goes on from is the whole sequence, without
  // gaps.
  virtual Result<std::vector<ObservedRecord>> records_after(std::string_view job_id, int64_t after) const = 0;
  // The largest record_id there is; 0: no record yet.
  virtual Result<int64_t> last_record_id() const = 0;
  // Every (workload, target) that was ever proposed a trial whose times mean that, oldest first; without
  // algorithms.
  virtual Result<std::vector<JobRow::Task>> tasks(Constants constants = Constants::kWarm) const = 0;
  // At most `most` trials of a task, of any job, whose terminal record has an id up to `until`: a third are
  // the fastest, the others an even choice of the rest, the failed ones last. The same call gives the same
  // rows, whatever came later.
  virtual Result<std::vector<TrialWithRecord>> sample_records(const JobRow::Task& task, int64_t until,
                                                              int most) const = 0;
  // Every trial with a record, oldest first, for `records export` (empty job_id: all jobs). `f` returns false
  // to stop.
  virtual Status for_each_record(std::string_view job_id,
                                 const std::function<bool(const TrialWithRecord&)>& f) const = 0;
  // The same of one (workload, target), of every job and all algorithms; an index finds them.
  virtual Status for_each_record_of(const JobRow::Task& task,
                                    const std::function<bool(const TrialWithRecord&)>& f) const = 0;

  // --- races ---
  // Fills id. InvalidArgument: a number that is not finite, a winner that is no finalist, samples that do not
  // match.
  virtual Status add_race(RaceRow& race) = 0;
  virtual Result<std::vector<RaceRow>> races(std::string_view job_id) const = 0;  // oldest first

  // --- tuned configs ---
  // The winner of the task's certified race, with its time and interval. A race outranks all trials until the
  // next race: one lucky trial of a search that was stopped changes nothing. A race whose winner took part in
  // a later certified one has been decided anew there; of several that have not (databases put together), the
  // one with the fastest winner counts.
  // Without a certified race the fastest ok, uncut record; ties go to the older. NotFound when there is none.
  // Of trials of the named templates only, unless there are none.
  // What was measured again counts as it was then: when the newest race is of another compiler, harness or
  // machine than that record, and its job had the same config among its trials, only records of the race's
  // environment are looked at (tuner revalidate).
  // Without `counted`, trials and outcomes stay 0 and empty: they are counted over all records of the task,
  // the rest is found in microseconds however many there are.
  virtual Result<TunedConfig> best(std::string_view workload_key, std::string_view target,
                                   const std::vector<std::string>& templates = {}, bool counted = true,
                                   Constants constants = Constants::kWarm) const = 0;

  // The fastest right and uncut trial of this very config, whatever job it is of. NotFound when there is
  // none.
  virtual Result<TrialWithRecord> fastest_of_config(const JobRow::Task& task, std::string_view template_name,
                                                    int template_version, std::string_view config) const = 0;

  // --- learned ---
  // Fills id, and made_at_us where it is 0.
  virtual Status add_learned(LearnedRow& row) = 0;
  // The newest of that kind, operator and target. NotFound when there is none.
  virtual Result<LearnedRow> learned(std::string_view kind, std::string_view op,
                                     std::string_view target) const = 0;

  // --- events (for Watch) ---
  // Appends; returns its sequence number. `json` is opaque here.
  virtual Result<int64_t> add_event(std::string_view job_id, std::string_view json) = 0;
  virtual Result<std::vector<std::pair<int64_t, std::string>>> events(std::string_view job_id,
                                                                      int64_t after_seq, int limit) const = 0;
};

// $XDG_DATA_HOME/tuner/tuner.db, or ~/.local/share/tuner/tuner.db.
std::string default_db_path();

}  // namespace tuner
