// Run: how a job is searched while this daemon runs. Touched only by the thread that has the job's turn
// (turns.h).
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "db/records.h"
#include "tuner/daemon/rooms/farm_releases.h"
#include "tuner/daemon/search/job_runner.h"
#include "tuner/daemon/tables/jobs.h"
#include "tuner/daemon/tables/time_limit.h"

namespace tuner {

struct Run {
  std::shared_ptr<Job> job;
  std::unique_ptr<JobRunner> runner;
  TimeLimit time_limit;
  bool out_of_time = false;   // nothing more is proposed
  std::vector<int> to_race;   // under a time limit: tasks that ended and wait for their race
  std::set<int> done_racing;  // tasks whose race has begun, or was left out
  RaceOptions race;           // of the next race; limit_s <= 0: there is no time for it
  ReleasesTold releases_told;
  bool builder_told = false;  // that leases of it wait for a builder
};

}  // namespace tuner
