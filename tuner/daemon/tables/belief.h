// Belief: whether a result can be. Three things are asked of it that its sender cannot talk away:
//
//   machine   is any call, peak or bandwidth beyond every machine of the target (machine_bound.h)
//   clock     do its parts fit into the time between its lease and its arrival, by the daemon's own clock
//   itself    does it contradict itself: right, but beyond the tolerance; a winner outside its own samples
//
// What cannot be goes into quarantine (db/quarantine.h): nothing is ever decided from it. What can be is
// believed, also if it is a lie: a time that is a little too good is caught when its config races.
//
// Pure, and a few comparisons a sample: it stands in the way of every result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/records.h"
#include "tuner/daemon/tables/machine_bound.h"
#include "tuner/daemon/tables/work.h"

namespace tuner {

// Clocks of two machines, and messages on their way, may differ by so much.
inline constexpr double kClockSlackMs = 2'000, kClockRatio = 1.02;

struct Circumstances {
  MachineBound bound;
  int repeats = 0;                 // samples that the lease asked for; 0: the default
  std::optional<int64_t> held_ms;  // since the worker was given it; empty: before a restart of the daemon
};

// Why the record cannot be, for people; nothing if it can.
std::optional<std::string> why_impossible(const MeasureRecord& record, const Circumstances& known);
// The same of a race's result. `finalists`: the trials that the race was given.
std::optional<std::string> why_impossible(const RaceRow& race, const std::vector<TrialRow>& finalists,
                                          const Circumstances& known);
// The same of what a worker says of its machine when it registers. `targets`: what it offers.
std::optional<std::string> why_impossible(double peak_gflops, double read_gbps,
                                          const std::vector<std::string>& targets);

}  // namespace tuner
