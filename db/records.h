// The values a database holds: jobs, trials, measure records, races, tuned configs, what was learned. No
// behaviour, no engine; store.h stores them, formats and messages carry them.
//
// Keys are canonical text (Workload::key(), Target::name(), Config::to_text()). Times are of the Unix clock,
// UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuner {

// As in proto/record.proto; the same names in lower case in databases and JSON.
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

// What was computed from records: a predictor, a cover set.
struct LearnedRow {
  int64_t id = 0;
  std::string kind;        // "predictor", "cover": whoever writes it tells what the document is
  std::string op, target;  // what it is about; empty: several
  int64_t until_record_id = 0;
  std::string document;  // JSON
  int64_t made_at_us = 0;
};

}  // namespace tuner
