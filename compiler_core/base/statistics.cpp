#include "compiler_core/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler_core/base/random.h"

namespace tuner {

namespace {

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

double median(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  return median_in_place(copy);
}

double median_in_place(std::span<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double quantile(std::vector<double> values, double level) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = level * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double lower_quartile(std::vector<double> values) { return quantile(std::move(values), 0.25); }

double weighted_quantile(std::vector<WeightedValue> values, double level) {
  std::sort(values.begin(), values.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  double all = 0, sum = 0;
  for (const WeightedValue& v : values) all += v.weight;
  for (const WeightedValue& v : values) {
    sum += v.weight;
    if (sum >= level * all) return v.value;
  }
  return values.empty() ? 0 : values.back().value;
}

double Mean::deviation_of_mean() const { return n == 0 ? 0 : deviation / std::sqrt(static_cast<double>(n)); }

Mean mean_of(std::span<const double> values) {
  Mean out{.n = values.size()};
  if (out.n == 0) return out;
  for (const double value : values) out.mean += value;
  out.mean /= static_cast<double>(out.n);
  out.degrees = out.n - 1;
  if (out.degrees == 0) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  out.deviation = std::sqrt(squares / static_cast<double>(out.degrees));
  return out;
}

Mean trimmed_mean_of(std::vector<double> v) {
  Mean out{.n = v.size()};
  if (out.n == 0) return out;
  std::sort(v.begin(), v.end());
  const size_t g = v.size() / 5;
  for (size_t i = g; i + g < v.size(); ++i) out.mean += v[i];
  out.mean /= static_cast<double>(v.size() - 2 * g);
  out.degrees = v.size() - 2 * g - 1;
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::clamp(v[i], v[g], v[v.size() - 1 - g]);
  out.deviation = mean_of(v).deviation / (1 - 2 * static_cast<double>(g) / static_cast<double>(v.size()));
  return out;
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
