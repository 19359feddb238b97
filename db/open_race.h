// A race under way, as it is stored: what the daemon must know to go on with it after a restart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/records.h"

namespace tuner {

struct OpenRaceRow {
  std::string id;  // of its lease; no two races have the same
  std::string job_id;
  int task_index = 0;
  std::vector<std::string> finalists;  // trial ids, the most promising first
  std::string default_trial_id;        // the finalist with the default config; empty: none
  std::string stored_trial_id;         // the finalist that is the answer so far; empty: none
  RaceOptions options;
  TrialState state = TrialState::kQueued;  // queued or leased; a race that has ended is not returned
  int attempt = 0;                         // leases so far
  int64_t fencing = 0;                     // of the last lease
  std::string worker_id;                   // of the last lease
  std::vector<Grant> grants;               // its latest leases, at most kMostGrants, in order of attempts
};

}  // namespace tuner
