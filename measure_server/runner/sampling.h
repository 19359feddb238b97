// How long is one call: untimed calls until operands lie as a loop of calls leaves them, then samples of as
// many calls as fill a given time, until the median is known. The same for CPU and GPU candidates; what
// differs is how a sample is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tuner {

class CalmGate;  // calm_gate.h

// Times of one sample: of all its calls together, in nanoseconds.
struct Sample {
  double run_ns = 0, cpu_ns = 0;
  bool calm = true;     // nobody was seen to disturb it
  double pulse_ns = 0;  // of the pulses beside it, in the mean; 0: there were none
};

// How whoever times warm calls warms up: steps of a tenth of a sample, for 0.1 s at most.
inline constexpr double kWarmUpSteps = 10, kWarmUpNs = 1e8;

struct SamplingOptions {
  double fill_ns = 1e6;           // one sample is as many calls as take this long; 0: one call
  double warm_up_ns = kWarmUpNs;  // at most, before the first sample
  int repeats = 9;                // samples at most
  // Half of the median's 95 % interval over the median that is enough; 0: all `repeats`.
  double precision = 0.02;
  double stop_at_ns = 0;     // CLOCK_MONOTONIC: no further sample is begun after this
  double cut_above_ns = 0;   // per call: a first sample above this is the only one; 0: never
  double slow_above_ns = 0;  // per call: a median certainly above this is known well enough; 0: never
  // A pre-empted sample is slow by no fault of the kernel: it is cut, or found slow, only if its CPU time
  // says the same.
  bool slow_by_cpu_time = false;
  // Which calls count; null: all. Not asked while warming up. Not owned.
  CalmGate* gate = nullptr;
};

struct Samples {
  std::vector<double> run_ns, cpu_ns;  // per call, in order
  int disturbed = 0;                   // of these; 0 where enough others were calm: then only those are here
  bool cut = false;                    // the first was above the limit: a bound, not a time
};

using TakeSample = std::function<bool(int64_t calls, Sample&)>;

// Warms up: takes steps of as many calls as last `step_ns` (one at least) until none of the last three was
// more than 1 % faster than the best before them, or until `limit_ns` is over. One call is not enough: on a
// CPU whose last cache keeps what the others evict, 12 MB that somebody pushed out take 1160, 940, 620 and
// then 580 us to read again, 24 MB go on getting faster for a dozen passes. A step above `hopeless_ns` a call
// (0: none is) ends it after the second. False as soon as `take` is.
bool warm_up(double step_ns, double limit_ns, double hopeless_ns, const TakeSample& take);

// Calls `take(calls, sample)` until done; false as soon as it returns false. First it warms up; then the
// number of calls grows until they fill `fill_ns`, and the sample that does is the first that counts. Ends
// when the median is known to `precision` (3 samples at least), or is certainly above `slow_above_ns` (2 at
// least), or `repeats` are taken. Disturbed samples are left out where three calm ones stay. A disturbed
// first sample is cut only if it is so slow that no neighbour explains it.
bool take_samples(const SamplingOptions& options, const TakeSample& take, Samples& out);

// The first part of that: finds how many calls fill `fill_ns` and takes one sample of so many. False as soon
// as `take` is. Does not try more calls after `stop_at_ns`.
bool fill_sample(double fill_ns, double stop_at_ns, const TakeSample& take, int64_t& calls, Sample& sample);

// The median and half of its 95 % interval. `samples` is not empty; of one sample the half-width is infinite.
struct MedianEstimate {
  double median = 0, half_width = 0;
};
MedianEstimate estimate_median(std::vector<double> samples);

// CLOCK_MONOTONIC, or the CPU time of this thread.
double monotonic_ns();
double thread_cpu_ns();

}  // namespace tuner
