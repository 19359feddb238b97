// Cover sets: a few configs that together come close to the best everywhere.
//
// A column is a place to be served: one shape on one device. A row is a config, with its score in the columns
// where it was measured: the fastest known time there divided by its own, above 0 and at most 1. A set serves
// a column as well as its best member does. A config that failed or was never measured in a column scores 0
// there: only what was measured counts.
#pragma once

#include <cstdint>
#include <vector>

namespace tuner {

struct ScoreTable {
  struct Entry {
    int column = 0;
    double score = 0;
  };
  int columns = 0;
  std::vector<std::vector<Entry>> rows;  // a row's entries have ascending columns, each at most once

  double score(int row, int column) const;  // 0 if there is none
};

struct CoverSet {
  std::vector<int> rows;       // row numbers of the table, ascending, each once
  double worst = 0, mean = 0;  // over all columns: the score of the column's best member
  double bound = 1;            // no set of as many rows has a better `worst`
  bool is_optimal() const { return worst >= bound; }
};
// Computes `worst` and `mean` of these rows from the table; `bound` stays 1.
CoverSet score_cover(const ScoreTable& table, std::vector<int> rows);

// Limits the exact search. At the limit, the best set so far is the answer, and `bound` says how far away the
// optimum may be.
struct CoverLimits {
  int64_t steps = 200'000'000;  // roughly the number of word operations
};

// Returns at most k >= 1 rows with the best possible `worst`, by branch and bound over the distinct scores.
// Among sets with that `worst`, no exchange of one row improves the mean, but another set may. Empty for a
// table without entries.
CoverSet best_cover(const ScoreTable& table, int k, const CoverLimits& limits = {});

struct SmallestCover {
  CoverSet set;      // best_cover() of that size
  int at_least = 0;  // no smaller set reaches the level; equals set.rows.size() if the search was exhaustive
};
// Returns the fewest rows, at most `most`, that score at least `level` in every column. If no such set was
// found, it is best_cover(most) and worst < level.
SmallestCover smallest_cover(const ScoreTable& table, double level, int most, const CoverLimits& limits = {});

}  // namespace tuner
