// LikelyValue: predicts a value of a task (the gain of tuning it, say) from that of other tasks, with an
// interval that holds what it says.
//
// The prediction is the weighted median of the others, by likeness. The interval is a conformal one: each
// known task is predicted from the rest, and its error divided by the spread of its likes; the 10 and 90 %
// quantiles of these errors, of likes rather than of others, times the spread here, stand around the
// prediction. One more task, the unseen one, stands at both ends, so fewer than nine known tasks tell no
// interval; and the quantiles of few errors are taken a standard error further out.
#pragma once

#include <optional>
#include <vector>

#include "tuner/study/task_likeness.h"

namespace tuner {

struct KnownValue {
  const TaskLikeness* task;  // must outlive the LikelyValue
  double value;
};

class LikelyValue {
 public:
  struct Range {
    double expected = 0, low = 0, high = 0;  // the truth lies between low and high in 80 % of cases
    double high_alone = 0;                   // the truth lies below it in 80 % of cases
    double rests_on = 0;                     // weights of the known tasks together
    bool bounded = false;                    // false: too few are known to tell low and high
  };
  // Costs n^2 log n; of many tasks every k-th is taken.
  explicit LikelyValue(std::vector<KnownValue> known);
  // Returns nothing if no known task is like this one; `rests_on` tells how much they say.
  std::optional<Range> of(const TaskLikeness& task) const;

 private:
  struct Centre {
    double value = 0, spread = 0, weight = 0;
  };
  // Predicts from all known tasks but the one at position `skip`.
  Centre centre(const TaskLikeness& task, size_t skip) const;

  std::vector<KnownValue> known_;
  std::vector<double> errors_;  // of each known task, in spreads
  double spread_ = 0;           // of all known values around their median
};

}  // namespace tuner
