// Cover sets: the few configs of many that together come near the best everywhere.
//
// A column is a place to be served: one shape on one device. A row is a config, with its score in the columns
// where it was measured: time of the fastest known config there over its own, above 0 and at most 1. A set
// serves a column as well as its best member does. Where a config failed or was never measured it counts as
// 0: a set is credited only with what was seen.
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
  std::vector<std::vector<Entry>> rows;  // entries of a row by ascending column; each column at most once

  double score(int row, int column) const;  // 0 where there is none
};

struct CoverSet {
  std::vector<int> rows;       // of the table, each once, ascending
  double worst = 0, mean = 0;  // over columns: score of the column's best member
  double bound = 1;            // no set of as many rows has a better `worst`
  bool is_optimal() const { return worst >= bound; }
};
// `worst` and `mean` of these rows, from the table alone; `bound` is left at 1.
CoverSet score_cover(const ScoreTable& table, std::vector<int> rows);

// Limits the exact search; where it is reached, the best set found so far is the answer and `bound` says how
// far from it the optimum may be.
struct CoverLimits {
  int64_t steps = 200'000'000;  // about as many word operations
};

// At most k >= 1 rows whose `worst` is the best there is, by branch and bound over the distinct scores; of
// the mean among such sets only that no exchange of one row improves it is certain. Empty for a table without
// entries.
CoverSet best_cover(const ScoreTable& table, int k, const CoverLimits& limits = {});

struct SmallestCover {
  CoverSet set;      // best_cover() of that size
  int at_least = 0;  // no smaller set reaches the level; set.rows.size() when the search was exhaustive
};
// The fewest rows, at most `most`, that score `level` or more in every column. When no such set was found the
// set is best_cover(most) and worst < level.
SmallestCover smallest_cover(const ScoreTable& table, double level, int most, const CoverLimits& limits = {});

}  // namespace tuner
