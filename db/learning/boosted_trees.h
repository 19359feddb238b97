// BoostedTrees: regression trees, each fitted to the error that the trees before it left (squared error).
//
// Kept small on purpose: the model is stored as text in the database, is read in milliseconds, and runs in an
// application that has no XGBoost. The same rows and options give the same trees.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct BoostedTreesOptions {
  int trees = 120;
  int depth = 5;             // splits from the root of a tree to a leaf
  double rate = 0.1;         // share of each tree's answer that is added (learning rate)
  double smallest_leaf = 4;  // a leaf's rows weigh at least this much together
  double shrinkage = 1;      // L2: added to a leaf's weight, so that few rows count less
  double row_share = 0.7;    // share of the rows that each tree is fitted to, drawn anew for each
  uint64_t seed = 1;
};

// Rows of equal length, stored one after the other. NaN means that the column does not apply to the row; such
// a row goes where the smallest values go.
struct TrainingRows {
  int columns = 0;
  std::vector<float> values;   // rows x columns
  std::vector<float> wanted;   // one per row
  std::vector<float> weights;  // one per row, greater than 0
  size_t rows() const { return wanted.size(); }
};

class BoostedTrees {
 public:
  BoostedTrees() = default;
  // Needs at least one row.
  static BoostedTrees fit(const TrainingRows& rows, const BoostedTreesOptions& options);

  int columns() const { return columns_; }
  // `row` has columns() values.
  double predict(std::span<const float> row) const;
  // How much each column's splits reduced the squared error, summing to 1; all 0 when nothing was split.
  const std::vector<double>& importance() const { return importance_; }

  nlohmann::json to_json() const;
  // InvalidArgument names the part that differs from what to_json() writes. A document that is accepted
  // cannot make predict() loop or read out of bounds.
  static Result<BoostedTrees> from_json(const nlohmann::json& document);

 private:
  // A leaf has `column` -1 and its answer in `value`. Otherwise rows with a value <= `value`, or NaN, go to
  // `left`, others to left + 1. Children come after their parent.
  struct Node {
    int32_t column = -1;
    int32_t left = 0;
    float value = 0;
  };
  using Tree = std::vector<Node>;
  friend class TreeGrower;
  static double answer_of(const Tree& tree, std::span<const float> row);

  int columns_ = 0;
  double base_ = 0;
  std::vector<Tree> trees_;
  std::vector<double> importance_;
};

}  // namespace tuner
