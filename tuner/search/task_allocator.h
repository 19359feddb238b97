// Chooses the task of a job that gets the next batch of trials: the one expected to save the most time of the
// whole model, use count x best time x expected gain.
//
//   default   every task first gets one trial, of its default config: so all have a time, however few trials
//             or seconds there are
//   floor     then every task gets its floor, the least advanced first, so all are known before any is
//             favoured. Among equally advanced ones the task with the most time to save comes first; while no
//             times are known, the most used one does
//   gain      then the greatest expected saving wins. Open trials count as spent: a task's gain is divided by
//             1 + open / horizon. Otherwise the leader would get everything while its results are out
//   no best   a task without a correct trial has no time to save. Such tasks take turns in every fourth batch
//             for as long as the budget lasts
//   settled   a task that stopped, or whose space is used up, gets nothing
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tuner {

struct TaskStanding {
  double weight = 1;           // use count
  int64_t done = 0, open = 0;  // trials with and without a result
  double best_ns = 0;          // 0: no correct result yet
  double expected_gain = 1;    // share of best_ns that the next 100 trials are expected to save
  bool settled = false;        // stopped, or nothing is left to try
};

// Returns the trials that a task gets before gains are compared: a tenth of its even share, at least 64, at
// most the share itself.
int64_t allocation_floor(int64_t even_share);

// Returns how many trials the task gets next, at most `most`: first 1, then no more than up to its floor, so
// that all tasks share few trials.
int64_t next_batch(const TaskStanding& task, int64_t even_share, int64_t most);

// Returns an index into `tasks`, or nothing if all are settled. `turn` counts the job's batches.
std::optional<size_t> next_task(std::span<const TaskStanding> tasks, int64_t even_share, int64_t turn);

}  // namespace tuner
