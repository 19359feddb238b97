#include "tuner/search/stopping_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tuner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double linear(const std::array<double, StoppingFacts::kCount + 1>& coefficients, const StoppingFacts& facts) {
  const std::array<double, StoppingFacts::kCount> x = facts.values();
  double sum = coefficients.back();
  for (size_t i = 0; i < x.size(); ++i) sum += coefficients[i] * x[i];
  return sum;
}

}  // namespace

void StoppingEstimate::observe(std::span<const Observation> results) {
  facts_.reset();
  for (const Observation& r : results) {
    measured_.insert(r.candidate);
    const double time = r.ok && !r.cut ? r.time_ns : kNever;  // NOLINT(*-narrowing-conversions)
    times_.push_back(time);
    best_after_.push_back(std::min(time, best_ns()));
  }
}

double StoppingEstimate::best_ns() const {
  return best_after_.empty() ? kNever
                             : best_after_.back();  // NOLINT(*-narrowing-conversions): it is infinite
}

std::optional<StoppingFacts> StoppingEstimate::facts() const {
  const size_t n = best_after_.size();
  if (static_cast<int64_t>(n) < kStoppingLeast || best_ns() == kNever) return std::nullopt;
  if (facts_) return facts_;
  const double best = best_ns();
  const auto above = [&](double time) { return std::min(1.0, std::log(time / best)); };
  StoppingFacts f;
  f.crowd = std::log1p(static_cast<double>(
      std::count_if(times_.begin(), times_.end(), [&](double t) { return t <= 1.03 * best; })));
  f.recent = above(*std::min_element(times_.end() - 32, times_.end()));
  double first = kNever, second = kNever;
  for (const double t : times_) {
    if (t < first)
      second = std::exchange(first, t);
    else
      second = std::min(second, t);
  }
  f.lead = std::sqrt(above(second));
  const auto close_since = std::partition_point(best_after_.begin(), best_after_.end(),
                                                [&](double t) { return t * (1 - kStoppingGain) > best; });
  f.stall = std::log1p(static_cast<double>(best_after_.end() - close_since) / 100);
  facts_ = f;
  return f;
}

std::optional<double> StoppingEstimate::chance() const {
  const std::optional<StoppingFacts> f = facts();
  if (!f) return std::nullopt;
  const double left = static_cast<double>(space_.size()) - static_cast<double>(measured_.size());
  const double share = std::clamp(left / static_cast<double>(kStoppingHorizon), 0.0, 1.0);
  return share / (1 + std::exp(f->stall - linear(fitted_stopping_coefficients().chance, *f)));
}

std::optional<double> StoppingEstimate::expected_gain() const {
  const std::optional<double> p = chance();
  if (!p) return std::nullopt;
  return *p * std::clamp(std::exp(linear(fitted_stopping_coefficients().gain, *facts())), kStoppingGain, 1.0);
}

// Printed by `fit_stopping` (tests/bench); its README tells the spaces they were fitted on.
const StoppingCoefficients& fitted_stopping_coefficients() {
  static const StoppingCoefficients coefficients{
      .chance = {-0.681, -9.940, 10.085, -0.904},
      .gain = {-0.325, -7.058, -3.027, -2.871},
  };
  return coefficients;
}

}  // namespace tuner
