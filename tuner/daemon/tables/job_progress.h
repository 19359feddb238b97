// How far a search is and what it costs, as the search thread tells it. Values only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "db/records.h"

namespace tuner {

struct JobProgress {
  int task_index = 0;  // the task of the latest result, else the first unfinished one
  int64_t trials_done = 0, trials_total = 0;
  double best_ns = 0, peak_gflops = 0;  // of that task; 0: not known yet
  double default_ns = 0;                // its first trial; 0: not known yet, or it gave no time
  std::string best_config, best_template, search_status;
  std::optional<double> gain_chance;    // of that task, within its next 100 trials; StoppingEstimate
  std::map<Outcome, int64_t> outcomes;  // of the job
};

// What proposals cost since it was last asked.
struct SearchCost {
  int64_t trials = 0;    // proposed
  double search_ms = 0;  // proposing them, and learning from results
  double store_ms = 0;
};

}  // namespace tuner
