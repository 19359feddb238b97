// PriorModel: what similar tasks say about a candidate before it is measured, weighted by how right they have
// been so far.
//
// Two trusts are multiplied. A task that ranks configs differently from here counts less than the others. And
// each new batch is forecast twice, before it is seen: with the prior tasks, and from what was measured here
// alone. When that alone does as well, the prior tasks have said what they know, or mislead; they are let go.
#pragma once

#include <memory>
#include <set>
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
  // True once forecasts with the prior tasks were no better for a while. predict() is 0 from then on.
  bool given_up() const;
  // Returns how many of the `start` random configs that were left out should be made up for when the prior
  // tasks are given up: the more, the less they had been right.
  size_t random_owed(size_t start) const;
  // Returns throughput relative to the best of its own task: 0..1, and about 0 for an expected failure. It is
  // scaled by the trust in all prior tasks.
  std::vector<float> predict(const FeatureMatrix& rows) const;
  // Compares the predictions with all that was measured here; `rows` and `scores` (best time / time, 0 for a
  // failure) are those of `candidates`. Returns true if predictions changed.
  bool learn(std::span<const Candidate> candidates, const FeatureMatrix& rows, std::span<const float> scores);
  // Returns "2 similar tasks, trusted 0.84", or that they were given up.
  std::string describe() const;

 private:
  struct Task {
    FeatureMatrix rows;
    std::vector<float> scores;
    double weight = 1, trust = 1;
    std::unique_ptr<CostModel> model;
  };
  void fit_together();
  // What the prior tasks say, before the forecasts' share of the trust.
  std::vector<float> trusted(const FeatureMatrix& rows) const;
  // How right each task is; true if that changed the common model.
  bool reweigh(const FeatureMatrix& rows, std::span<const float> scores);
  // Makes the models of both forecasts, and compares what they say of rows that they have not seen.
  void forecast(const FeatureMatrix& rows, std::span<const float> scores);
  void compare(const FeatureMatrix& fresh, std::span<const float> found);
  static XgboostOptions options(uint64_t seed);

  std::vector<Task> tasks_;
  std::unique_ptr<CostModel> together_;
  double overall_ = 1;

  // The forecasts: trees of what the prior tasks leave over, and of the scores alone.
  std::set<Candidate> forecast_from_;  // what they were fitted on
  std::unique_ptr<CostModel> with_, without_;
  // Sums of their squared errors, later ones weighing more. They begin as if similar tasks had helped a
  // little.
  double error_with_ = 0.8, error_without_ = 1.6;
  double kept_ = 1;  // share of the trust that the forecasts leave
  int useless_ = 0;  // comparisons in a row that left none
  uint64_t seed_;
};

}  // namespace tuner
