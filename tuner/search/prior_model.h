// PriorModel: what similar tasks say about a candidate before it is measured, weighted by how right they have
// been so far.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/search/candidate_features.h"

namespace tuner {

class PriorModel {
 public:
  // Fits a model for each prior task and one for all together. `space` must outlive this.
  PriorModel(const SearchSpace& space, CandidateFeatures& features, uint64_t seed);

  bool empty() const { return tasks_.empty(); }
  // Returns throughput relative to the best of its own task: 0..1, and about 0 for an expected failure. It is
  // scaled by the trust in all prior tasks.
  std::vector<float> predict(const FeatureMatrix& rows) const;
  // Compares the predictions with what was measured here. `scores` is best time / time, 0 for a failure. A
  // task that ranks configs differently from here loses weight. Returns true if predictions changed.
  bool learn(const FeatureMatrix& rows, std::span<const float> scores);
  // Returns "2 similar tasks, trusted 0.84".
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
