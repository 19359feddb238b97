// Coordinator: all of the daemon but the wire. Jobs, leases and workers of one database.
//
// Methods take and fill the messages of proto/, may be called from any thread, and block no longer than they
// say. One thread of its own, the search thread, runs every job's search, expires leases and ends jobs; so
// searches are never called concurrently and no lock is held while one thinks or while the disk writes.
//
// Error codes are those of Status; kAborted means "this session is unknown, register again" (service.cpp maps
// it to FAILED_PRECONDITION).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/resolve/resolve.h"
#include "db/store.h"
#include "measure.pb.h"
#include "tuner/daemon/clock.h"
#include "tuner/daemon/job_runner.h"
#include "tuner/daemon/learner.h"
#include "tuner/daemon/lease_table.h"
#include "tuner/daemon/phase_times.h"
#include "tuning.pb.h"

namespace tuner {

// Before the target of a race's lease: it is for workers that serve the target and can race.
inline constexpr std::string_view kRaceOf = "race on ";

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
  // continued. Twice is fine.
  void stop(const std::string& reason);

  using Cancelled = std::function<bool()>;  // asked about four times a second: has the caller gone?

  // Until what ended jobs teach about other shapes is stored, or the time is over. Whether it is.
  bool wait_until_learned(double limit_s) { return learner_.wait_until_idle(limit_s); }

  // --- workers ---
  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply);
  Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, const Cancelled& cancelled);

  // --- jobs ---
  Status submit(const v1::SubmitRequest& request, v1::SubmitReply* reply);
  // Sends events until the job ends; `send` returns false when the reader is gone.
  Status watch(const v1::WatchRequest& request, const std::function<bool(const v1::JobEvent&)>& send,
               const Cancelled& cancelled);
  Status list(v1::ListReply* reply) const;
  Status cancel(const v1::CancelRequest& request, v1::CancelReply* reply);
  Status rerun(const v1::RerunRequest& request, v1::MeasureRecord* reply, const Cancelled& cancelled);
  Status remeasure(const v1::RemeasureRequest& request, v1::RaceResult* reply, const Cancelled& cancelled);
  Status list_workers(v1::ListWorkersReply* reply) const;
  Status query(const v1::QueryRequest& request, v1::QueryReply* reply) const;
  Status read_job_file(const v1::ReadJobFileRequest& request, v1::ReadJobFileReply* reply) const;

 private:
  struct Worker {
    LeaseTable::Owner owner;
    std::string host;
    std::vector<std::string> targets;
    std::vector<std::string>
        features;  // of its host: they decide what code is measured there (Backend::measures)
    int max_threads = 1;
    bool races = false;
    int64_t last_seen_ms = 0, trials_done = 0;
    int capacity = 0;                    // free slots and held leases at its last Sync
    uint64_t generation = 0;             // of its latest Sync: an older one still waiting gives up
    std::map<std::string, bool> serves;  // target -> may it be measured here; filled as asked
  };
  // How long races of a job take, from the daemon's side. A guess counts as one race.
  struct RaceTimes {
    double races = 1, sum_ms = 8'000;  // of all
    double late_races = 1,
           late_ms = 500;  // of those that used their limit up: how long they went on after it
  };
  struct Job {
    JobRow row;
    int limit = 0;                      // trials per task in this run
    std::unique_ptr<JobRunner> runner;  // touched by the search thread only
    bool results_came = false;          // into the store, not yet observed
    std::vector<int64_t> flops;         // of each task
    v1::Progress progress;
    int64_t progress_version = 0, event_version = 0;
    std::deque<int64_t> result_times_ms;
    PhaseTimes times;               // of this run of the job
    double proposal_store_ms = 0;   // of a trial, lately
    double lease_store_ms = 0;      // of a trial, lately
    double unproposed_ms = 0;       // of the search, since it last proposed: part of its next proposals
    std::map<int, double> best_ns;  // by task
    JobState state = JobState::kQueued;
    bool cancel_asked = false, hinted = false;
    int64_t idle_since_ms = 0;
    // Touched by the search thread only, coordinator_time_limit.cpp:
    int64_t deadline_ms = 0;    // of this run, its races included; 0: no time limit
    bool out_of_time = false;   // nothing more is proposed
    std::vector<int> to_race;   // tasks that ended and wait for their race
    std::set<int> done_racing;  // tasks whose race has begun, or was left out
    RaceOptions race;           // of the next one; limit_s <= 0: there is no time for it
    RaceTimes race_times;
  };
  struct Rerun {
    std::optional<v1::MeasureRecord> record;
    std::string error;
  };

  // A race or a remeasurement, from the time it is asked for until its end has been told.
  struct Race {
    std::string job_id;  // empty: a remeasurement
    int task_index = 0;
    std::string target;
    int64_t served_ms = 0;  // when a worker that can race was last there
    int64_t begun_ms = 0;   // when it was given to a worker
    double limit_s = 0;
    v1::RaceCourse course;  // how far it is
    bool ended = false;
    std::optional<v1::RaceResult> result;  // of a remeasurement
    std::string error;                     // why it ended without a winner
    std::string uncertified_why;           // its winner is not certified, and why
  };
  struct Finalists {
    std::vector<TrialRow> trials;
    std::string default_trial_id;  // of these the default config; empty: it is none of them
  };

  // Names end in _locked where mutex_ must be held.
  bool serves_locked(Worker& worker, const std::string& target) const;
  void lease_locked(std::unique_lock<std::mutex>& lock, const std::string& session,
                    const std::set<std::string>& held, int slots, v1::SyncReply* reply);
  // The best times known of open tasks, beside the leases that are cut by them.
  void add_best_times_locked(v1::SyncReply* reply) const;
  Status accept_results(const v1::SyncRequest& request, v1::SyncReply* reply);
  void close_locked(const MeasureRecord& record, const v1::MeasureRecord& message, double store_ms,
                    const std::string& session);
  void add_job_locked(JobRow row, int limit);
  void queue_trials(const std::string& job_id, const std::vector<TrialRow>& rows);
  size_t low_water_locked() const;

  // coordinator_races.cpp
  Status accept_races(const v1::SyncRequest& request, v1::SyncReply* reply);
  bool lose_race_locked(const LeaseTable::Loss& loss);
  void take_courses_locked(const v1::SyncRequest& request);
  void add_races_locked(const std::string& job_id, v1::Progress* progress) const;
  bool race_served_locked(const std::string& target) { return racers_locked(target) > 0; }
  int racers_locked(const std::string& target);
  Result<Finalists> finalists_of(const Job& job, int task_index, const TunedConfig& best) const;
  Result<bool> settled(const Job& job, int task_index, const TunedConfig& best) const;
  // Store::best of the task, counted, with the default's time.
  Result<TunedConfig> best_of(const JobRow::Task& task) const;
  void end_task(Job& job, int task_index);
  void step_races(Job& job);
  void announce(Job& job, int task_index, const std::string& note);

  // coordinator_time_limit.cpp
  void watch_time_limit(Job& job);
  void withdraw_queued(Job& job);
  bool begin_races(Job& job);
  void count_race(Job& job, const Race& race) const;
  int64_t races_to_come(const Job& job);
  int64_t race_reserve_ms(const Job& job);
  double race_limit_s(const Job& job, int64_t races, int racers);

  void search_loop();
  void step(const std::string& job_id);
  void handle_losses(const std::vector<LeaseTable::Loss>& losses);
  void update_progress(Job& job, size_t new_results);
  void conclude(const Job& job);
  void end_job(const std::string& job_id, JobState state, const std::string& message);
  void add_event(const std::string& job_id, JobState state, const std::string& message,
                 const v1::TunedConfig* tuned);

  Store& store_;
  const Clock& clock_;
  CoordinatorOptions options_;
  const Resolver resolver_;
  Learner learner_;

  std::mutex submit_mutex_;  // one submit decides at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable work_;    // for waiting workers: trials queued, leases revoked
  std::condition_variable search_;  // for the search thread: results, jobs, cancellations
  std::condition_variable news_;    // for watchers, cancel and rerun
  LeaseTable leases_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  std::map<std::string, Worker> workers_;   // by session
  std::map<std::string, v1::Lease> specs_;  // what a worker must know of each open trial, by trial id
  std::map<std::string, int> task_of_trial_;
  std::map<std::string, Rerun> reruns_;  // by trial id
  std::map<std::string, Race> races_;    // by the id of their lease
  bool search_woken_ = false, stopping_ = false;
  std::string stop_reason_;
  std::thread search_thread_;
};

}  // namespace tuner
