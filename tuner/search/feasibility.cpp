#include "tuner/search/feasibility.h"

#include <algorithm>
#include <cmath>

namespace tuner {

void Feasibility::fit(const FeatureMatrix& rows, std::span<const float> worked) {
  model_.reset();
  const auto good = static_cast<size_t>(std::count(worked.begin(), worked.end(), 1.0f));
  if (good < kLeastOfEach || worked.size() - good < kLeastOfEach) return;
  model_ = make_xgboost_model(
      {.loss = Loss::kLogistic, .rounds = 30, .max_depth = 4, .eta = 0.3f, .seed = seed_ * 13 + 5});
  // Four times, so that the trees may split down to single rows (XGBoost's min_child_weight counts p(1-p)).
  const std::vector<float> weights(worked.size(), 4.0f);
  const Status fitted = model_->fit(rows, worked, weights);
  CHECK(fitted.is_ok()) << fitted.message();
}

std::vector<float> Feasibility::factors(const FeatureMatrix& rows) const {
  if (!knows()) return std::vector<float>(rows.rows(), 1.0f);
  std::vector<float> factors = model_->predict(rows).value();
  for (float& f : factors) f = std::pow(std::clamp(f, kLeastChance, 1.0f), static_cast<float>(caution_));
  return factors;
}

}  // namespace tuner
