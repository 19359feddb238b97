// A duel: a kernel and its rival timed in turns, in fresh processes, until the ratio of their times is
// known.
//
// Each round is a heat of the runner (measure_server/runner/race.h), so that both have the same core, the
// same minute and the same neighbours. The ratio is taken process by process; what it rests on is the lower
// quartile of a process's samples, as in any race (compiler_core/base/process_times.h).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "compiler_core/base/process_times.h"
#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

struct DuelOptions {
  int fewest = 6, most = 27;  // processes of each; if `limit` ends first, three with a certified interval
  double narrow = 0.02;       // it ends when half of the interval, over the ratio, is this
  double certified = 0.05;    // at most this, to be certified
  int most_spoilt = 6;        // heats that were disturbed and are run again
  std::chrono::milliseconds limit{9000};  // no heat begins after this
};

struct DuelResult {
  // Of the kernel or, with `rival_failed`, its rival; kOk: none failed. A heat whose times are doubted is a
  // disturbed one. The third within five heats is a failure.
  RaceReply::Candidate failed;
  bool rival_failed = false;
  Spread ratio;  // the rival's time over the kernel's; the range in which one more pair lies in 95 % of cases
  double time_ns = 0, rival_time_ns = 0;
  int processes = 0, turns = 0, disturbed = 0;
  std::string missing;  // why it is not certified; empty: it is
};

// `base` is used for every heat but for its ids, pulses and digests. `heat` runs one, usually
// RunnerClient::race. Errors are those of `heat`.
Result<DuelResult> run_duel(const RunRequest& base, const RaceRequest::Candidate& kernel,
                            const RaceRequest::Candidate& rival, const DuelOptions& options,
                            const std::function<Result<RaceReply>(const RaceRequest&)>& heat);

// The estimate of the ratio from the time of each process of both, in pairs; zeros without pairs. With one
// the range is unbounded.
Spread ratio_of_pairs(const std::vector<double>& kernel_ns, const std::vector<double>& rival_ns);

}  // namespace tuner
