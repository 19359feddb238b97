#include "tuner/search/stopping_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
    const double time = r.ok && !r.cut ? r.time_ns : kNever;
    const double before = best_ns();
    if (time < before) best_ = r.candidate;
    times_.push_back(time);
    best_after_.push_back(std::min(time, before));
  }
}

double StoppingEstimate::best_ns() const { return best_after_.empty() ? kNever : best_after_.back(); }

std::optional<StoppingFacts> StoppingEstimate::facts() const {
  const size_t n = best_after_.size();
  if (static_cast<int64_t>(n) < kStoppingLeast || best_ns() == kNever) return std::nullopt;
  if (facts_) return facts_;
  const double best = best_ns();
  StoppingFacts f;
  f.age = std::log((static_cast<double>(n) + 20) / 100);
  const auto close_since = std::partition_point(best_after_.begin(), best_after_.end(),
                                                [&](double t) { return t * (1 - kStoppingGain) > best; });
  f.stall = std::log((static_cast<double>(best_after_.end() - close_since) + 10) / 100);
  const size_t horizon = static_cast<size_t>(kStoppingHorizon);
  const double then = n > horizon ? best_after_[n - 1 - horizon] : best_after_.front();
  f.pace = std::min(1.0, std::sqrt(std::log(then / best)));
  f.crowd = std::log1p(static_cast<double>(
      std::count_if(times_.begin(), times_.end(), [&](double t) { return t <= 1.03 * best; })));
  const std::vector<ConfigIndex> around = space_.parts[best_.template_index].space->neighbours(best_.config);
  const auto known = std::count_if(around.begin(), around.end(), [&](ConfigIndex i) {
    return measured_.contains(Candidate{best_.template_index, i});
  });
  f.surrounded = around.empty() ? 1 : static_cast<double>(known) / static_cast<double>(around.size());
  facts_ = f;
  return f;
}

std::optional<double> StoppingEstimate::chance() const {
  const std::optional<StoppingFacts> f = facts();
  if (!f) return std::nullopt;
  const double left = static_cast<double>(space_.size()) - static_cast<double>(measured_.size());
  const double share = std::clamp(left / static_cast<double>(kStoppingHorizon), 0.0, 1.0);
  return share / (1 + std::exp(-linear(fitted_stopping_coefficients().chance, *f)));
}

std::optional<double> StoppingEstimate::expected_gain() const {
  const std::optional<double> p = chance();
  if (!p) return std::nullopt;
  return *p * std::clamp(std::exp(linear(fitted_stopping_coefficients().gain, *facts())), kStoppingGain, 1.0);
}

// Printed by `fit_stopping` (tests/bench); its README tells the spaces they were fitted on.
const StoppingCoefficients& fitted_stopping_coefficients() {
  static const StoppingCoefficients coefficients{
      .chance = {-0.375, -0.588, 0.868, -0.630, -4.194, 0.337},
      .gain = {-0.398, 0.314, 0.541, -0.357, -0.400, -2.315},
  };
  return coefficients;
}

}  // namespace tuner
