// Feasibility: how likely a candidate is to work at all, learned from what worked and what failed.
//
// Hidden constraints (a scratchpad that is too small, a compiler that gives up) are rules over the knobs, and
// boosted trees find such rules. Nothing is called impossible: a chance never falls below kLeastChance, so a
// region where everything failed is tried again when nothing is left to gain elsewhere. Deterministic. Not
// thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/cost_model/cost_model.h"

namespace tuner {

class Feasibility {
 public:
  static constexpr float kLeastChance = 0.05f;
  static constexpr size_t kLeastOfEach = 3;  // failures, and successes, needed before it learns anything

  Feasibility(uint64_t seed, double caution) : seed_(seed), caution_(caution) {}
  // `worked` has 1 or 0 per row. Forgets the earlier fit.
  void fit(const FeatureMatrix& rows, std::span<const float> worked);
  bool knows() const { return model_ != nullptr; }
  // Returns the factor for the gain of each row: its chance to work, to the power of `caution`. Above 0, at
  // most 1; 1 for all while nothing is known.
  std::vector<float> factors(const FeatureMatrix& rows) const;
  std::string digest() const { return knows() ? model_->digest() : std::string(); }

 private:
  uint64_t seed_;
  double caution_;
  std::unique_ptr<CostModel> model_;
};

}  // namespace tuner
