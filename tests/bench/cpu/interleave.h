// Times of several contestants on this CPU, taken in turn: A, B, C, A, B, C, ... What changes slowly (clocks,
// heat, a neighbour) changes for all of them.
#pragma once

#include <chrono>
#include <functional>

#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_protocol.h"
#include "measure_server/runner/sampling.h"
#include "tests/bench/cpu/contestant.h"

namespace tuner {

struct TurnOptions {
  int rounds = 40;
  double fill_ns = 1e6;  // a batch of calls takes at least this long
  // kWarm: a turn begins with untimed calls until operands lie as a loop of calls leaves them. kRotate: calls
  // take turns on the `sets` of operands and every call counts. kFlush: each call is timed by itself, after
  // its operands have been put out of the caches.
  Caches caches = Caches::kWarm;
  int sets = 1;
  // One thread: the time of the calling thread on its CPU, so that a preempted batch does not look slow, and
  // calls that somebody disturbed are taken anew, as in trials and races (calm_gate.h).
  // More: the wall's; before each batch a wait until no other thread of this process spins, then calls that
  // are not timed until the contestant's own threads have found their cores.
  int threads = 1;
  // Nanoseconds; for tests of what is called how often. Undefined: as `threads` says.
  std::function<double()> clock_ns;
  // No round is begun after this.
  std::chrono::steady_clock::time_point stop_at = std::chrono::steady_clock::time_point::max();
};

// Fills `calls` and `ns` of each: every one has as many samples as rounds were whole.
void take_turns(const TurnOptions& options, std::vector<Contestant>& contestants);

}  // namespace tuner
