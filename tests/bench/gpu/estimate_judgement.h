// What results of a pack say about what was expected of them: does the estimated time rank configs as the
// device does, and what does a trial cost beside its kernel?
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

inline constexpr double kWantedCorrelation = 0.7;  // over the random picks of a task
inline constexpr double kWantedBesideMs = 20;      // of a trial, where operands are 4096 x 4096

struct TaskJudgement {
  std::string workload, target;
  int random = 0;          // picks that were right and have an estimate: what the correlation rests on
  int failed = 0;          // random picks that were not
  double correlation = 0;  // Spearman's, of estimates with measured times; 0 of fewer than kFewestPicks
  int trials = 0;          // runs that were right, whatever the pick
  double beside_ms = 0;    // median of what a trial took beside the calls that were timed
};
inline constexpr int kFewestPicks = 5;

// Reads lines of `runner run-pack`; a task has one judgement, in the order of the file. Of each candidate the
// first round counts for the correlation, as all are measured alike there. A last line without its end is
// left out. InvalidArgument: a line is something else.
Result<std::vector<TaskJudgement>> judge_estimates(std::istream& results);

}  // namespace tuner
