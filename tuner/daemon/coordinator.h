// Coordinator: the daemon but for the wire. It owns what the daemon knows of one database's jobs, and says in
// which order things happen: the store first, then the parts below, then whoever waits.
//
//   leases_    what is queued, and which worker may measure what until when      lease_table.h
//   workers_   who has registered, and what each can measure                     workers.h
//   jobs_      where each job stands                                             jobs.h
//   races_     races and remeasurements that are under way                       races.h
//   reruns_    trials measured again for somebody who waits                      reruns.h
//   runs_      how each job is searched: runner, time limit, races to come       job_runner.h
//
// The parts are plain tables: they know no clock, disk, thread or message. One lock, mutex_, is around all
// but runs_; it is held neither while the disk writes nor while a search thinks. One thread, the search
// thread, runs every job's search, expires leases, starts races and ends jobs, and runs_ is its own. So
// searches are never called concurrently.
//
// Methods take and fill the messages of proto/, may be called from any thread, and block no longer than they
// say. Error codes are those of Status; kAborted means "this session is unknown, register again" (server.cpp
// maps it to FAILED_PRECONDITION).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/resolve/resolve.h"
#include "db/store.h"
#include "measure.pb.h"
#include "tuner/daemon/answers.h"
#include "tuner/daemon/clock.h"
#include "tuner/daemon/event_log.h"
#include "tuner/daemon/finalists.h"
#include "tuner/daemon/job_runner.h"
#include "tuner/daemon/jobs.h"
#include "tuner/daemon/learner.h"
#include "tuner/daemon/lease_table.h"
#include "tuner/daemon/races.h"
#include "tuner/daemon/reruns.h"
#include "tuner/daemon/time_limit.h"
#include "tuner/daemon/workers.h"
#include "tuning.pb.h"

namespace tuner {

struct CoordinatorOptions {
  LeaseOptions leases;
  bool beside_worker = false;    // a worker measures on this host: the search keeps off its CPU
  bool resume_jobs = false;      // take up the store's unfinished jobs at start
  int64_t max_wait_ms = 20'000;  // longest Sync
  int64_t no_worker_hint_ms = 5'000;
  int64_t rerun_limit_ms = 300'000;
  RaceOptions race;
  int64_t race_wait_ms = 30'000;  // for a worker that can race, when the last one has gone
  TaskSpaceFactory make_space = make_task_space;
  std::function<Status(const JobRow::Task&)> check_task = tuner::check_task;
  StrategyFactory make_search = make_strategy;
  // What a record of the target would say today, by which Query judges what is stale (ResolverOptions).
  std::function<Present(const Target& target)> present;
};

class Coordinator {
 public:
  // `store` (opened for writing) and `clock` outlive this.
  Coordinator(Store& store, const Clock& clock, CoordinatorOptions options);
  ~Coordinator();  // stops
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Loads unfinished jobs and starts the search thread. Before it no other method may be called.
  Status start();
  // Every blocked call returns kUnavailable with `reason`; running jobs go back to `queued` and can be
  // continued. Calling it twice is fine.
  void stop(const std::string& reason);

  using Cancelled = std::function<bool()>;  // asked about four times a second: has the caller gone?

  // Waits until the lessons of ended jobs about other shapes are stored, at most limit_s. False on timeout.
  bool wait_until_learned(double limit_s) { return learner_.wait_until_idle(limit_s); }

  // --- workers ---
  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply);
  Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, const Cancelled& cancelled);

  // --- jobs ---
  Status submit(const v1::SubmitRequest& request, v1::SubmitReply* reply);
  // Sends events until the job ends; `send` returns false when the reader is gone.
  using Send = std::function<bool(const v1::JobEvent&)>;
  Status watch(const v1::WatchRequest& request, const Send& send, const Cancelled& cancelled);
  Status cancel(const v1::CancelRequest& request, v1::CancelReply* reply);
  Status rerun(const v1::RerunRequest& request, v1::MeasureRecord* reply, const Cancelled& cancelled);
  Status remeasure(const v1::RemeasureRequest& request, v1::RaceResult* reply, const Cancelled& cancelled);

  // --- questions ---
  Status list(v1::ListReply* reply) const { return answers_.list(reply); }
  Status list_workers(v1::ListWorkersReply* reply) const;
  Status query(const v1::QueryRequest& request, v1::QueryReply* reply) const {
    return answers_.query(request, reply);
  }
  Status read_job_file(const v1::ReadJobFileRequest& request, v1::ReadJobFileReply* reply) const;

 private:
  // How a job is searched in this run. Touched by the search thread only.
  struct Run {
    std::shared_ptr<Job> job;
    std::unique_ptr<JobRunner> runner;
    TimeLimit time_limit;
    bool out_of_time = false;   // nothing more is proposed
    std::vector<int> to_race;   // under a time limit: tasks that ended and wait for their race
    std::set<int> done_racing;  // tasks whose race has begun, or was left out
    RaceOptions race;           // of the next race; limit_s <= 0: there is no time for it
  };

  // Names end in _locked where mutex_ must be held.
  Status stopped_locked() const { return unavailable(stop_reason_); }
  void wake_search_locked();

  // coordinator.cpp: what clients ask for
  Result<std::optional<JobRow>> earlier_job(const JobRow& wanted, bool fresh) const;
  Status start_new_job(JobRow wanted, v1::SubmitReply* reply);
  Status continue_job(JobRow existing, const JobRow& wanted, v1::SubmitReply* reply);
  Result<std::string> next_job_id();
  void add_job_locked(JobRow row, int trials);
  Status send_events(const std::string& job_id, bool ended, const Send& send, int64_t& after) const;
  void tell(Job& job, const std::string& message, const v1::TunedConfig* tuned = nullptr,
            JobState state = JobState::kRunning);

  // coordinator_again.cpp: measurements that somebody waits for
  Status wait_for_locked(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ended,
                         const TrialWithRecord& trial, const Cancelled& cancelled);

  // coordinator_workers.cpp: what workers say and get
  Status accept_results(const v1::SyncRequest& request, v1::SyncReply* reply);
  void close_locked(const MeasureRecord& record, double check_ms, double store_ms,
                    const std::string& session);
  Status accept_races(const v1::SyncRequest& request, v1::SyncReply* reply);
  bool accept_race(const v1::RaceResult& message);
  void take_courses_locked(const v1::SyncRequest& request);
  void lease_locked(std::unique_lock<std::mutex>& lock, const std::string& session,
                    const std::set<std::string>& held, int slots, v1::SyncReply* reply);
  std::map<std::string, TrialRow> store_leases(const std::vector<std::string>& ids,
                                               const std::string& worker_id, double* store_ms);
  void add_best_times_locked(v1::SyncReply* reply) const;

  // coordinator_search.cpp: the search thread
  void search_loop();
  void step(const std::shared_ptr<Job>& job);
  Status begin_run(const std::shared_ptr<Job>& job);
  size_t low_water_locked() const;
  void queue_trials(Job& job, const std::vector<TrialRow>& rows);
  void report(Run& run, size_t new_results);
  std::string nobody_measures_locked(const Job& job);
  void conclude(const Run& run);
  void end_job(Job& job, JobState state, const std::string& message);
  void handle_losses(const std::vector<LeaseTable::Loss>& losses);
  bool lose_race_locked(const LeaseTable::Loss& loss);
  void retry_trial(const LeaseTable::Loss& loss);
  bool give_up_trial(const LeaseTable::Loss& loss);

  // coordinator_races.cpp: the search thread, after a task's last trial
  void end_task(Run& run, int task_index);
  Result<Finalists> finalists_of(const Run& run, int task_index, const TunedConfig& best) const;
  Result<bool> nothing_to_race(const Run& run, int task_index, const TunedConfig& best) const;
  bool start_race(const Run& run, int task_index, const Finalists& finalists);
  void announce(const Run& run, int task_index, const std::string& note);
  void step_races(Run& run);
  void watch_time_limit(Run& run);
  int64_t races_to_come(const Run& run);
  bool begin_races(Run& run);

  Store& store_;
  const Clock& clock_;
  const CoordinatorOptions options_;
  const Answers answers_;
  EventLog events_;
  Learner learner_;

  std::mutex submit_mutex_;       // one submit decides at a time; taken before mutex_
  int64_t last_job_number_ = -1;  // under submit_mutex_; -1: not read yet
  mutable std::mutex mutex_;
  std::condition_variable work_;    // for waiting workers: trials queued, leases revoked
  std::condition_variable search_;  // for the search thread: results, jobs, cancellations
  std::condition_variable news_;    // for watchers, cancel and rerun
  LeaseTable leases_;
  Workers workers_;
  Jobs jobs_;
  Races races_;
  Reruns reruns_;
  bool search_woken_ = false, stopping_ = false;
  std::string stop_reason_;
  std::map<std::string, Run> runs_;  // by job id
  std::thread search_thread_;
};

}  // namespace tuner
