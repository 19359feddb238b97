// How many workers are wanted, and what is done about it. Values only.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tuner/farm/slurm_queue.h"

namespace tuner::slurm {

struct ScalePlan {
  int submit = 0;                   // tasks of a new array
  std::vector<std::string> cancel;  // jobs that only wait
  std::vector<std::string> drain;   // jobs that run: their workers finish what they hold
  bool empty() const { return submit == 0 && cancel.empty() && drain.empty(); }
};

// From these tasks to `wanted` ones. Those that end, or are told to (`draining`), do not count. Waiting
// tasks go first, then the youngest running ones.
ScalePlan scale_plan(const std::vector<Task>& tasks, const std::set<std::string>& draining, int wanted);

// How many workers the daemon's queue keeps busy.
int wanted_workers(int64_t open_trials, int per_worker, int least, int most);

// Follows a queue: more workers at once, fewer only when as few were enough `patience` times in a row.
class Follower {
 public:
  explicit Follower(int patience) : patience_(patience) {}
  int next(int wanted, int now);

 private:
  int patience_, fewer_ = 0, most_wanted_ = 0;
};

}  // namespace tuner::slurm
