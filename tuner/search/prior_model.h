// PriorModel: what similar tasks say about a candidate before it is measured, as far as they have been right
// so far.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/search/candidate_features.h"

namespace tuner {

class PriorModel {
 public:
  // Fits a model of each prior task and one of all together. `space` outlives this.
  PriorModel(const SearchSpace& space, CandidateFeatures& features, uint64_t seed);

  bool empty() const { return tasks_.empty(); }
  // Throughput relative to the best of its own task, 0..1 and about 0 for what is expected to fail; scaled
  // by the trust in all of them.
  std::vector<float> predict(const FeatureMatrix& rows) const;
  // Compares with what was measured here: `scores` is best time / time, 0 for a failure. A task whose ranking
  // is not the one found here loses its weight. Returns whether predictions changed.
  bool learn(const FeatureMatrix& rows, std::span<const float> scores);
  // "2 similar tasks, trusted 0.84"
  std::string describe() const;

 private:
  struct Task {
    FeatureMatrix rows;
    std::vector<float> scores;
    double weight = 1, trust = 1;
    std::unique_ptr<CostModel> model;
  };
  void fit_together();
  static XgboostOptions options(uint64_t seed);

  std::vector<Task> tasks_;
  std::unique_ptr<CostModel> together_;
  double overall_ = 1;
  uint64_t seed_;
};

}  // namespace tuner
