// TreeEnsemble: several boosted models of the same rows, each fitted to its own random share of them. Their
// mean predicts, and their spread tells how certain that is. Deterministic in options and seed. Not
// thread-safe.
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
  // Like CostModel::fit().
  Status fit(const FeatureMatrix& features, std::span<const float> scores);
  bool fitted() const { return models_.back()->fitted(); }
  struct Prediction {
    std::vector<float> mean, deviation;        // one value per row
    std::vector<std::vector<float>> of_model;  // of each model, one value per row
  };
  // Requires fitted() and the columns of the fit.
  Prediction predict(const FeatureMatrix& features) const;
  std::string digest() const;  // empty before the first fit

 private:
  std::vector<std::unique_ptr<CostModel>> models_;
};

}  // namespace tuner
