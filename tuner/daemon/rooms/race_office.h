// RaceOffice: after a task's last trial its best candidates are leased together to one worker, which measures
// them against each other. The result decides what Store::best answers. And what a job's time limit leaves
// for races.
//
// A race is a row before a worker may have it (db/open_race.h), and so is each of its leases. So a daemon
// that is started anew goes on with it, and takes its result from a worker that lived through the restart.
//
// What takes a Run is called by the thread that has the job's turn, without the lock of the farm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/line_limit.h"
#include "compiler_core/base/status.h"
#include "db/open_race.h"
#include "db/store.h"
#include "tuner/daemon/edge/answers.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/run.h"
#include "tuner/daemon/rooms/wake.h"
#include "tuner/daemon/tables/finalists.h"

namespace tuner {

class RaceOffice {
 public:
  // All of these outlive the office.
  struct Parts {
    Store& store;
    Guarded<FarmState>& farm;
    const Clock& clock;
    const CoordinatorOptions& options;
    JobNews& news;
    const Answers& answers;
  };
  RaceOffice(Parts parts, Wake wake);

  // Goes on with the races that the store knows of the job and this daemon does not.
  Status resume_races(const std::string& job_id);
  // The task has had its last trial: starts its race, or says at once what is known where none can be.
  void end_task(Run& run, int task_index);
  // Tells what races of the job have ended.
  void step_races(Run& run);
  // A job that ends leaves no race behind that its continuation would run.
  void end_open_races(const std::string& job_id);

  // So that a restart of the daemon goes on with the time that is left.
  void store_time_used(Run& run);
  // When the time for trials is over, queued ones are withdrawn, those that a worker lost as well, and those
  // with a worker are finished. Withdrawn ones stay open in the store until the job ends.
  void watch_time_limit(Run& run);
  // Under a time limit races begin one a worker, the task with the most time to save first. True: races of
  // the job are under way.
  bool begin_races(Run& run);

 private:
  Result<Finalists> finalists_of(const Run& run, int task_index, const TunedConfig& best) const;
  Result<bool> nothing_to_race(const Run& run, int task_index, const TunedConfig& best) const;
  bool races_already(const Run& run, int task_index) const;
  Status start_race(const Run& run, int task_index, Finalists& finalists);
  Status check_racers(const FarmState& farm, const JobRow::Task& task, Finalists& finalists) const;
  void queue_race(Job& job, const OpenRaceRow& row, const std::vector<TrialRow>& finalists);
  void announce(const Run& run, int task_index, const std::string& note);
  int64_t races_to_come(const Run& run);

  Store& store_;
  Guarded<FarmState>& farm_;
  const Clock& clock_;
  const CoordinatorOptions& options_;
  JobNews& news_;
  const Answers& answers_;
  const Wake wake_;
  LineLimit disk_log_;
};

}  // namespace tuner
