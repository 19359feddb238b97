// Jobs: where each job of this daemon stands: its state, what its watchers are told, where its time goes.
// How its search thinks is the search thread's own business (job_runner.h); it reports here.
//
// Pure: no clock, no disk, no threads. The caller says what time it is (milliseconds, monotonic), stores
// states and events, and holds its own lock around every call, unless it says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/records.h"
#include "tuner/daemon/tables/job_progress.h"
#include "tuner/daemon/tables/phase_times.h"

namespace tuner {

// Whether a job in this state runs no more: it is finished, cancelled or failed.
bool has_ended(JobState state);

// What a watcher is told of a job, beside its events and races.
struct JobReport {
  JobProgress search;
  double best_gflops = 0;        // of the task that `search` is about; 0: no time yet
  double trials_per_second = 0;  // over the last 20 s; 0: not known
  double eta_s = 0;              // at that rate; 0: not known
  struct Phase {
    double median_ms = 0, total_ms = 0;  // PhaseTimes
  };
  std::array<Phase, kTrialPhases> phases;
};

// One run of a job: from the time it is submitted, or continued, until it ends.
class Job {
 public:
  // `trials`: per task in this run.
  Job(JobRow row, int trials, int64_t now_ms);

  // As it was submitted. These four never change and need no lock.
  const JobRow& row() const { return row_; }
  const std::string& id() const { return row_.id; }
  int trials() const { return trials_; }
  int64_t flops(int task_index) const;  // of one call; 0: not known

  JobState state() const { return state_; }
  bool ended() const { return has_ended(state_); }
  void set_state(JobState state);  // a job that has ended has no best times any more
  void ask_to_cancel() { cancel_asked_ = true; }
  bool cancel_asked() const { return cancel_asked_; }

  // Results in the store that its search has not seen.
  void results_came() { results_came_ = true; }
  bool take_results() { return std::exchange(results_came_, false); }

  // What a trial cost, as its result tells. `check_ms`: of its run. `store_ms`: storing the result.
  void count_costs(const MeasureRecord& record, double check_ms, double store_ms);
  void count_lease(double store_ms) { lease_store_ms_ = store_ms; }  // storing one, lately

  // The search has had a turn: it took in `new_results`, and has proposed at that cost. `best_ns`: of each
  // task, 0: none yet. True: there is a new report.
  bool take_progress(const JobProgress& progress, const SearchCost& cost, const std::vector<double>& best_ns,
                     size_t new_results, int64_t now_ms);
  const JobReport& report() const { return report_; }
  // True when `open` trials and races have waited for more than `limit_ms` without any result, until it is
  // told.
  bool may_wait_in_vain(size_t open, int64_t limit_ms, int64_t now_ms) const;
  void told_that_it_waits() { told_idle_ = true; }

  // Each grows when there is something new to tell: of the report or its races, and of its events.
  int64_t progress_version() const { return progress_version_; }
  int64_t event_version() const { return event_version_; }
  void note_race() { ++progress_version_; }
  void note_event() { ++event_version_; }

  // The fastest right time of each task that has one, by task index.
  const std::map<int, double>& best_ns() const { return best_ns_; }

 private:
  void make_report(const JobProgress& progress, int64_t now_ms);

  const JobRow row_;
  const int trials_;
  std::vector<int64_t> flops_;
  JobState state_ = JobState::kQueued;
  bool cancel_asked_ = false, results_came_ = false;
  JobReport report_;
  bool reported_ = false;
  int64_t progress_version_ = 0, event_version_ = 0;
  std::map<int, double> best_ns_;
  std::deque<int64_t> result_times_ms_;  // within the window of the rate
  int64_t idle_since_ms_ = 0;            // without a result
  bool told_idle_ = false;
  PhaseTimes times_;
  double proposal_store_ms_ = 0, lease_store_ms_ = 0;  // of a trial, lately
  double unproposed_ms_ = 0;  // of the search, since it last proposed: part of its next proposals
};

// The jobs of a daemon: those that run, and the latest 256 that have ended. Whoever holds a Job keeps it,
// also when the job is run anew.
class Jobs {
 public:
  // In the place of an earlier run of the same job, which must have ended. Forgets the oldest of those that
  // have ended, if there are too many.
  void add(JobRow row, int trials, int64_t now_ms);
  std::shared_ptr<Job> find(const std::string& job_id) const;  // its latest run; null: not of this daemon
  std::vector<std::shared_ptr<Job>> running() const;           // queued ones too, in the order of their ids
  const std::map<std::string, std::shared_ptr<Job>>& all() const { return jobs_; }

 private:
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  std::deque<std::shared_ptr<Job>> added_;  // in the order in which they came
};

}  // namespace tuner
