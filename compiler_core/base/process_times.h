// What samples of one kernel say that were taken in several processes, one after another, as a race takes them.
//
// The time of a process is the lower quartile of its samples there. The caches and memory that cores share have a state of
// their own, which neighbours choose: beside some, 9 MB of weights took 915 us for half a minute, then 860 again, and the
// memory sentinel 62 and 58. So each process also has the level of the memory beside it, and where at least half of them
// had the calmer state, these alone give the time.
//
// Pure arithmetic; races, the database and `verify --times` share it.
#pragma once

#include <span>
#include <vector>

namespace tuner {

// Parallel arrays, one element a sample. `pulses_ns` and `memory_ns` may be empty: not timed.
struct ProcessSamples {
  std::span<const double> times_ns, pulses_ns, memory_ns;
  std::span<const int> process;
};

struct ProcessTime {
  int process = 0;
  double time_ns = 0;    // lower quartile
  double ratio = 0;      // the same of time divided by the pulse; 0: not timed
  double memory_ns = 0;  // median of the memory sentinel; 0: not timed
};

// In the order of their numbers.
std::vector<ProcessTime> process_times(const ProcessSamples& samples);

// A process beside memory slower than the calmest by more than this is not one of the calm ones.
inline constexpr double kCalmMemory = 1.04;
// Leaves out those that were not beside calm memory, if at least half of all were, and three.
std::vector<ProcessTime> beside_calm_memory(std::vector<ProcessTime> all);

// Median over the processes; 0: not timed, or no processes.
double memory_level_ns(std::span<const ProcessTime> processes);

}  // namespace tuner
