// BoostedTrees: regression trees fitted one after the other to what those before left over (squared error).
//
// Small on purpose: what a database's rows teach is stored as text in the database, read in milliseconds and
// evaluated by an application's runtime, which has no XGBoost. Deterministic in rows and options.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

struct BoostedTreesOptions {
  int trees = 120;
  int depth = 5;             // of a tree, splits from the root to a leaf
  double rate = 0.1;         // share of a tree's answer that is added
  double smallest_leaf = 4;  // sum of the weights of its rows
  double shrinkage = 1;      // added to a leaf's weight: few rows say less (L2)
  double row_share = 0.7;    // of the rows each tree sees, drawn anew
  uint64_t seed = 1;
};

// Rows of equal length, one after the other. NaN: the column means nothing for this row; it goes the way of
// the smallest values.
struct TrainingRows {
  int columns = 0;
  std::vector<float> values;   // rows x columns
  std::vector<float> wanted;   // one a row
  std::vector<float> weights;  // one a row, above 0
  size_t rows() const { return wanted.size(); }
};

class BoostedTrees {
 public:
  BoostedTrees() = default;
  // At least one row.
  static BoostedTrees fit(const TrainingRows& rows, const BoostedTreesOptions& options);

  int columns() const { return columns_; }
  // `row` has columns() values.
  double predict(std::span<const float> row) const;
  // How much each column's splits reduced the squared error, summing to 1; all 0 when nothing was split.
  const std::vector<double>& importance() const { return importance_; }

  nlohmann::json to_json() const;
  // InvalidArgument names what is not as to_json() writes it: nothing in it can make predict() run astray.
  static Result<BoostedTrees> from_json(const nlohmann::json& document);

 private:
  // Of a leaf, `column` is -1 and `value` its answer. Else rows with value <= `value`, or NaN, go to `left`,
  // others to left + 1. Children stand behind their parent.
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
