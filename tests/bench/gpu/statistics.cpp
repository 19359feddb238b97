#include "tests/bench/gpu/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace tuner {
namespace {

constexpr int kResamples = 2000;

// `figure(rounds)` is the figure of the rounds that were drawn.
template <class F>
Interval bootstrap(size_t rounds, uint64_t seed, const F& figure) {
  std::vector<size_t> drawn(rounds);
  for (size_t i = 0; i < rounds; ++i) drawn[i] = i;
  Interval interval{.middle = figure(drawn)};
  std::mt19937_64 random(seed);
  std::vector<double> figures(kResamples);
  for (double& f : figures) {
    for (size_t& round : drawn) round = random() % rounds;  // the bias of % is below 1e-15 here
    f = figure(drawn);
  }
  std::sort(figures.begin(), figures.end());
  interval.low = figures[kResamples * 25 / 1000];
  interval.high = figures[kResamples * 975 / 1000 - 1];
  return interval;
}

double median_of(const std::vector<double>& samples, const std::vector<size_t>& rounds) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const size_t round : rounds) values.push_back(samples[round]);
  return median(std::move(values));
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Interval median_interval(const std::vector<double>& samples, uint64_t seed) {
  if (samples.empty()) return {};
  return bootstrap(samples.size(), seed,
                   [&](const std::vector<size_t>& rounds) { return median_of(samples, rounds); });
}

Interval ratio_interval(const std::vector<double>& numerator, const std::vector<double>& denominator,
                        uint64_t seed) {
  if (denominator.empty()) return {};
  return bootstrap(denominator.size(), seed, [&](const std::vector<size_t>& rounds) {
    return median_of(numerator, rounds) / median_of(denominator, rounds);
  });
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double logs = 0;
  for (const double v : values) logs += std::log(v);
  return std::exp(logs / static_cast<double>(values.size()));
}

}  // namespace tuner
