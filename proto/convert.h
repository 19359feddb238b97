// Converts messages to our types and back. No other file knows both.
//
// Everything from a peer passes through a from_proto(); its result is as trustworthy as a value that this
// program made. Refusals are InvalidArgument and start with the field's path, as in "results[3].run_ns[0]:
// ...". The other direction checks nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler_core/base/measure_limits.h"
#include "compiler_core/base/status.h"
#include "db/records.h"
#include "db/resolve/resolve.h"
#include "measure.pb.h"
#include "record.pb.h"
#include "templates/workload/workload.h"
#include "tuning.pb.h"

namespace tuner {

// Limits for each repeated or text field of a peer's message.
inline constexpr int kMaxSamples = 10'000;  // per record
inline constexpr int kMaxResultsPerSync = 64;
inline constexpr int kMaxRacesPerSync = 16;
inline constexpr int kMaxFinalists = static_cast<int>(kRaceFinalists.most);
inline constexpr int kMaxBases = 64;
inline constexpr int kMaxHeldPerSync = 1'024;
inline constexpr auto kMaxUses = static_cast<int64_t>(kJobUses.most);
inline constexpr int kMaxTasksPerJob = 4'096;
inline constexpr int kMaxTrialsPerTask = static_cast<int>(kJobTrials.most);
inline constexpr size_t kMaxTextBytes = 64 << 10;  // per text field

v1::Outcome to_proto(Outcome outcome);
Result<Outcome> from_proto(v1::Outcome outcome, std::string_view field);
v1::JobState to_proto(JobState state);
Result<JobState> from_proto(v1::JobState state, std::string_view field);

// A zero in the message means the default of MeasureOptions.
void to_proto(const MeasureOptions& options, v1::MeasureOptions* out);
Result<MeasureOptions> from_proto(const v1::MeasureOptions& options, std::string_view field = "options");

void to_proto(const Environment& environment, v1::Environment* out);
Result<Environment> from_proto(const v1::Environment& environment, std::string_view field = "environment");

void to_proto(const MeasureRecord& record, v1::MeasureRecord* out);
Result<MeasureRecord> from_proto(const v1::MeasureRecord& record, std::string_view field = "record");
// Returns all results of one Sync, or the first refusal. One bad item does not end a session, so the daemon
// may also convert them one by one.
Result<std::vector<MeasureRecord>> results_from_proto(const v1::SyncRequest& request);

// `flops` is the workload's; it gives the message's gflops field, which is not read back.
void to_proto(const TunedConfig& tuned, int64_t flops, v1::TunedConfig* out);
Result<TunedConfig> from_proto(const v1::TunedConfig& tuned, std::string_view field = "tuned");

void to_proto(const Answer& answer, int64_t flops, v1::Answer* out);
Result<Answer> from_proto(const v1::Answer& answer, std::string_view field = "answer");

void to_proto(const JobRow::Task& task, v1::TaskSpec* out);
// The key must parse, be valid and be canonical, and so must the target.
Result<JobRow::Task> from_proto(const v1::TaskSpec& task, std::string_view field = "task");

// Returns a JobRow without id, state and times. The daemon checks that the search exists.
Result<JobRow> job_from_proto(const v1::SubmitRequest& request);
// OK if the documents have at most kMostSubmittedBytes together. InvalidArgument: what to do instead.
Status documents_fit(const v1::SubmitRequest& request);
inline constexpr size_t kMostSubmittedBytes = size_t{3} << 20;  // a daemon takes messages of 4 MiB
void to_proto(const JobRow& job, bool fresh, v1::SubmitRequest* out);
// The caller fills trials_done and best_gflops.
void to_proto(const JobRow& job, v1::JobSummary* out);
// Returns the summary as a JobRow; trials_done and best_gflops stay in the message.
Result<JobRow> from_proto(const v1::JobSummary& summary, std::string_view field = "job");

// A trial with what its record tells people: outcome, time, message.
void to_proto(const TrialWithRecord& trial, v1::TrialResult* out);
// The record's only sample is its time.
Result<TrialWithRecord> from_proto(const v1::TrialResult& result, std::string_view field = "result");

void to_proto(const RaceOptions& options, v1::RaceOptions* out);
// Returns what a race found. The caller fills job, task and time. Each finalist must have as many sentinel
// times and processes as samples, and the winner and its ties must be finalists. The error of `result` must
// be empty.
Result<RaceRow> from_proto(const v1::RaceResult& result, std::string_view field = "race");
// race_id and attempt are the caller's to fill.
void to_proto(const RaceRow& race, v1::RaceResult* out);
// A stored race without its result and trials, which the caller fills.
void to_proto(const RaceRow& race, v1::StoredRace* out);
// The race with its result, if it has one; else what the message tells of it, with finalists without samples.
Result<RaceRow> from_proto(const v1::StoredRace& race, std::string_view field = "race");

// Fills what a worker needs to run a leased trial, except input_seed and best_ns, which the caller fills.
void to_proto(const TrialRow& trial, const JobRow::Task& task, const MeasureOptions& options, v1::Lease* out);
struct LeasedTrial {
  TrialRow trial;  // has id, template, config, attempt and fencing
  JobRow::Task task;
  MeasureOptions options;
  uint64_t input_seed = 0;
  double best_ns = 0;
};
Result<LeasedTrial> from_proto(const v1::Lease& lease, std::string_view field = "lease");

}  // namespace tuner
