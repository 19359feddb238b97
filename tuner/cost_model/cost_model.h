// CostModel: predicts how good a candidate is from its features. It is refit as results come.
//
// Higher scores are better (normalised throughput: best time / time, 0 for a failure). Single-threaded,
// because XGBoost with two OpenMP threads on a busy two-core host was seen to take seconds for a 20 ms fit.
// Deterministic: the same rows in the same order and the same options give the same model and digest. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// A matrix of rows x columns, row-major.
struct FeatureMatrix {
  size_t columns = 0;
  std::vector<float> values;
  size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Fits from scratch on all rows. A NaN feature means "does not apply to this row".
  //   scores   one value per row
  //   weights  how much each row counts; empty: all count the same
  //   groups   number of rows of each task, in order; a loss that compares rows does so only within a task.
  //            Empty: one task
  // InvalidArgument: sizes do not match; the earlier fit is then kept.
  virtual Status fit(const FeatureMatrix& features, std::span<const float> scores,
                     std::span<const float> weights = {}, std::span<const uint32_t> groups = {}) = 0;
  virtual bool fitted() const = 0;
  // Returns one score per row. Requires fitted() and the same number of columns.
  virtual Result<std::vector<float>> predict(const FeatureMatrix& features) const = 0;
  virtual std::string digest() const = 0;  // of the fitted model
};

// What a fit minimises. Predictions are always on the scale of the scores.
enum class Loss {
  kSquared,     // squared error of the score
  kSquaredLog,  // squared error of log(score), and so of log(time): slow configs are told apart as well as
                // fast ones. Scores >= 0; those below 1/256 (failures) count as 1/256
  kPairwise,    // pairs of a group in the wrong order (XGBoost's rank:pairwise). A line maps the predictions
                // to the scores; a group weighs as the mean of its rows
  kLogistic,    // log loss of a probability: scores are 0, 1, or a share in between
};
inline constexpr float kLeastLoggedScore = 1.0f / 256;

struct XgboostOptions {
  Loss loss = Loss::kSquared;
  int rounds = 60;
  int max_depth = 4;
  float eta = 0.2f;
  float subsample = 1;      // share of the rows that each tree sees, in (0, 1]
  float column_sample = 1;  // share of the columns that each tree sees, in (0, 1]
  uint64_t seed = 0;
};
// Makes a model of gradient boosted trees.
std::unique_ptr<CostModel> make_xgboost_model(const XgboostOptions& options);

// Returns "the model ranks new candidates well (0.71, of 16 trials)". The figure is the rank correlation of
// predicted and measured scores.
std::string judged_text(double rank_correlation, size_t trials);

// Spearman's rank correlation; 0 if either side is constant.
double rank_correlation(std::span<const float> a, std::span<const float> b);

}  // namespace tuner
