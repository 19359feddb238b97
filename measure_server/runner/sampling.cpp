#include "measure_server/runner/sampling.h"

#include <time.h>

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

double clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Half the width of the median's 68 % interval over the median, from the spread of the samples.
double relative_precision(std::vector<double> v) {
  const size_t n = v.size();
  const auto median = [&] {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(n / 2), v.end());
    return v[n / 2];
  };
  const double m = median();
  for (double& x : v) x = std::fabs(x - m);
  // 1.4826: median absolute deviation -> standard deviation; 1.2533: of a mean -> of a median (both: normal
  // noise).
  return 1.2533 * 1.4826 * median() / std::sqrt(static_cast<double>(n)) / m;
}

}  // namespace

double monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
double thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

bool fill_sample(double fill_ns, double stop_at_ns, const std::function<bool(int64_t, Sample&)>& take,
                 int64_t& calls, Sample& sample) {
  if (!take(1, sample)) return false;
  calls = 1;
  if (sample.run_ns < fill_ns)
    calls =
        std::clamp<int64_t>(static_cast<int64_t>(0.5 * fill_ns / std::max(sample.run_ns, 20.0)), 1, 1 << 20);
  for (;;) {
    if (!take(calls, sample)) return false;
    if (sample.run_ns >= 0.9 * fill_ns || calls >= int64_t{1} << 26 || monotonic_ns() > stop_at_ns)
      return true;
    const double grow = std::clamp(1.1 * fill_ns / std::max(sample.run_ns, 1.0), 1.2, 10.0);
    calls = static_cast<int64_t>(std::ceil(static_cast<double>(calls) * grow));
  }
}

bool take_samples(const SamplingOptions& options, const std::function<bool(int64_t, Sample&)>& take,
                  Samples& out) {
  Sample sample;
  int64_t calls = 1;
  if (!fill_sample(options.fill_ns, options.stop_at_ns, take, calls, sample)) return false;
  const auto record = [&] {
    out.run_ns.push_back(sample.run_ns / static_cast<double>(calls));
    out.cpu_ns.push_back(sample.cpu_ns / static_cast<double>(calls));
  };
  record();
  const double limit = options.cut_above_ns;
  if (limit > 0 && out.run_ns[0] > limit && (!options.cut_by_cpu_time || out.cpu_ns[0] > limit)) {
    out.cut = true;
    return true;
  }
  while (static_cast<int>(out.run_ns.size()) < options.repeats && monotonic_ns() < options.stop_at_ns) {
    if (out.run_ns.size() >= 3 && relative_precision(out.run_ns) < 0.01) break;
    if (!take(calls, sample)) return false;
    record();
  }
  return true;
}

}  // namespace tuner
