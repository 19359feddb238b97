#include "db/learning/cover_set.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

using Mask = std::vector<uint64_t>;  // a bit a column

int count(const Mask& m) {
  int bits = 0;
  for (const uint64_t word : m) bits += std::popcount(word);
  return bits;
}
int common(const Mask& a, const Mask& b) {
  int bits = 0;
  for (size_t w = 0; w < a.size(); ++w) bits += std::popcount(a[w] & b[w]);
  return bits;
}
bool is_subset(const Mask& a, const Mask& b) {
  for (size_t w = 0; w < a.size(); ++w)
    if ((a[w] & ~b[w]) != 0) return false;
  return true;
}

enum class Answer : uint8_t { kYes, kNo, kUnknown };

// Whether few rows serve every column at one level: set cover, by branch and bound.
class LevelSearch {
 public:
  LevelSearch(const ScoreTable& table, double level)
      : columns_(table.columns), words_(static_cast<size_t>(table.columns + 63) / 64) {
    std::map<Mask, int> row_of;  // different masks only, with the first row that has each
    for (size_t r = 0; r < table.rows.size(); ++r) {
      Mask mask(words_);
      bool any = false;
      for (const ScoreTable::Entry& e : table.rows[r])
        if (e.score >= level) {
          mask[static_cast<size_t>(e.column) / 64] |= uint64_t{1} << (e.column % 64);
          any = true;
        }
      if (any) row_of.emplace(std::move(mask), static_cast<int>(r));
    }
    masks_.assign(row_of.begin(), row_of.end());
    std::stable_sort(masks_.begin(), masks_.end(),
                     [](const auto& a, const auto& b) { return count(a.first) > count(b.first); });
    drop_dominated();
    serving_.resize(static_cast<size_t>(columns_));
    for (size_t m = 0; m < masks_.size(); ++m)
      for (int c = 0; c < columns_; ++c)
        if (masks_[m].first[static_cast<size_t>(c) / 64] >> (c % 64) & 1)
          serving_[static_cast<size_t>(c)].push_back(static_cast<int>(m));
  }

  // kYes: rows() serve every column and are at most k. Takes what it uses off `steps`; kUnknown when they
  // end.
  Answer decide(int k, int64_t& steps) {
    chosen_.clear();
    exhausted_ = false;
    Mask open(words_);
    for (int c = 0; c < columns_; ++c) open[static_cast<size_t>(c) / 64] |= uint64_t{1} << (c % 64);
    if (descend(open, k, steps)) return Answer::kYes;
    return exhausted_ ? Answer::kUnknown : Answer::kNo;
  }
  std::vector<int> rows() const {
    std::vector<int> rows;
    for (const int m : chosen_) rows.push_back(masks_[static_cast<size_t>(m)].second);
    return rows;
  }

 private:
  // A mask within another is never needed. Quadratic, so only where that is cheap; it changes no answer.
  void drop_dominated() {
    constexpr size_t kMost = 8'000;
    if (masks_.size() > kMost) return;
    std::vector<std::pair<Mask, int>> kept;
    for (auto& each : masks_)
      if (std::none_of(kept.begin(), kept.end(),
                       [&](const auto& k) { return is_subset(each.first, k.first); }))
        kept.push_back(std::move(each));
    masks_ = std::move(kept);
  }

  bool descend(const Mask& open, int k, int64_t& steps) {
    const int left = count(open);
    if (left == 0) return true;
    if (k == 0) return false;
    steps -= static_cast<int64_t>(masks_.size() * words_);
    if (steps < 0) {
      exhausted_ = true;
      return false;
    }
    // Even the k masks that serve most of what is open may not reach all of it.
    std::vector<int> gains(masks_.size());
    for (size_t m = 0; m < masks_.size(); ++m) gains[m] = common(masks_[m].first, open);
    std::vector<int> largest(gains);
    const auto top = largest.begin() + std::min<std::ptrdiff_t>(k, std::ssize(largest));
    std::partial_sort(largest.begin(), top, largest.end(), std::greater<>());
    if (std::accumulate(largest.begin(), top, 0) < left) return false;
    // The open column that fewest masks serve must be served by one of them.
    int column = -1;
    for (int c = 0; c < columns_; ++c)
      if (open[static_cast<size_t>(c) / 64] >> (c % 64) & 1)
        if (column < 0 ||
            serving_[static_cast<size_t>(c)].size() < serving_[static_cast<size_t>(column)].size())
          column = c;
    std::vector<int> branches = serving_[static_cast<size_t>(column)];
    std::stable_sort(branches.begin(), branches.end(), [&](int a, int b) {
      return gains[static_cast<size_t>(a)] > gains[static_cast<size_t>(b)];
    });
    for (const int m : branches) {
      Mask rest(open);
      for (size_t w = 0; w < words_; ++w) rest[w] &= ~masks_[static_cast<size_t>(m)].first[w];
      chosen_.push_back(m);
      if (descend(rest, k - 1, steps)) return true;
      chosen_.pop_back();
      if (exhausted_) return false;
    }
    return false;
  }

  const int columns_;
  const size_t words_;
  std::vector<std::pair<Mask, int>> masks_;  // and the row it is of
  std::vector<std::vector<int>> serving_;    // masks by column
  std::vector<int> chosen_;
  bool exhausted_ = false;
};

// Of the rows measured in one column only the best can be of use there. Keeps the positions of the others.
std::vector<int> useful_rows(const ScoreTable& table) {
  std::vector<int> best_alone(static_cast<size_t>(table.columns), -1), rows;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const auto& entries = table.rows[r];
    if (entries.size() > 1) rows.push_back(static_cast<int>(r));
    if (entries.size() != 1) continue;
    int& best = best_alone[static_cast<size_t>(entries[0].column)];
    if (best < 0 || table.rows[static_cast<size_t>(best)][0].score < entries[0].score)
      best = static_cast<int>(r);
  }
  for (const int r : best_alone)
    if (r >= 0) rows.push_back(r);
  std::sort(rows.begin(), rows.end());
  return rows;
}

ScoreTable part_of(const ScoreTable& table, const std::vector<int>& rows) {
  ScoreTable part{.columns = table.columns, .rows = {}};
  for (const int r : rows) part.rows.push_back(table.rows[static_cast<size_t>(r)]);
  return part;
}

// One row after the other, each time the one that raises the sum of the columns' scores most.
std::vector<int> greedy(const ScoreTable& table, int k) {
  std::vector<double> best(static_cast<size_t>(table.columns), 0);
  std::vector<int> rows;
  while (std::ssize(rows) < k) {
    int pick = -1;
    double most = 0;
    for (size_t r = 0; r < table.rows.size(); ++r) {
      double gain = 0;
      for (const ScoreTable::Entry& e : table.rows[r])
        gain += std::max(0.0, e.score - best[static_cast<size_t>(e.column)]);
      if (gain > most) most = gain, pick = static_cast<int>(r);
    }
    if (pick < 0) break;
    rows.push_back(pick);
    for (const ScoreTable::Entry& e : table.rows[static_cast<size_t>(pick)])
      best[static_cast<size_t>(e.column)] = std::max(best[static_cast<size_t>(e.column)], e.score);
  }
  return rows;
}

// Exchanges one row for another as long as that raises the mean and does not lower the worst.
CoverSet exchanged(const ScoreTable& table, CoverSet set) {
  constexpr int kMostRounds = 32;
  for (int round = 0; round < kMostRounds; ++round) {
    CoverSet better = set;
    for (size_t out = 0; out < set.rows.size(); ++out) {
      std::vector<int> kept = set.rows;
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(out));
      std::vector<double> base(static_cast<size_t>(table.columns), 0);
      for (const int r : kept)
        for (const ScoreTable::Entry& e : table.rows[static_cast<size_t>(r)])
          base[static_cast<size_t>(e.column)] = std::max(base[static_cast<size_t>(e.column)], e.score);
      const double base_sum = std::accumulate(base.begin(), base.end(), 0.0);
      for (size_t r = 0; r < table.rows.size(); ++r) {
        double sum = base_sum;
        for (const ScoreTable::Entry& e : table.rows[r])
          sum += std::max(0.0, e.score - base[static_cast<size_t>(e.column)]);
        constexpr double kLeast = 1e-12;  // less is rounding
        if (sum / table.columns <= better.mean + kLeast) continue;
        std::vector<int> rows = kept;
        rows.push_back(static_cast<int>(r));
        CoverSet tried = score_cover(table, std::move(rows));
        if (tried.worst >= set.worst && tried.mean > better.mean + kLeast) better = std::move(tried);
      }
    }
    if (better.rows == set.rows) break;
    set = std::move(better);
  }
  return set;
}

CoverSet best_of(const ScoreTable& table, int k, int64_t& steps) {
  CoverSet best = score_cover(table, greedy(table, k));
  std::vector<double> levels;
  for (const auto& row : table.rows)
    for (const ScoreTable::Entry& e : row)
      if (e.score > best.worst) levels.push_back(e.score);
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  // The optimum is best.worst or one of the levels. One that is not decided in time counts as out of reach
  // for the search, and as within reach for the bound.
  size_t low = 0, high = levels.size(), refuted = levels.size();  // below `low` all are reached
  while (low < high) {
    const size_t middle = (low + high) / 2;
    LevelSearch search(table, levels[middle]);
    const Answer answer = search.decide(k, steps);
    if (answer == Answer::kYes) {
      best = score_cover(table, search.rows());
      while (low < levels.size() && levels[low] <= best.worst) ++low;
      continue;
    }
    if (answer == Answer::kNo) refuted = middle;
    high = middle;
  }
  best = exchanged(table, std::move(best));
  best.bound = low >= refuted ? best.worst : std::max(levels[refuted - 1], best.worst);
  return best;
}

}  // namespace

double ScoreTable::score(int row, int column) const {
  const auto& entries = rows[static_cast<size_t>(row)];
  const auto at = std::lower_bound(entries.begin(), entries.end(), column,
                                   [](const Entry& e, int c) { return e.column < c; });
  return at != entries.end() && at->column == column ? at->score : 0;
}

CoverSet score_cover(const ScoreTable& table, std::vector<int> rows) {
  CoverSet set{.rows = std::move(rows)};
  std::sort(set.rows.begin(), set.rows.end());
  set.rows.erase(std::unique(set.rows.begin(), set.rows.end()), set.rows.end());
  if (table.columns == 0) return set;
  std::vector<double> best(static_cast<size_t>(table.columns), 0);
  for (const int r : set.rows)
    for (const ScoreTable::Entry& e : table.rows[static_cast<size_t>(r)])
      best[static_cast<size_t>(e.column)] = std::max(best[static_cast<size_t>(e.column)], e.score);
  set.worst = *std::min_element(best.begin(), best.end());
  set.mean = std::accumulate(best.begin(), best.end(), 0.0) / table.columns;
  return set;
}

CoverSet best_cover(const ScoreTable& table, int k, const CoverLimits& limits) {
  CHECK(k >= 1) << "a cover set of " << k << " rows";
  const std::vector<int> useful = useful_rows(table);
  int64_t steps = limits.steps;
  CoverSet set = best_of(part_of(table, useful), k, steps);
  for (int& r : set.rows) r = useful[static_cast<size_t>(r)];
  return set;
}

SmallestCover smallest_cover(const ScoreTable& table, double level, int most, const CoverLimits& limits) {
  CHECK(most >= 1) << "a cover set of at most " << most << " rows";
  const std::vector<int> useful = useful_rows(table);
  const ScoreTable part = part_of(table, useful);
  int64_t steps = limits.steps;
  LevelSearch search(part, level);
  SmallestCover smallest{.at_least = 1};
  int size = 0;
  for (int k = 1; k <= most && size == 0; ++k) {
    int64_t share = steps / 2;  // so that a hard size leaves something to those after it
    const int64_t given = share;
    const Answer answer = search.decide(k, share);
    steps -= given - share;
    if (answer == Answer::kYes) size = k;
    if (answer == Answer::kNo) smallest.at_least = k + 1;
  }
  smallest.set = best_of(part, size == 0 ? most : size, steps);
  // The search for the best worst case starts from other sets: where it ran out of steps, the one that is
  // known to reach the level is the answer.
  if (size != 0 && smallest.set.worst < level) {
    const double bound = smallest.set.bound;
    smallest.set = exchanged(part, score_cover(part, search.rows()));
    smallest.set.bound = std::max(bound, smallest.set.worst);
  }
  for (int& r : smallest.set.rows) r = useful[static_cast<size_t>(r)];
  return smallest;
}

}  // namespace tuner
