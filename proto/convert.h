// Messages <-> our types: the only place that knows both.
//
// Everything that comes from a peer passes through a from_proto(): what it returns may be trusted as much as
// what this program made itself. Refusals are InvalidArgument and start with the field's path, as
// "results[3].run_ns[0]: ...". In the other direction nothing is checked.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/records.h"
#include "db/resolve/resolve.h"
#include "measure.pb.h"
#include "record.pb.h"
#include "templates/workload/workload.h"
#include "tuning.pb.h"

namespace tuner {

// The most of each repeated or text field that is taken from a peer.
inline constexpr int kMaxSamples = 10'000;  // of one record
inline constexpr int kMaxResultsPerSync = 64;
inline constexpr int kMaxRacesPerSync = 16;
inline constexpr int kMaxFinalists = 64;
inline constexpr int kMaxBases = 64;
inline constexpr int kMaxHeldPerSync = 1'024;
inline constexpr int64_t kMaxUses = 1'000'000'000;
inline constexpr int kMaxTasksPerJob = 4'096;
inline constexpr int kMaxTrialsPerTask = 10'000'000;
inline constexpr size_t kMaxTextBytes = 64 << 10;  // of one text field

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
// The results of one Sync: all of them or the first refusal. A session goes on when an item of it is refused,
// so the daemon may also convert them one by one.
Result<std::vector<MeasureRecord>> results_from_proto(const v1::SyncRequest& request);

// `flops`: of the workload, for the derived gflops of the message (which is not read back).
void to_proto(const TunedConfig& tuned, int64_t flops, v1::TunedConfig* out);
Result<TunedConfig> from_proto(const v1::TunedConfig& tuned, std::string_view field = "tuned");

void to_proto(const Answer& answer, int64_t flops, v1::Answer* out);
Result<Answer> from_proto(const v1::Answer& answer, std::string_view field = "answer");

void to_proto(const JobRow::Task& task, v1::TaskSpec* out);
// The key must parse, be valid and be canonical; so must the target.
Result<JobRow::Task> from_proto(const v1::TaskSpec& task, std::string_view field = "task");

// A JobRow without id, state and times. Whether the search is known is the daemon's to check.
Result<JobRow> job_from_proto(const v1::SubmitRequest& request);
void to_proto(const JobRow& job, bool fresh, v1::SubmitRequest* out);
// trials_done and best_gflops are the caller's to fill.
void to_proto(const JobRow& job, v1::JobSummary* out);
// The summary as a JobRow (trials_done and best_gflops stay in the message).
Result<JobRow> from_proto(const v1::JobSummary& summary, std::string_view field = "job");

void to_proto(const RaceOptions& options, v1::RaceOptions* out);
// What a race found, as a row without job, task and time, which are the caller's to fill. Finalists have as
// many sentinel times and processes as samples; the winner and its ties are among them. The result's error
// must be empty.
Result<RaceRow> from_proto(const v1::RaceResult& result, std::string_view field = "race");

// What a worker needs to run a leased trial. input_seed and best_ns are the caller's to fill.
void to_proto(const TrialRow& trial, const JobRow::Task& task, const MeasureOptions& options, v1::Lease* out);
struct LeasedTrial {
  TrialRow trial;  // id, template, config, attempt, fencing
  JobRow::Task task;
  MeasureOptions options;
  uint64_t input_seed = 0;
  double best_ns = 0;
};
Result<LeasedTrial> from_proto(const v1::Lease& lease, std::string_view field = "lease");

}  // namespace tuner
