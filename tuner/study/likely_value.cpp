#include "tuner/study/likely_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/base/statistics.h"

namespace tuner {
namespace {

constexpr size_t kMostKnown = 500;
constexpr double kHigh = 0.9, kHighAlone = 0.8;  // kHigh: at both ends
constexpr double kLeastSpread = 0.002;           // times are not repeatable to less
constexpr double kOfAll = 0.3;     // weight of the spread of all tasks, beside 1 of the same task's
constexpr double kAnyError = 0.3;  // weight of an error of any task, beside that by likeness
constexpr size_t kNone = std::numeric_limits<size_t>::max();
constexpr double kFar = std::numeric_limits<double>::infinity();

// Returns what the unseen task's error is below with this probability; infinite if too few are known. The
// share of few errors is itself uncertain: a standard error is added to it, as far as there are larger ones.
double error_below(std::vector<WeightedValue> errors, double probability) {
  double all = 0, squares = 0;
  for (const WeightedValue& e : errors) {
    all += e.weight;
    squares += e.weight * e.weight;
  }
  const double unseen = all / static_cast<double>(errors.size());
  constexpr double kRounding = 1e-9;
  const double largest = all / (all + unseen);
  if (probability > largest + kRounding) return kFar;
  const double doubt = std::sqrt(probability * (1 - probability) * squares) / all;
  errors.push_back({kFar, unseen});
  return weighted_quantile(std::move(errors), std::min(largest - kRounding, probability + doubt));
}

}  // namespace

LikelyValue::LikelyValue(std::vector<KnownValue> known) {
  const size_t step = known.size() / kMostKnown + 1;
  for (size_t i = 0; i < known.size(); i += step) known_.push_back(known[i]);
  std::vector<double> values, distances;
  for (const KnownValue& k : known_) values.push_back(k.value);
  const double middle = median(values);
  for (const double v : values) spread_ += std::abs(v - middle) / static_cast<double>(values.size());
  spread_ = std::max(spread_, kLeastSpread);
  for (size_t i = 0; i < known_.size(); ++i) {
    const Centre c = centre(*known_[i].task, i);
    errors_.push_back((known_[i].value - c.value) / c.spread);
  }
}

LikelyValue::Centre LikelyValue::centre(const TaskLikeness& task, size_t skip) const {
  std::vector<WeightedValue> values;
  Centre c;
  for (size_t i = 0; i < known_.size(); ++i) {
    const double weight = i == skip ? 0 : task.weight(*known_[i].task);
    if (weight <= 0) continue;
    values.push_back({known_[i].value, weight});
    c.weight += weight;
  }
  c.value = weighted_quantile(values, 0.5);
  double off = kOfAll * spread_;
  for (const WeightedValue& v : values) off += v.weight * std::abs(v.value - c.value);
  c.spread = std::max(off / (c.weight + kOfAll), kLeastSpread);
  return c;
}

std::optional<LikelyValue::Range> LikelyValue::of(const TaskLikeness& task) const {
  const Centre c = centre(task, kNone);
  if (c.weight <= 0) return std::nullopt;
  std::vector<WeightedValue> errors;
  for (size_t i = 0; i < known_.size(); ++i)
    if (const double weight = task.weight(*known_[i].task); weight > 0)  // else of another kind of target
      errors.push_back({errors_[i], kAnyError + weight});
  const double high = error_below(errors, kHigh), alone = error_below(errors, kHighAlone);
  for (WeightedValue& e : errors) e.value = -e.value;
  const double low = -error_below(errors, kHigh);
  Range range{.expected = c.value, .low = c.value, .high = c.value, .rests_on = c.weight};
  range.bounded = std::isfinite(low) && std::isfinite(high);
  if (range.bounded) {
    range.low = std::min(c.value, c.value + low * c.spread);
    range.high = std::max(c.value, c.value + high * c.spread);
    range.high_alone = std::max(c.value, c.value + alone * c.spread);
  }
  return range;
}

}  // namespace tuner
