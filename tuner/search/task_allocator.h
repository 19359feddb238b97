// Which task of a job gets the next batch of trials: the one whose next trials are expected to save the most
// time of the whole, use count x best time x expected gain.
//
//   default   every task first gets one trial, of its default config: so all have a time, however few trials
//             or seconds there are
//   floor     then every task gets its floor, the least advanced first; so all are known before any is
//             favoured. Of equally advanced ones the task with the most time to save is first, and while no
//             times are known the most used one
//   gain      then the greatest expected saving. Trials already on their way count as spent: a task's gain
//             is divided by 1 + open / horizon, or the leader would be given everything while its results are
//             out
//   no best   a task none of whose trials was right has no time to save from. It is tried again in every
//             fourth turn, in turn with its like, for as long as the budget lasts
//   settled   a task that stopped or whose space is used up gets nothing
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tuner {

struct TaskStanding {
  double weight = 1;           // use count
  int64_t done = 0, open = 0;  // trials with and without a result
  double best_ns = 0;          // 0: none was right yet
  double expected_gain = 1;    // share of best_ns that the next 100 trials are expected to save
  bool settled = false;        // stopped, or nothing left to try
};

// The trials a task gets before gains are compared: a tenth of its even share, at least 64, at most the
// share itself.
int64_t allocation_floor(int64_t even_share);

// How many trials the task gets next, at most `most`: 1 at first, then no more than its floor, so that few
// trials are shared by all.
int64_t next_batch(const TaskStanding& task, int64_t even_share, int64_t most);

// Index into `tasks`; none when all are settled. `turn` counts the job's proposal batches.
std::optional<size_t> next_task(std::span<const TaskStanding> tasks, int64_t even_share, int64_t turn);

}  // namespace tuner
