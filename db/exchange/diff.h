// Compares two databases: would the second answer with slower configs than the first?
#pragma once

#include <string>
#include <vector>

#include "db/store.h"

namespace tuner::exchange {

struct DiffOptions {
  double threshold = 0.02;   // smaller relative changes do not count
  double confidence = 0.95;  // confidence that all verdicts together are right
};

// One task, compared by its best config in each database.
struct TaskDiff {
  enum class Verdict {
    kSame,     // the whole interval lies within the threshold, or both answers rest on one measurement
    kFaster,   // b is faster: the whole interval lies beyond the threshold
    kSlower,   // b is slower by the same rule: a regression
    kUnsure,   // the interval crosses a threshold, so nothing is decided
    kRefused,  // the two cannot be compared; `note` says why
  };
  JobRow::Task task;
  Verdict verdict = Verdict::kRefused;
  TunedConfig a, b;
  double ratio = 0, low = 0, high = 0;  // time in b divided by time in a; the interval allows for all tasks
  bool raced = false;                   // true if both times come from races; else both come from one trial's
                                        // samples
  bool by_sentinel = false;  // true if the hardware differs: both are then in units of their sentinel kernel
  std::string note;
};
std::string_view verdict_name(TaskDiff::Verdict verdict);

struct DiffReport {
  std::vector<TaskDiff> tasks;  // tasks that both databases have; slowest change first, refused ones last
  std::vector<JobRow::Task> only_a, only_b;
  // The geometric mean of the compared tasks' ratios, with its t interval. 0 if none could be compared; with
  // one task, its own interval.
  int64_t compared = 0;
  double ratio = 0, low = 0, high = 0;
  int64_t count(TaskDiff::Verdict verdict) const;
  // True if one task is slower, or all tasks together are.
  bool regressed(const DiffOptions& options) const {
    return count(TaskDiff::Verdict::kSlower) > 0 || low > 1 + options.threshold;
  }
};

// Compares every task that both databases have a correct time for. Errors are those of reading a database.
Result<DiffReport> diff_databases(const Store& a, const Store& b, const DiffOptions& options);

// The arithmetic of the comparison. Samples of one kernel, one group for each process that took them.
struct Samples {
  std::vector<std::vector<double>> groups;
};
// The figure for one side, with the standard deviation of its logarithm.
struct Figure {
  double value = 0, log_deviation = 0;
  int64_t degrees = 0;  // degrees of freedom: groups left after trimming (or samples, if there is one group),
                        // minus one
};
// Several groups: the trimmed mean over the logarithms of their lower quartiles, as in a race. One group: its
// median, with a bootstrap deviation.
Figure figure_of(const Samples& samples);
struct RatioInterval {
  double ratio = 0, low = 0, high = 0;
};
// Returns b over a with its two-sided interval for `error_rate`: Student's t on the logarithm, with Welch's
// degrees of freedom.
RatioInterval ratio_of(const Figure& a, const Figure& b, double error_rate);

}  // namespace tuner::exchange
