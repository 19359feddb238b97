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
};

// Runs heats through `heat` (usually RunnerClient::race). It stops when one finalist is left, or more
// processes would not separate the ties, and the winner's interval is narrow. It runs at most
// options.processes heats, or more while the interval is wider than kWidestCertified, and begins none after
// options.limit_s. A heat with mostly disturbed turns is repeated; six such heats end the race. `base` is
// used for every heat. A finalist that fails leaves the race. `default_trial` is one of the entries or empty;
// it stays for kFewestProcesses heats however slow it is, because people want to know the gain over it.
//
// The result is certified if its interval reaches at most kWidestCertified to either side and most turns that
// count were calm. Otherwise the machine was too disturbed: the winner is then the first entry that was
// measured (in the trials' order), with its own time, and no tie and no bound are claimed.
//
// If nothing could be measured, the result has an error instead of a winner. The caller fills identity,
// options and environment. Errors are those of `heat`. `tell` is called after each heat with the progress.
Result<v1::RaceResult> run_heats(const std::vector<RaceEntry>& entries, const std::string& default_trial,
                                 const RunRequest& base, const v1::RaceOptions& options,
                                 const std::function<Result<RaceReply>(const RaceRequest&)>& heat,
                                 const std::function<void(const v1::RaceCourse&)>& tell = {});

// Half of the winner's 95 % interval, as a fraction of its time. Equal to kCertifiedHalfWidth in
// db/records.h, which a worker does not include.
inline constexpr double kWidestCertified = 0.05;

// Replaces zeros by the defaults of proto/record.proto.
v1::RaceOptions with_defaults(v1::RaceOptions options);

}  // namespace tuner
