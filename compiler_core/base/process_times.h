// What samples of one kernel say that were taken in several processes, one after another, as a race takes
// them.
//
// The time of a process is the lower quartile of its samples there. The caches and memory that cores share
// have a state of their own, which neighbours choose: beside some, 9 MB of weights took 915 us for half a
// minute, then 860 again, and the memory sentinel 62 and 58. So each process also has the level of the memory
// beside it, and where at least half of them had the calmer state, these alone give the time.
//
// Pure arithmetic; races, the database, reports and `verify --times` share it.
#pragma once

#include <span>
#include <vector>

namespace tuner {

// Parallel arrays, one element a sample. `pulses_ns` and `memory_ns` may be empty: not timed.
struct ProcessSamples {
  std::span<const double> times_ns, pulses_ns, memory_ns;
  std::span<const int> process;
  bool exact_clock =
      false;  // the device's clock says the same of every call (KernelLoader::clock_is_exact())
};

struct ProcessTime {
  int process = 0;
  double time_ns = 0;    // lower quartile
  double ratio = 0;      // the same of time divided by the pulse; 0: not timed
  double memory_ns = 0;  // median of the memory sentinel; 0: not timed
  bool exact = false;    // an exact clock said the same of all its samples
};

// In the order of their numbers.
std::vector<ProcessTime> process_times(const ProcessSamples& samples);

// A process beside memory slower than the calmest by more than this is not one of the calm ones.
inline constexpr double kCalmMemory = 1.04;
// Leaves out those that were not beside calm memory, if at least half of all were, and three.
std::vector<ProcessTime> beside_calm_memory(std::vector<ProcessTime> all);

// Median over the processes; 0: not timed, or no processes.
double memory_level_ns(std::span<const ProcessTime> processes);

// Whether these times are known, not estimated: an exact clock said the same in all of them. A clock that
// contradicts itself is not believed to be exact.
bool are_exact(std::span<const ProcessTime> processes);

// An estimate, and the range in which one more process would lie in 95 % of cases.
struct Spread {
  double value = 0, low = 0, high = 0;
  double half_width() const { return value > 0 ? (high - low) / 2 / value : 0; }  // as a fraction
};
// What a machine does between one minute and the next that processes within seconds of each other do not show
// (95 %). On two shared cores of a Zen 5, 12 kernels with up to 20 MB of weights, three races of each and
// three measurements after each race (`bench_cpu --set large_weights --published 3`): of the 108, 16 lay
// outside of intervals with 0.012, 3 with 0.017.
inline constexpr double kDriftHalfWidth = 0.017;

// The trimmed mean of the logarithms over the processes beside calm memory; zeros without processes. A time's
// spread is at most as wide as its ratio's, because the time refers to the clock that the processes ran at.
// Exact times have no width.
Spread time_spread(const std::vector<ProcessTime>& processes);
Spread ratio_spread(const std::vector<ProcessTime>& processes);

}  // namespace tuner
