#include "measure_server/runner/sampling.h"

#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/base/statistics.h"
#include "measure_server/runner/calm_gate.h"

namespace tuner {
namespace {

double clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

bool known_well_enough(const SamplingOptions& options, const Samples& s) {
  if (options.precision <= 0) return false;
  if (s.run_ns.size() >= 3) {
    const MedianEstimate e = estimate_median(s.run_ns);
    if (e.half_width < options.precision * e.median) return true;
  }
  if (options.slow_above_ns <= 0 || s.run_ns.size() < 2) return false;
  const MedianEstimate e = estimate_median(options.slow_by_cpu_time ? s.cpu_ns : s.run_ns);
  return e.median - e.half_width > options.slow_above_ns;
}

}  // namespace

bool ticks_are_steady() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;  // "invariant TSC"
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

// Of some readings the shortest: nobody came between.
ClockPair read_clocks() {
  ClockPair best;
  for (int i = 0; i < 8; ++i) {
    const double before = monotonic_ns();
    const uint64_t ticks = steady_ticks();
    const double after = monotonic_ns();
    if (i == 0 || after - before < best.reading_ns)
      best = {.ns = before + (after - before) / 2, .reading_ns = after - before, .ticks = ticks};
  }
  return best;
}

double ns_of_tick(const ClockPair& before, const ClockPair& after) {
  if (!ticks_are_steady() || after.ticks <= before.ticks) return 0;
  return (after.ns - before.ns) / static_cast<double>(after.ticks - before.ticks);
}

double monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
double thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
double process_cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

// From the samples' median absolute deviation, which one pre-empted sample does not move, as of many samples
// of normal noise. Of few the interval is too narrow (of nine it holds the median in 85 % of cases): the
// noise of a shared host is spikes upwards, and asking three samples for a true 95 % would have every
// candidate sampled to the end.
MedianEstimate estimate_median(std::vector<double> samples) {
  const double n = static_cast<double>(samples.size());
  MedianEstimate out{median_in_place(samples), std::numeric_limits<double>::infinity()};
  if (n < 2) return out;
  for (double& x : samples) x = std::fabs(x - out.median);
  // 1.4826: median absolute deviation -> standard deviation; 1.2533: of a mean -> of a median; 1.96: -> 95 %.
  out.half_width = 1.96 * 1.2533 * 1.4826 * median_in_place(samples) / std::sqrt(n);
  return out;
}

bool warm_up(double step_ns, double limit_ns, double hopeless_ns, const TakeSample& take, double* call_ns,
             double known_ns) {
  constexpr size_t kPatience = 3;  // steps that have to bring nothing
  constexpr double kFaster = 0.99, kMostCalls = 1 << 20;
  const double as_fast_ns = known_ns / kFaster;
  std::vector<double> steps;  // nanoseconds of a call
  double taken_ns = 0;
  for (int64_t calls = 1; steps.empty() || taken_ns < limit_ns;) {
    Sample sample;
    if (!take(calls, sample)) return false;
    taken_ns += sample.run_ns;
    steps.push_back(std::max(sample.run_ns / static_cast<double>(calls), 1.0));
    if (call_ns != nullptr) *call_ns = steps.back();
    if (steps.back() <= as_fast_ns) return true;
    if (hopeless_ns > 0 && steps.size() >= 2 && steps.back() > hopeless_ns) return true;
    const auto last = steps.end() - static_cast<std::ptrdiff_t>(std::min(kPatience, steps.size()));
    if (last != steps.begin() &&
        *std::min_element(last, steps.end()) >= kFaster * *std::min_element(steps.begin(), last))
      return true;
    calls = static_cast<int64_t>(std::clamp(step_ns / steps.back(), 1.0, kMostCalls));
  }
  return true;
}

int64_t calls_that_fill(double fill_ns, double call_ns) {
  constexpr int64_t kMost = 1 << 20;
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(fill_ns / std::max(call_ns, 1.0))), 1, kMost);
}

namespace {

// The first sample, of as many calls as fill the time. Does not raise their number after `stop_at_ns`.
bool fill_sample(const SamplingOptions& options, double call_ns, const TakeSample& take, int64_t& calls,
                 Sample& sample) {
  calls = calls_that_fill(options.fill_ns, call_ns);
  for (;;) {
    if (!take(calls, sample)) return false;
    if (sample.run_ns >= 0.9 * options.fill_ns || calls >= int64_t{1} << 26 ||
        monotonic_ns() > options.stop_at_ns)
      return true;
    const double grow = std::clamp(1.1 * options.fill_ns / std::max(sample.run_ns, 1.0), 1.2, 10.0);
    calls = static_cast<int64_t>(std::ceil(static_cast<double>(calls) * grow));
  }
}

}  // namespace

bool take_samples(const SamplingOptions& options, const TakeSample& take, Samples& out) {
  // A candidate so slow that warm caches cannot save it is not worth warming up: the third call of all is at
  // most 7 % slower than the last. Where slow is twice the best, one as good as the best is not called so
  // beside any neighbour.
  constexpr double kHopeless = 1.25;
  constexpr size_t kFewest = 3;
  const double limit = options.cut_above_ns;
  double call_ns = 0;
  if (!warm_up(options.fill_ns / kWarmUpSteps, options.warm_up_ns, kHopeless * limit, take, &call_ns))
    return false;
  TakeSample counted = take;
  if (options.gate != nullptr) {
    options.gate->give_up_above(kMostDisturbed * limit);
    counted = [&](int64_t calls, Sample& s) { return options.gate->take(calls, take, s); };
  }
  Sample sample;
  int64_t calls = 1;
  if (!fill_sample(options, call_ns, counted, calls, sample)) return false;
  std::vector<bool> calm;
  const auto record = [&] {
    out.run_ns.push_back(sample.run_ns / static_cast<double>(calls));
    out.cpu_ns.push_back(sample.cpu_ns / static_cast<double>(calls));
    calm.push_back(sample.calm);
    if (!sample.calm) ++out.disturbed;
  };
  record();
  const double surely = sample.calm ? limit : kMostDisturbed * limit;
  if (limit > 0 && out.run_ns[0] > surely && (!options.slow_by_cpu_time || out.cpu_ns[0] > surely)) {
    out.cut = true;
    return true;
  }
  while (static_cast<int>(out.run_ns.size()) < options.repeats && monotonic_ns() < options.stop_at_ns) {
    if (known_well_enough(options, out)) break;
    if (options.between && !options.between()) return false;
    if (!counted(calls, sample)) return false;
    record();
  }
  if (out.disturbed == 0 || out.run_ns.size() - static_cast<size_t>(out.disturbed) < kFewest) return true;
  size_t kept = 0;
  for (size_t i = 0; i < calm.size(); ++i) {
    if (!calm[i]) continue;
    out.run_ns[kept] = out.run_ns[i];
    out.cpu_ns[kept++] = out.cpu_ns[i];
  }
  out.run_ns.resize(kept);
  out.cpu_ns.resize(kept);
  out.disturbed = 0;
  return true;
}

}  // namespace tuner
