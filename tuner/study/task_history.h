// TaskHistory: how the searches of one task on one machine went, over all its jobs.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/study/recorded_roofs.h"

namespace tuner {

// In order of arrival.
struct TaskHistory {
  JobRow::Task task;
  double default_ns = 0;  // 0: the default config was not measured
  // With a config that a similar task would lend: mean of the three fastest of the nearest task of which any
  // was measured here. 0: none was.
  double lent_ns = 0;
  // The same in the scale of the latest race, with the best config's, which met the default in turn. 0: no
  // race.
  double raced_default_ns = 0, raced_lent_ns = 0, raced_last_ns = 0;
  std::vector<double> best_ns;   // after each trial; 0 before the first correct one
  bool exhausted = false;        // every valid config was measured
  double seconds_per_trial = 0;  // 0: not known
  double race_seconds = 0;       // 0: not known
  double last_ns() const { return best_ns.empty() ? 0 : best_ns.back(); }
  int64_t trials() const { return static_cast<int64_t>(best_ns.size()); }
};

struct Histories {
  std::vector<TaskHistory> tasks;
  RecordedRoofs roofs;
};

// Reads the newest jobs, at most `most_trials` of their trials.
Result<Histories> read_histories(const Store& store, int64_t most_trials = 200'000);

}  // namespace tuner
