// SearchThreads: a few threads that think about jobs. Each takes the turn of one job (turns.h): results in,
// proposals out, races, the end. A job's search is never called concurrently.
//
// Who wakes a job says that it needs a turn; a few times a second all that run have one, as time passes for
// races and limits. The lock of the farm is not held while a search thinks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/edge/answers.h"
#include "tuner/daemon/edge/metrics.h"
#include "tuner/daemon/rooms/build_office.h"
#include "tuner/daemon/rooms/clock.h"
#include "tuner/daemon/rooms/coordinator_options.h"
#include "tuner/daemon/rooms/farm_state.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/locked.h"
#include "tuner/daemon/rooms/loss_office.h"
#include "tuner/daemon/rooms/race_office.h"
#include "tuner/daemon/rooms/run.h"
#include "tuner/daemon/search/learner.h"
#include "tuner/daemon/tables/turns.h"

namespace tuner {

class SearchThreads {
 public:
  // All of these outlive the threads. `wake_desk`: something may be leased; called without the lock.
  struct Parts {
    Store& store;
    Guarded<FarmState>& farm;
    const Clock& clock;
    const CoordinatorOptions& options;
    DaemonMetrics& metrics;
    JobNews& news;
    const Answers& answers;
    Learner& learner;
    BuildOffice& builds;
    LossOffice& losses;
    RaceOffice& races;
  };
  SearchThreads(Parts parts, std::function<void()> wake_desk);
  ~SearchThreads();  // stops
  SearchThreads(const SearchThreads&) = delete;
  SearchThreads& operator=(const SearchThreads&) = delete;

  // Starts the threads, unless turns are taken by hand.
  void start();
  // Ends the threads once each has ended its turn; jobs that run can be continued. Calling it twice is fine.
  void stop();
  // The job needs a turn. With the lock of the farm or without it.
  void wake(const std::string& job_id);
  // Makes the job's open trials of the store leasable, before any worker can speak.
  Status queue_open_trials(Job& job);

  // By hand: wakes all jobs that run if it is time for that; a turn of the job that has waited longest.
  // False: none waits.
  void tick();
  bool take_turn();

 private:
  void loop();
  void interrupt_jobs();
  void step(const std::shared_ptr<Job>& job);
  Status begin_run(const std::shared_ptr<Job>& job);
  std::shared_ptr<Run> run_of(const std::string& job_id) const;
  void queue_trials(Job& job, const std::vector<TrialRow>& rows);
  void report(Run& run, size_t new_results);
  void look_at_releases(Run& run);
  void conclude(const Run& run);
  void end_job(Job& job, JobState state, const std::string& message);

  const Parts of_;
  const std::function<void()> wake_desk_;
  // Which job is thought about next. Taken inside the lock of the farm, never around it.
  struct Agenda {
    Turns turns;
    int64_t ticked_ms = 0;  // when all running jobs were last woken
    bool stopping = false;
  };
  Guarded<Agenda> agenda_;
  std::condition_variable woken_;                              // for the threads
  Guarded<std::map<std::string, std::shared_ptr<Run>>> runs_;  // by job id
  std::vector<std::thread> threads_;
};

}  // namespace tuner
