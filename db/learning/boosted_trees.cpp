#include "db/learning/boosted_trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace tuner {

namespace {

constexpr int kMostBins = 48;
constexpr int kMostNodes = 1 << 12, kMostTrees = 10'000, kMostColumns = 10'000;

// Upper bounds of a column's bins; bin b holds values <= bounds[b]. NaN is in bin 0.
std::vector<float> bin_bounds(const TrainingRows& rows, int column) {
  std::vector<float> values;
  for (size_t r = 0; r < rows.rows(); ++r)
    if (const float v = rows.values[r * static_cast<size_t>(rows.columns) + static_cast<size_t>(column)];
        !std::isnan(v))
      values.push_back(v);
  std::sort(values.begin(), values.end());
  std::vector<float> distinct = values;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<float> bounds = {-std::numeric_limits<float>::infinity()};
  if (distinct.size() <= kMostBins) {
    for (size_t i = 0; i + 1 < distinct.size(); ++i) bounds.push_back((distinct[i] + distinct[i + 1]) / 2);
  } else {
    for (int b = 1; b < kMostBins; ++b) {
      const float v = values[values.size() * static_cast<size_t>(b) / kMostBins];
      if (v > bounds.back()) bounds.push_back(v);
    }
  }
  return bounds;
}

}  // namespace

// One tree on binned rows: level by level, the split that reduces the squared error most.
class TreeGrower {
 public:
  TreeGrower(const TrainingRows& rows, const BoostedTreesOptions& options) : rows_(rows), options_(options) {
    const size_t columns = static_cast<size_t>(rows.columns);
    bins_.resize(rows.rows() * columns);
    for (int c = 0; c < rows.columns; ++c) {
      bounds_.push_back(bin_bounds(rows, c));
      const std::vector<float>& bounds = bounds_.back();
      for (size_t r = 0; r < rows.rows(); ++r) {
        const float v = rows.values[r * columns + static_cast<size_t>(c)];
        bins_[r * columns + static_cast<size_t>(c)] =
            std::isnan(v)
                ? 0
                : static_cast<uint8_t>(std::lower_bound(bounds.begin(), bounds.end(), v) - bounds.begin());
      }
    }
  }

  // `wanted`: what is left over, one a row; `chosen`: the rows to look at. Adds to `gain` by column.
  BoostedTrees::Tree grow(const std::vector<double>& wanted, std::vector<uint32_t> chosen,
                          std::vector<double>& gain) {
    BoostedTrees::Tree tree(1);
    grow_node(tree, 0, wanted, chosen.data(), chosen.data() + chosen.size(), options_.depth, gain);
    return tree;
  }

 private:
  struct Sum {
    double weight = 0, value = 0;
    double score(double shrinkage) const { return value * value / (weight + shrinkage); }
  };
  struct Split {
    double gain = 1e-9;
    int column = -1, bin = 0;
  };

  void grow_node(BoostedTrees::Tree& tree, size_t at, const std::vector<double>& wanted, uint32_t* begin,
                 uint32_t* end, int depth, std::vector<double>& gain) {
    Sum all;
    for (const uint32_t* r = begin; r != end; ++r) {
      all.weight += rows_.weights[*r];
      all.value += rows_.weights[*r] * wanted[*r];
    }
    tree[at].value = static_cast<float>(options_.rate * all.value / (all.weight + options_.shrinkage));
    if (depth == 0 || all.weight < 2 * options_.smallest_leaf) return;
    const Split split = best_split(wanted, begin, end, all);
    if (split.column < 0) return;
    const size_t columns = static_cast<size_t>(rows_.columns), column = static_cast<size_t>(split.column);
    uint32_t* middle = std::stable_partition(
        begin, end, [&](uint32_t r) { return bins_[r * columns + column] <= split.bin; });
    gain[column] += split.gain;
    const size_t left = tree.size();
    tree.resize(left + 2);
    tree[at] = {split.column, static_cast<int32_t>(left), bounds_[column][static_cast<size_t>(split.bin)]};
    grow_node(tree, left, wanted, begin, middle, depth - 1, gain);
    grow_node(tree, left + 1, wanted, middle, end, depth - 1, gain);
  }

  Split best_split(const std::vector<double>& wanted, const uint32_t* begin, const uint32_t* end,
                   const Sum& all) const {
    const size_t columns = static_cast<size_t>(rows_.columns);
    std::vector<Sum> sums(columns * (kMostBins + 1));
    for (const uint32_t* r = begin; r != end; ++r) {
      const double weight = rows_.weights[*r], value = weight * wanted[*r];
      const uint8_t* bins = &bins_[*r * columns];
      for (size_t c = 0; c < columns; ++c) {
        Sum& sum = sums[c * (kMostBins + 1) + bins[c]];
        sum.weight += weight;
        sum.value += value;
      }
    }
    Split best;
    const double before = all.score(options_.shrinkage);
    for (size_t c = 0; c < columns; ++c) {
      Sum left;
      for (size_t b = 0; b < bounds_[c].size(); ++b) {  // the last bin has no bound: nothing would go right
        left.weight += sums[c * (kMostBins + 1) + b].weight;
        left.value += sums[c * (kMostBins + 1) + b].value;
        const Sum right{all.weight - left.weight, all.value - left.value};
        if (left.weight < options_.smallest_leaf) continue;
        if (right.weight < options_.smallest_leaf) break;
        const double gain = left.score(options_.shrinkage) + right.score(options_.shrinkage) - before;
        if (gain > best.gain) best = {gain, static_cast<int>(c), static_cast<int>(b)};
      }
    }
    return best;
  }

  const TrainingRows& rows_;
  const BoostedTreesOptions& options_;
  std::vector<std::vector<float>> bounds_;  // of each column
  std::vector<uint8_t> bins_;               // as values
};

BoostedTrees BoostedTrees::fit(const TrainingRows& rows, const BoostedTreesOptions& options) {
  CHECK(rows.rows() > 0 && rows.columns > 0 && rows.weights.size() == rows.rows() &&
        rows.values.size() == rows.rows() * static_cast<size_t>(rows.columns))
      << rows.rows() << " rows of " << rows.columns << " columns, " << rows.values.size() << " values, "
      << rows.weights.size() << " weights";
  BoostedTrees out;
  out.columns_ = rows.columns;
  out.importance_.assign(static_cast<size_t>(rows.columns), 0);
  double weight = 0, value = 0;
  for (size_t r = 0; r < rows.rows(); ++r)
    weight += rows.weights[r], value += rows.weights[r] * rows.wanted[r];
  out.base_ = value / weight;
  std::vector<double> left(rows.rows());
  for (size_t r = 0; r < rows.rows(); ++r) left[r] = rows.wanted[r] - out.base_;

  TreeGrower grower(rows, options);
  std::mt19937_64 random(options.seed);
  const auto limit = static_cast<uint64_t>(options.row_share * static_cast<double>(UINT64_MAX));
  for (int t = 0; t < options.trees; ++t) {
    std::vector<uint32_t> chosen;
    for (uint32_t r = 0; r < rows.rows(); ++r)
      if (random() <= limit) chosen.push_back(r);
    if (chosen.empty()) continue;
    out.trees_.push_back(grower.grow(left, std::move(chosen), out.importance_));
    for (size_t r = 0; r < rows.rows(); ++r) {
      const std::span<const float> row(&rows.values[r * static_cast<size_t>(rows.columns)],
                                       static_cast<size_t>(rows.columns));
      left[r] -= answer_of(out.trees_.back(), row);
    }
  }
  const double total = std::accumulate(out.importance_.begin(), out.importance_.end(), 0.0);
  if (total > 0)
    for (double& v : out.importance_) v /= total;
  return out;
}

double BoostedTrees::answer_of(const Tree& tree, std::span<const float> row) {
  size_t at = 0;
  while (tree[at].column >= 0) {
    const float v = row[static_cast<size_t>(tree[at].column)];
    at = static_cast<size_t>(tree[at].left) + (v > tree[at].value ? 1 : 0);  // NaN is not above anything
  }
  return tree[at].value;
}

double BoostedTrees::predict(std::span<const float> row) const {
  CHECK(row.size() == static_cast<size_t>(columns_)) << row.size() << " values, expected " << columns_;
  double sum = base_;
  for (const Tree& tree : trees_) sum += answer_of(tree, row);
  return sum;
}

nlohmann::json BoostedTrees::to_json() const {
  nlohmann::json trees = nlohmann::json::array();
  for (const Tree& tree : trees_) {
    nlohmann::json columns = nlohmann::json::array(), left = columns, values = columns;
    for (const Node& n : tree) {
      columns.push_back(n.column);
      left.push_back(n.left);
      // Infinity is no JSON: a bound below every value says "NaN only".
      values.push_back(std::isinf(n.value) ? std::numeric_limits<float>::lowest() : n.value);
    }
    trees.push_back({std::move(columns), std::move(left), std::move(values)});
  }
  return {{"columns", columns_}, {"base", base_}, {"importance", importance_}, {"trees", std::move(trees)}};
}

Result<BoostedTrees> BoostedTrees::from_json(const nlohmann::json& document) {
  BoostedTrees out;
  try {
    out.columns_ = document.at("columns").get<int>();
    out.base_ = document.at("base").get<double>();
    out.importance_ = document.at("importance").get<std::vector<double>>();
    if (out.columns_ < 1 || out.columns_ > kMostColumns || !std::isfinite(out.base_) ||
        out.importance_.size() != static_cast<size_t>(out.columns_))
      return invalid_argument("trees: columns ", out.columns_, ", expected 1 to ", kMostColumns,
                              " and as many importances");
    const nlohmann::json& trees = document.at("trees");
    if (!trees.is_array() || trees.size() > kMostTrees)
      return invalid_argument("trees: expected a list of at most ", kMostTrees);
    for (size_t t = 0; t < trees.size(); ++t) {
      const auto columns = trees[t].at(0).get<std::vector<int32_t>>();
      const auto left = trees[t].at(1).get<std::vector<int32_t>>();
      const auto values = trees[t].at(2).get<std::vector<float>>();
      const size_t n = columns.size();
      bool good = n > 0 && n <= kMostNodes && left.size() == n && values.size() == n;
      Tree tree;
      for (size_t i = 0; good && i < n; ++i) {
        // Children stand behind their parent: every walk ends.
        good =
            std::isfinite(values[i]) && columns[i] >= -1 && columns[i] < out.columns_ &&
            (columns[i] < 0 || (left[i] > static_cast<int64_t>(i) && static_cast<size_t>(left[i]) + 1 < n));
        tree.push_back({columns[i], left[i], values[i]});
      }
      if (!good) return invalid_argument("trees[", t, "]: is no tree over ", out.columns_, " columns");
      out.trees_.push_back(std::move(tree));
    }
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument("trees: ", e.what());
  }
  return out;
}

}  // namespace tuner
