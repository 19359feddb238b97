// TreeEnsemble: several boosted models of the same rows, each on its own random share of them: their mean
// predicts, their spread tells how sure. Deterministic in its options and seed. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/cost_model/cost_model.h"

namespace tuner {

class TreeEnsemble {
 public:
  // `models` >= 1.
  TreeEnsemble(const XgboostOptions& options, int models, uint64_t seed);
  // As CostModel::fit().
  Status fit(const FeatureMatrix& features, std::span<const float> scores);
  bool fitted() const { return models_.back()->fitted(); }
  struct Prediction {
    std::vector<float> mean, deviation;  // one a row
  };
  // Requires fitted() and the columns of the fit.
  Prediction predict(const FeatureMatrix& features) const;
  std::string digest() const;  // empty before the first fit

 private:
  std::vector<std::unique_ptr<CostModel>> models_;
};

}  // namespace tuner
