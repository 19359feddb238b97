// The values a database holds: jobs, trials, measure records, races, tuned configs and learned documents.
// They have no behaviour and know no engine; store.h stores them, formats and messages carry them.
//
// Keys are canonical text (Workload::key(), Target::name(), Config::to_text()). Times of day are Unix time,
// UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/outcome.h"

namespace tuner {

enum class JobState : uint8_t { kQueued = 1, kRunning, kFinished, kCancelled, kFailed };
// The names in databases and JSON: "queued", "running", ...
std::string_view job_state_name(JobState state);
std::optional<JobState> job_state_from_name(std::string_view name);

// Where a kernel's constants (weights) are when a call is timed.
//   warm   as a loop of calls leaves them, like all its other operands: in the caches, as far as they fit
//   cold   in memory: flushed line by line before each timed call; all other operands are warm. This is how a
//          network finds the weights of a layer
// Times of one kind say nothing about the other, so each kind has its own answers. A workload without
// constants is always warm.
enum class Constants : uint8_t { kWarm = 1, kCold };
std::string_view constants_name(Constants constants);  // warm, cold
std::optional<Constants> constants_from_name(std::string_view name);

struct MeasureOptions {
  double min_repeat_ms = 1;
  int repeats = 9;
  double build_timeout_s = 10, run_timeout_s = 10;
  int64_t memory_limit_bytes = int64_t{4} << 30;
  double cut_factor = 2;  // negative: never
  // Sampling may stop before `repeats` once half the median's 95 % interval is narrower than this fraction of
  // the median. 0: take all samples.
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
  std::string device_state;    // GPU only, right after timing: clocks, temperature, throttling
  // Times of the sentinel that measures memory; 0: not timed (older records, GPUs).
  double memory_sentinel_before_ns = 0, memory_sentinel_after_ns = 0;
  int discarded = 0;     // disturbed runs that were thrown away
  double read_gbps = 0;  // GB/s of the cache level that holds the operands; 0: not known
  int page_faults = 0;   // page faults of the candidate's process while it was sampled
  // How it was confined while it ran: "none", "process", "strict", "landlock" (programs); empty: not known.
  std::string isolation;
};
// Returns the median of run_ns, which ranks a trial; for a cut record it is a bound. 0 unless ok.
double record_time_ns(const MeasureRecord& record);

// Ends a job before its trials are used up. It applies to one run: a continued job starts its clock anew. A
// restart of the daemon does not.
struct StopOptions {
  double below = 0;  // a task ends when its chance of a gain in the next 100 trials is below this; 0: never
  double time_limit_s = 0;  // for its trials and races together; 0: no limit
  double time_used_s = 0;   // of it, before the daemon was started
  bool operator==(const StopOptions&) const = default;
};

struct JobRow {
  std::string id;
  std::string request_id;
  struct Task {
    std::string workload_key, target;
    std::string algorithms;  // algorithms its candidates may use, comma-separated, canonical; empty: any
    int64_t uses = 1;        // how often the model runs it; a gain here weighs this much against other tasks
    Constants constants = Constants::kWarm;  // what its times mean; each kind has its own records and answers
  };
  std::vector<Task> tasks;
  int trials = 0;  // per task on average: tasks with more to gain get more
  std::string search;
  uint64_t seed = 0;
  MeasureOptions options;
  StopOptions stop;
  JobState state = JobState::kQueued;
  std::string message;
  int64_t submitted_at_us = 0, finished_at_us = 0;
  std::string tenant;  // on whose behalf it runs; empty: nobody in particular
  // Before its tenant's other jobs (1), after them (-1), or among them. Who waits long enough comes before
  // them, too.
  int priority = 0;
};
inline constexpr int kLeastPriority = -1, kMostPriority = 1;

// What a tenant's jobs have used: records of all times in this database.
struct UsageRow {
  std::string tenant;
  int64_t jobs = 0, trials = 0;
  double device_s = 0;  // wall clock of the runs; builds and races are not in it
};

// A lease that was given: which attempt, and which life of which worker had it. A result counts only if it
// comes from the life that had its attempt.
struct Grant {
  int attempt = 0;
  std::string worker_id;
  std::string incarnation;  // empty: not known (leases from before schema version 7)
  bool operator==(const Grant&) const = default;
};
// True if the worker's life had that attempt.
bool was_granted(const std::vector<Grant>& grants, int attempt, std::string_view worker_id,
                 std::string_view incarnation);
// A trial or race remembers so many of its latest leases.
inline constexpr size_t kMostGrants = 32;

enum class TrialState : uint8_t { kQueued = 1, kLeased, kDone, kCancelled };
// The names in databases and JSON: "queued", "leased", "done", "cancelled".
std::string_view trial_state_name(TrialState state);
std::optional<TrialState> trial_state_from_name(std::string_view name);

struct TrialRow {
  std::string id;  // "t" and a sequence number of the whole database; what programs use
  std::string job_id;
  // Its place among all trials of its job, from 1, in the order of ids. Rows are added and never deleted, so
  // it stays. 0: not asked for (TrialQuery::numbered).
  int64_t number = 0;
  int task_index = 0;
  std::string template_name;
  int template_version = 1;
  std::string config;
  TrialState state = TrialState::kQueued;
  int attempt = 0;            // leases so far
  int64_t fencing = 0;        // of the last lease
  std::string worker_id;      // of the last lease
  std::vector<Grant> grants;  // its latest leases, at most kMostGrants, in order of attempts
  // The proposer's state: the position of its random numbers, and the model it used.
  uint64_t rng_counter = 0;
  std::string model_digest;
  int64_t seq = 0;  // event sequence number at creation; gives the order of trials

  // What people call it: "j3.17" is the 17th trial of job j3. Where its number was not asked for, its id.
  std::string name() const { return number > 0 ? job_id + "." + std::to_string(number) : id; }
};

struct TrialWithRecord {
  TrialRow trial;
  JobRow::Task task;
  std::optional<MeasureRecord> record;  // the record that closed the trial
  int64_t record_id = 0;                // its id; searches observe records in this order. 0: no record
};

// One call of SearchStrategy::propose: what it had observed and what it returned. With the job's search and
// seed, these rows are enough to replay the search.
struct ProposalRow {
  int64_t seq = 0;
  std::string job_id;
  int task_index = 0;
  int asked = 0, count = 0;     // asked 0: nobody asked the search; its trials are the database's answer
  int64_t first_trial_seq = 0;  // its trials are first_trial_seq and the count - 1 after it; 0 if count is 0
  // It had observed exactly the terminal records of this job and task with record_id <= this, in that order.
  int64_t observed_record_id = 0;
  int64_t donor_record_id = 0;  // records of other jobs with ids up to this warmed it; 0: none did
};

struct ObservedRecord {
  int64_t record_id = 0;
  MeasureRecord record;
};

struct RaceOptions {
  double min_repeat_ms = 1;  // one sample is as many calls as fill this
  int processes = 9;         // per finalist; more while its interval is wide; each has fresh pages
  int rounds = 3;            // per process: one turn of every finalist between sentinels
  double limit_s = 20;       // no new process starts after this
  Constants constants = Constants::kWarm;  // which kind of time ranks the finalists
};

struct RaceFinalist {
  std::string trial_id;
  // Per sample, in the order taken: its time per call, the pulses beside it (harness ABI < 4: the sentinel),
  // and the number of its process.
  std::vector<double> samples_ns, sentinel_ns;
  std::vector<int> process;
  std::vector<double> memory_ns;  // the memory sentinel beside each sample; empty: not timed
  // Samples with the other kind of constants, for information; empty if there are none.
  std::vector<double> other_ns;
  std::vector<int> other_process;
  bool exact_clock = false;  // the device's clock says the same of every call: one process knows the time
};

// A finalist's time in its race, as the race itself counts it (measure_server/worker/race_statistics.h): the
// lower quartile in each process, the trimmed mean of their logarithms, of the processes beside calm memory
// if most were. 0 without samples.
double raced_time_ns(const RaceFinalist& finalist);
// The memory sentinel beside those processes; 0: not timed.
double raced_memory_ns(const RaceFinalist& finalist);

// Why the winner of a race won. Those that tie are as fast (kTieWidth); a fixed order decides among
// them, so that a task tuned twice has one answer.
enum class WonBy : uint8_t {
  kFastest = 1,  // nothing ties with it
  kStored,       // it was the answer before, and nothing is certainly faster
  kDefault,      // it is the default config
  kSmallest,     // it has the least code
  kOrder,        // it is the first by template and config
};
std::string_view won_by_name(WonBy won_by);  // fastest, stored, default, smallest, order
std::optional<WonBy> won_by_from_name(std::string_view name);

// The finalists of a task measured against each other, interleaved, in several processes.
struct RaceRow {
  int64_t id = 0;
  std::string job_id;
  int task_index = 0;
  std::string winner_trial_id;
  std::vector<RaceFinalist> finalists;
  std::vector<std::string> tie_set;  // trial ids; the winner is one of them
  double time_ns = 0;  // the winner's: lower quartile in each process, trimmed mean over the processes
  double time_low_ns = 0, time_high_ns = 0;         // a fresh process lies in here in 95 % of cases
  double ratio = 0, ratio_low = 0, ratio_high = 0;  // the same three for time divided by sentinel_ns
  double regret_bound = 0;  // the winner is slower than the best finalist by at most this fraction (95 %)
  // False: too disturbed to know the time, and best() publishes none of this race. With a tie set its
  // finalists were compared nevertheless, and the winner won. Without, it is the first of the trials.
  bool certified = true;
  std::string uncertified_why;
  int turns = 0, discarded = 0;  // of all finalists: turns taken; turns thrown away and repeated. 0: not
                                 // counted
  int disturbed = 0;             // how many of the counted turns were disturbed
  int slices = 0,
      retaken =
          0;  // slices of calls in all turns, and those that were disturbed and taken anew; 0: not counted
  std::string default_trial_id;  // the finalist with the default config; empty: none
  double default_time_ns = 0;
  std::string stored_trial_id;     // the finalist that was the answer before; empty: none
  WonBy won_by = WonBy::kFastest;  // races of older programs: the fastest won
  double other_time_ns = 0;        // the winner's, with the other kind of constants; 0: not known
  double memory_ns = 0;  // raced_memory_ns() of the winner; only of a race that was read from a database
  RaceOptions options;
  Environment environment;
  int64_t finished_at_us = 0;
};

// Finalists tie whose times differ by at most this fraction. Equal to kTie in
// measure_server/worker/race_statistics.h.
inline constexpr double kTieWidth = 0.02;

// A race certifies nothing if half its winner's interval is more than this fraction of the time.
inline constexpr double kCertifiedHalfWidth = 0.05;

struct TunedConfig {
  std::string workload_key, target, template_name, config;
  int template_version = 1;
  // A race's winner has the values of RaceRow. Otherwise: the median of the trial's samples with its 95 %
  // bootstrap interval.
  double time_ns = 0, time_low_ns = 0, time_high_ns = 0;
  int64_t race_id = 0;                              // 0: not raced, and the next four are 0 too
  double ratio = 0, ratio_low = 0, ratio_high = 0;  // time divided by the sentinel kernel's time
  double regret_bound = 0;
  int finalists = 0, tied = 0;  // tied: finalists that tie with the fastest, the winner included
  WonBy won_by = WonBy::kFastest;
  bool certified = false;  // true if a race with a narrow enough interval decided; else uncertified_why
                           // tells
  std::string uncertified_why;
  Constants constants = Constants::kWarm;
  double other_time_ns = 0;      // with the other kind of constants; 0: not known
  double default_time_ns = 0;    // the default config's, from the same race; 0: not known
  std::string default_trial_id;  // the default's trial; empty: not known
  int turns = 0, discarded = 0;  // of the race
  double memory_ns = 0;          // of the race; 0: not timed, or an older program raced
  double read_gbps = 0;          // as in MeasureRecord
  double peak_gflops = 0;
  std::string trial_id, artifact_digest;
  std::string trial_name;  // TrialRow::name(); the id where it was not asked for
  int64_t trials = 0;
  std::vector<std::pair<Outcome, int64_t>> outcomes;
  Environment environment;
  int64_t finished_at_us = 0;
};

// A kernel that its user brought as source: the document that keys of tasks name by digest
// (templates/source_kernel). The store does not look inside: who uses the document computes its digest again.
struct KernelRow {
  int64_t id = 0;
  std::string digest;    // 64 hexadecimal digits, of its meaning
  std::string tenant;    // who brought it; empty: nobody in particular. Each tenant has a row of its own
  std::string document;  // any bytes, at most kMostKernelBytes
  int64_t brought_at_us = 0;
};
inline constexpr size_t kMostKernelBytes = size_t{66} << 20;  // 64 MiB of files, and what is said of them

// A document computed from records: a predictor, a cover set.
struct LearnedRow {
  int64_t id = 0;
  std::string kind;        // "predictor", "cover": its writer defines the document
  std::string op, target;  // operator and target it is about; empty: several
  int64_t until_record_id = 0;
  std::string document;  // JSON
  int64_t made_at_us = 0;
};

}  // namespace tuner
