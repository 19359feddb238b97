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

// Runs heats through `heat` (RunnerClient::race, as a rule) until one finalist is left, or the ties cannot be
// told apart by more processes, and the winner's interval is narrow; at most options.processes of them, and
// more while the interval is wider than kWidestCertified; none begun after options.limit_s. A
// heat most of whose turns were disturbed is run again; six of them end the race. `base` is of
// every heat. A finalist that fails leaves the race. `default_trial`, one of the entries or empty, stays for
// kFewestProcesses heats however slow it is: the gain over it is what people tune for.
//
// The result is certified when its interval is at most kWidestCertified wide to either side and most turns
// that count were calm. Else the machine was too disturbed to tell: the winner is the first entry that was
// measured (the trials' order), with its own time, and no tie and no bound is claimed.
//
// The result has an error instead of a winner when nothing could be measured; identity, options and
// environment are the caller's to fill. Errors are `heat`'s. `tell` hears after each heat how far it is.
Result<v1::RaceResult> run_heats(const std::vector<RaceEntry>& entries, const std::string& default_trial,
                                 const RunRequest& base, const v1::RaceOptions& options,
                                 const std::function<Result<RaceReply>(const RaceRequest&)>& heat,
                                 const std::function<void(const v1::RaceCourse&)>& tell = {});

// Half of the winner's 95 % interval, as a fraction of its time: db/records.h's kCertifiedHalfWidth, which a
// worker does not see.
inline constexpr double kWidestCertified = 0.05;

// Zeros replaced by the defaults of proto/record.proto.
v1::RaceOptions with_defaults(v1::RaceOptions options);

}  // namespace tuner
