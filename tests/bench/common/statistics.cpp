#include "tests/bench/common/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace tuner {
namespace {

constexpr int kResamples = 2000;

// `figure(rounds)` is the figure of the rounds that were drawn.
template <class F>
Figure bootstrap(size_t rounds, uint64_t seed, const F& figure) {
  std::vector<size_t> drawn(rounds);
  for (size_t i = 0; i < rounds; ++i) drawn[i] = i;
  Figure interval{.middle = figure(drawn)};
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

double quantile_of(const std::vector<double>& samples, const std::vector<size_t>& rounds, double q) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const size_t round : rounds) values.push_back(samples[round]);
  return quantile(std::move(values), q);
}

}  // namespace

Figure median_interval(const std::vector<double>& samples, uint64_t seed) {
  return quantile_interval(samples, 0.5, seed);
}

Figure ratio_interval(const std::vector<double>& numerator, const std::vector<double>& denominator,
                      uint64_t seed) {
  return quantile_ratio_interval(numerator, denominator, 0.5, seed);
}

Figure quantile_interval(const std::vector<double>& samples, double q, uint64_t seed) {
  if (samples.empty()) return {};
  return bootstrap(samples.size(), seed,
                   [&](const std::vector<size_t>& rounds) { return quantile_of(samples, rounds, q); });
}

Figure quantile_ratio_interval(const std::vector<double>& numerator, const std::vector<double>& denominator,
                               double q, uint64_t seed) {
  if (denominator.empty()) return {};
  return bootstrap(denominator.size(), seed, [&](const std::vector<size_t>& rounds) {
    return quantile_of(numerator, rounds, q) / quantile_of(denominator, rounds, q);
  });
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double logs = 0;
  for (const double v : values) logs += std::log(v);
  return std::exp(logs / static_cast<double>(values.size()));
}

}  // namespace tuner
