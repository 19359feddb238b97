#include "compiler_core/base/process_times.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

struct Samples {
  std::vector<double> times_ns, ratios, memory_ns;
};

bool all_equal(const std::vector<double>& values) {
  return std::ranges::all_of(values, [&](double value) { return value == values.front(); });
}

}  // namespace

std::vector<ProcessTime> process_times(const ProcessSamples& samples) {
  std::map<int, Samples> of_process;
  const size_t n = std::min(samples.times_ns.size(), samples.process.size());
  for (size_t i = 0; i < n; ++i) {
    Samples& s = of_process[samples.process[i]];
    s.times_ns.push_back(samples.times_ns[i]);
    if (i < samples.pulses_ns.size()) s.ratios.push_back(samples.times_ns[i] / samples.pulses_ns[i]);
    if (i < samples.memory_ns.size()) s.memory_ns.push_back(samples.memory_ns[i]);
  }
  std::vector<ProcessTime> out;
  for (auto& [process, s] : of_process) {
    const bool exact = samples.exact_clock && all_equal(s.times_ns) && all_equal(s.ratios);
    out.push_back({.process = process,
                   .time_ns = lower_quartile(std::move(s.times_ns)),
                   .ratio = lower_quartile(std::move(s.ratios)),
                   .memory_ns = median_in_place(s.memory_ns),
                   .exact = exact});
  }
  return out;
}

bool are_exact(std::span<const ProcessTime> processes) {
  return !processes.empty() && std::ranges::all_of(processes, [&](const ProcessTime& p) {
    return p.exact && p.time_ns == processes.front().time_ns && p.ratio == processes.front().ratio;
  });
}

std::vector<ProcessTime> beside_calm_memory(std::vector<ProcessTime> all) {
  constexpr size_t kFewest = 3;
  if (all.empty()) return all;
  const auto calmest =
      std::min_element(all.begin(), all.end(),
                       [](const ProcessTime& a, const ProcessTime& b) { return a.memory_ns < b.memory_ns; });
  const double limit = kCalmMemory * calmest->memory_ns;
  const auto calm = [&](const ProcessTime& p) { return p.memory_ns <= limit; };
  const auto count = static_cast<size_t>(std::count_if(all.begin(), all.end(), calm));
  if (count >= kFewest && 2 * count >= all.size())
    std::erase_if(all, [&](const ProcessTime& p) { return !calm(p); });
  return all;
}

double memory_level_ns(std::span<const ProcessTime> processes) {
  std::vector<double> levels;
  for (const ProcessTime& p : processes) levels.push_back(p.memory_ns);
  return median_in_place(levels);
}

namespace {

// Mean and half-width, of logarithms.
struct LogSpread {
  double mean = 0, half = 0;
  Spread at(double half_width) const {
    return {std::exp(mean), std::exp(mean - half_width), std::exp(mean + half_width)};
  }
};
LogSpread log_spread(const std::vector<ProcessTime>& processes, double ProcessTime::*figure) {
  std::vector<double> logs;
  for (const ProcessTime& p : beside_calm_memory(processes)) logs.push_back(std::log(p.*figure));
  const Mean t = trimmed_mean_of(std::move(logs));
  // One value has no deviation: 0 times whatever Student's t is.
  const double student = student_quantile(0.975, static_cast<double>(std::max<size_t>(t.degrees, 1)));
  const double chance = student * t.deviation * std::sqrt(1 + 1 / static_cast<double>(t.n));
  // glibc's hypot() has a version of 2.35, and runners start on 2.34.
  return {t.mean, std::sqrt(chance * chance + kDriftHalfWidth * kDriftHalfWidth)};
}

}  // namespace

Spread time_spread(const std::vector<ProcessTime>& processes) {
  if (processes.empty()) return {};
  if (const double ns = processes.front().time_ns; are_exact(processes)) return {ns, ns, ns};
  const LogSpread time = log_spread(processes, &ProcessTime::time_ns);
  return time.at(std::min(time.half, log_spread(processes, &ProcessTime::ratio).half));
}

Spread ratio_spread(const std::vector<ProcessTime>& processes) {
  if (processes.empty()) return {};
  if (const double exact = processes.front().ratio; are_exact(processes)) return {exact, exact, exact};
  const LogSpread ratio = log_spread(processes, &ProcessTime::ratio);
  return ratio.at(ratio.half);
}

}  // namespace tuner
