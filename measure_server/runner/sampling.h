// How long does one call take? First untimed calls, until operands lie as a loop of calls leaves them. Then
// samples, each of as many calls as fill a given time, until the median is known. CPU and GPU candidates
// share this; they differ in how a sample is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tuner {

class CalmGate;  // calm_gate.h

// Times of one sample, over all its calls together, in nanoseconds.
struct Sample {
  double run_ns = 0, cpu_ns = 0;
  bool calm = true;     // false if a disturbance was seen
  double pulse_ns = 0;  // mean of the pulses beside it; 0: there were none
};

// Warm calls are timed after a warm-up: steps of a tenth of a sample, for 0.1 s at most.
inline constexpr double kWarmUpSteps = 10, kWarmUpNs = 1e8;

// Somebody on the core's other hardware thread makes a kernel slower by less than this.
inline constexpr double kMostDisturbed = 2.5;

struct SamplingOptions {
  double fill_ns = 1e6;           // one sample is as many calls as last this long; 0: one call
  double warm_up_ns = kWarmUpNs;  // limit of the warm-up before the first sample
  int repeats = 9;                // samples at most
  // Stop once half the median's 95 % interval, divided by the median, is below this; 0: take all `repeats`.
  double precision = 0.02;
  double stop_at_ns = 0;     // CLOCK_MONOTONIC: start no sample after this
  double cut_above_ns = 0;   // per call: if the first sample is above this, take no more; 0: never
  double slow_above_ns = 0;  // per call: a median certainly above this is known well enough; 0: never
  // A pre-empted sample is slow through no fault of the kernel. If set, a sample is cut or found slow only if
  // its CPU time is slow too.
  bool slow_by_cpu_time = false;
  // Decides which calls count; null: all do. Not used while warming up. Not owned.
  CalmGate* gate = nullptr;
  // Called before each sample but the first; take_samples() returns false as soon as it does. Whatever it
  // does to the caches it must undo. Null: nothing.
  std::function<bool()> between;
};

struct Samples {
  std::vector<double> run_ns, cpu_ns;  // per call, in order
  int disturbed = 0;                   // how many of these were disturbed; 0 if enough others were calm: then
                                       // only the calm ones are here
  bool cut = false;                    // the first sample was above the limit: it is a bound, not a time
};

using TakeSample = std::function<bool(int64_t calls, Sample&)>;

// Warms up in steps of as many calls as last `step_ns` (at least one), until none of the last three steps was
// more than 1 % faster than the best before them, or until `limit_ns` is over. A step above `hopeless_ns` per
// call (0: no limit) ends it after the second step. A step as fast as `known_ns` (0: not known), which a call
// took when its operands lay warm before, ends it at once. Sets `call_ns`, if not null, to the time of a call
// in the last step. Returns false as soon as `take` does.
//
// One call is not enough. On a CPU whose last cache keeps what the others evict, 12 MB that somebody pushed
// out take 1160, 940, 620 and then 580 us to read again, and 24 MB get faster for a dozen passes.
bool warm_up(double step_ns, double limit_ns, double hopeless_ns, const TakeSample& take,
             double* call_ns = nullptr, double known_ns = 0);

// Calls `take(calls, sample)` until done; returns false as soon as `take` does. First it warms up, which says
// how many calls fill `fill_ns`. Where they do not, their number grows; the sample that fills is the first
// that counts. It ends when the median is known to `precision` (after at least 3 samples) or is certainly
// above `slow_above_ns` (at least 2), or when `repeats` are taken. Disturbed samples are left out if three
// calm ones remain. A disturbed first sample is cut only if no neighbour could explain its slowness.
bool take_samples(const SamplingOptions& options, const TakeSample& take, Samples& out);

// How many calls fill a sample where one takes `call_ns`, as a warm-up saw it. At least 1.
int64_t calls_that_fill(double fill_ns, double call_ns);

// The median and half of its 95 % interval. `samples` must not be empty; with one sample the half-width is
// infinite.
struct MedianEstimate {
  double median = 0, half_width = 0;
};
MedianEstimate estimate_median(std::vector<double> samples);

// The processor's counter, which runs at one rate whatever the clock does; 0 where there is none. It is read
// in place: code that can be called can be patched.
inline uint64_t steady_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}
// False: the counter changes its rate here (x86 CPUs before 2008), or is none.
bool ticks_are_steady();
// Both clocks at one moment, and how long reading the clock took.
struct ClockPair {
  double ns = 0, reading_ns = 0;
  uint64_t ticks = 0;
};
ClockPair read_clocks();
// What one tick took between two readings; 0: not known.
double ns_of_tick(const ClockPair& before, const ClockPair& after);

// Return CLOCK_MONOTONIC, and the CPU time of this thread and of all threads of this process.
double monotonic_ns();
double thread_cpu_ns();
double process_cpu_ns();

}  // namespace tuner
