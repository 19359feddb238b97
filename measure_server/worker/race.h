// A race: heats of the finalists, each in fresh processes, until the winner or the ties are certain.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

struct RaceEntry {
  v1::RaceCandidate candidate;
  RaceRequest::Candidate built;
  int64_t code_bytes = 0;  // instructions of its binary; 0: not known
};
// What is known of finalists before they race: ids of entries, or empty.
struct RaceRoles {
  // It stays for kFewestProcesses heats however slow it is, as people want to know the gain over it.
  std::string default_trial;
  // The answer of before: so does this one, and it wins unless another one is certainly faster.
  std::string stored_trial;
};

// Runs heats through `heat` (usually RunnerClient::race). It stops when one finalist is left, or more
// processes would not separate the ties, and the winner's interval is narrow. It runs at most
// options.processes heats, or more while the interval is wider than kWidestCertified (but not twice as wide,
// which more would not mend) or the stored answer may be slower than a tie, and begins none after
// options.limit_s. A heat with mostly disturbed turns is
// repeated; six such heats end the race. `base` is used for every heat. A finalist that fails leaves the
// race. Where all times are an exact clock's, one heat decides.
//
// Of finalists that tie (race_statistics.h) always the same wins: the stored answer, else the default, else
// the one with the smallest code, else the first by template and config. RaceResult.won_by says which it was.
// It stays in the race until its interval is narrow.
//
// The result is certified if its interval reaches at most kWidestCertified to either side and most turns that
// count were calm. If only the interval is too wide, the winner is that of the comparison all the same:
// whatever made the processes differ, its rivals ran beside it. If most turns were disturbed, or there were
// too few processes, nobody won: the winner is then the stored answer, else the first entry that was measured
// (in the trials' order), with its own time, and no tie and no bound are claimed.
//
// If nothing could be measured, the result has an error instead of a winner. The caller fills identity,
// options and environment. Errors are those of `heat`. `tell` is called after each heat with the progress.
Result<v1::RaceResult> run_heats(const std::vector<RaceEntry>& entries, const RaceRoles& roles,
                                 const RunRequest& base, const v1::RaceOptions& options,
                                 const std::function<Result<RaceReply>(const RaceRequest&)>& heat,
                                 const std::function<void(const v1::RaceCourse&)>& tell = {});

// Half of the winner's 95 % interval, as a fraction of its time. Equal to kCertifiedHalfWidth in
// db/records.h, which a worker does not include.
inline constexpr double kWidestCertified = 0.05;

// Replaces zeros by the defaults of proto/record.proto.
v1::RaceOptions with_defaults(v1::RaceOptions options);

}  // namespace tuner
