#include "db/stats.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tuner {

namespace {

double median_in_place(std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle)) + upper) / 2;
}

// The regularised incomplete beta function by its continued fraction (modified Lentz), for x below the mean.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kPrecision = 1e-15;
  constexpr int kMost = 10'000;
  const auto no_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / no_zero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m < kMost; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / no_zero(1 + even * d);
    c = no_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / no_zero(1 + odd * d);
    c = no_zero(1 + odd / c);
    value *= d * c;
    if (std::abs(d * c - 1) < kPrecision) break;
  }
  return value;
}
double incomplete_beta(double a, double b, double x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

constexpr size_t kMostExact = 64;
constexpr double kTail = 0.025;

// What resampling without end would come to: with few samples the medians of resamples have few values, and
// the chance of each is a sum of binomials. `sorted`: at most kMostExact samples.
Interval exact_interval(const std::vector<double>& sorted) {
  const size_t n = sorted.size(), half = n / 2;
  // Chance that at least / exactly `draws` of n fall on the first `k` samples.
  const auto binomial = [&](size_t draws) {
    double c = 1;
    for (size_t i = 0; i < draws; ++i) c = c * static_cast<double>(n - i) / static_cast<double>(i + 1);
    return c;
  };
  const auto share = [&](size_t k) { return static_cast<double>(k) / static_cast<double>(n); };
  const auto power = [](double base, size_t e) { return std::pow(base, static_cast<double>(e)); };
  const auto at_least = [&](size_t draws, size_t k) {
    double sum = 0;
    for (size_t j = draws; j <= n; ++j) sum += binomial(j) * power(share(k), j) * power(1 - share(k), n - j);
    return sum;
  };
  std::vector<std::pair<double, double>> medians;  // value, chance
  if (n % 2 == 1) {
    for (size_t i = 0; i < n; ++i)
      medians.emplace_back(sorted[i], at_least(half + 1, i + 1) - at_least(half + 1, i));
  } else {
    // The mean of the two in the middle: the lower is sample i, the upper sample j.
    const double ways = binomial(half);
    for (size_t i = 0; i < n; ++i) {
      double apart = 0;  // chance that the lower is i and the upper above it
      const double lower = power(share(i + 1), half) - power(share(i), half);
      for (size_t j = i + 1; j < n; ++j) {
        const double chance = ways * lower * (power(share(n - j), half) - power(share(n - j - 1), half));
        apart += chance;
        medians.emplace_back((sorted[i] + sorted[j]) / 2, chance);
      }
      medians.emplace_back(sorted[i], at_least(half, i + 1) - at_least(half, i) - apart);
    }
    std::sort(medians.begin(), medians.end());
  }
  Interval out{sorted.front(), sorted.back()};
  double below = 0;
  bool low_found = false;
  for (const auto& [value, chance] : medians) {
    below += chance;
    if (!low_found && below >= kTail) out.low = value, low_found = true;
    if (below >= 1 - kTail) {
      out.high = value;
      break;
    }
  }
  return out;
}

}  // namespace

// splitmix64: the standard library's distributions differ between implementations, this does not.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double student_quantile(double probability, double degrees) {
  if (probability < 0.5) return -student_quantile(1 - probability, degrees);
  // P(T > t) falls from 1/2 at 0; halving a bracket that is wide enough for any level used finds t to 1e-12.
  const double above = 1 - probability;
  double low = 0, high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double t = (low + high) / 2;
    const double beyond = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
    (beyond > above ? low : high) = t;
  }
  return (low + high) / 2;
}

double median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> copy(values.begin(), values.end());
  return median_in_place(copy);
}

Interval median_interval(std::span<const double> samples) {
  if (samples.empty()) return {};
  if (samples.size() <= kMostExact) {
    std::vector<double> sorted(samples.begin(), samples.end());
    std::sort(sorted.begin(), sorted.end());
    return exact_interval(sorted);
  }
  constexpr size_t kResamples = 2000;
  uint64_t state = 0x7475'6e65'72u;
  std::vector<double> medians(kResamples), draw(samples.size());
  for (double& m : medians) {
    for (double& value : draw) value = samples[next_random(state) % samples.size()];
    m = median_in_place(draw);
  }
  std::sort(medians.begin(), medians.end());
  return {medians[kResamples / 40], medians[kResamples - 1 - kResamples / 40]};
}

}  // namespace tuner
