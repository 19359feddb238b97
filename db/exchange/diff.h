// Two databases compared: is what the second would answer slower than what the first would?
#pragma once

#include <string>
#include <vector>

#include "db/store.h"

namespace tuner::exchange {

struct DiffOptions {
  double threshold = 0.02;   // smaller changes do not count
  double confidence = 0.95;  // of the verdict over all tasks together
};

// One task, by its best config in each database.
struct TaskDiff {
  enum class Verdict {
    kSame,     // the interval lies within the threshold
    kFaster,   // and all of it beyond the threshold
    kSlower,   // the same the other way: a regression
    kUnsure,   // the interval reaches from one to another
    kRefused,  // not comparable, `note` says why
  };
  JobRow::Task task;
  Verdict verdict = Verdict::kRefused;
  TunedConfig a, b;
  double ratio = 0, low = 0, high = 0;  // time in b over time in a; the interval holds for all tasks together
  bool raced = false;                   // both by their races; else both by one trial's samples
  bool by_sentinel = false;  // hardware differs: both in units of the sentinel kernel timed beside them
  std::string note;
};
std::string_view verdict_name(TaskDiff::Verdict verdict);

struct DiffReport {
  std::vector<TaskDiff> tasks;  // in both databases; slowest change first, refused last
  std::vector<JobRow::Task> only_a, only_b;
  // Over the tasks that could be compared: the geometric mean of the ratios and its t interval. 0 of none; of
  // one task, low and high are its own.
  int64_t compared = 0;
  double ratio = 0, low = 0, high = 0;
  int64_t count(TaskDiff::Verdict verdict) const;
  // A task is slower, or all of them together are.
  bool regressed(const DiffOptions& options) const {
    return count(TaskDiff::Verdict::kSlower) > 0 || low > 1 + options.threshold;
  }
};

Result<DiffReport> diff_databases(const Store& a, const Store& b, const DiffOptions& options);

// What the above is made of. Samples of one kernel: a group for each process they were taken in.
struct Samples {
  std::vector<std::vector<double>> groups;
};
// Of one side: the figure, and the standard deviation of its logarithm.
struct Figure {
  double value = 0, log_deviation = 0;
  int64_t degrees = 0;  // of freedom: groups not trimmed (or samples, where there is one group) less one
};
// Several groups: as a race says it, the trimmed mean over the logarithms of their lower quartiles. One
// group: the median; the deviation is of samples drawn anew.
Figure figure_of(const Samples& samples);
struct RatioInterval {
  double ratio = 0, low = 0, high = 0;
};
// b over a, with the two-sided Student interval of that error rate on the logarithm (Welch's degrees of
// freedom).
RatioInterval ratio_of(const Figure& a, const Figure& b, double error_rate);

}  // namespace tuner::exchange
