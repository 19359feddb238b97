// The jobs of a daemon's database with what is known of their tasks: for `tuner jobs`.
#pragma once

#include <map>
#include <vector>

#include "tuner/client/daemon_client.h"

namespace tuner {

struct ListedJob {
  JobRow job;
  int64_t done = 0;                     // trials
  std::map<size_t, TunedConfig> tuned;  // by number of the task; none: nothing is known
};

// All of them, oldest first, in a few calls however many there are. `counted`: trials and outcomes of what is
// known, too.
Result<std::vector<ListedJob>> listed_jobs(const DaemonClient& client, bool counted);

}  // namespace tuner
