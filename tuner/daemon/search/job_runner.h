// JobRunner: one job's search. Turns results into proposals and proposals into stored trials; knows nothing
// of workers.
//
// Every task's first trial is its default config, the second what the database would answer for the task now:
// no job ends slower than what was known before it. Then the next batch of trials goes to the task that is
// expected to gain the most by it (search/task_allocator.h). A task ends when its space is used up, when its
// chance of a gain falls below what the job says (search/stopping_estimate.h), or with the job's budget:
// `trials` for each task, of which those that end early leave theirs unused.
//
// A search sees results in one order only: that of their record ids in the store, whatever workers sent them
// and when, and it sees them right before it proposes, all new ones in one call. Each call of propose is
// stored with the last record it had observed, so the search can be played again, bit for bit (schema.sql,
// table proposal).
//
// Crash safety is in the order of things: a proposal is in the store before anybody may lease it, a result is
// in the store before it is observed here. After a crash the search is played again from these rows and
// stands where it stood, model and random numbers included; trials without a result are handed back by
// open_trials(). A search that does not give again what it once gave (another version of it) starts anew from
// the results, and what it then proposes a second time is dropped.
//
// Not thread-safe: the daemon's search thread owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "db/store.h"
#include "tuner/daemon/search/known_answer.h"
#include "tuner/daemon/search/search_history.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/daemon/tables/job_progress.h"
#include "tuner/daemon/tables/work.h"
#include "tuner/search/search_strategy.h"
#include "tuner/search/stopping_estimate.h"
#include "tuner/search/task_allocator.h"

namespace tuner {

using TaskSpaceFactory = std::function<Result<TaskSpace>(const JobRow::Task&)>;
using StrategyFactory = std::function<Result<std::unique_ptr<SearchStrategy>>(
    std::string_view name, const SearchSpace&, uint64_t seed)>;

// Trials proposed at a time: a model is refit on results of the batches before.
inline constexpr int kProposalBatch = 16;

class JobRunner {
 public:
  // `store` outlives this. `trials` per task on average (a job may be run for fewer than its row says).
  // `known_answer`: null if no answer is to be tried first.
  JobRunner(Store& store, JobRow job, int trials, TaskSpaceFactory make_space, StrategyFactory make_search,
            KnownAnswer known_answer = nullptr);

  // Reads what the store knows of the job. Call once, first.
  Status start();
  // Trials without a result, in the order they were proposed: to be queued before new ones.
  std::vector<TrialRow> open_trials() const;

  // Takes in the results that came into the store since the last call; how many there were.
  Result<size_t> observe();
  // Batches of new trials, stored, until more than `low_water` are open; empty when enough are, or nothing is
  // left.
  Result<std::vector<TrialRow>> propose(size_t low_water);

  // Nothing is proposed after this: the job ends with the trials that are open.
  void end_proposals() {
    proposals_ended_ = true;
    unstored_.reset();
  }
  // Why the store took no trials at the last propose(), which keeps them and tries again at the next; null:
  // it took all.
  const Status* store_trouble() const { return unstored_ ? &unstored_->why : nullptr; }
  // Open trials that nobody has begun and nobody will in this run. When the job is continued they are given
  // again, once the store has them as cancelled.
  void withdraw(const std::vector<std::string>& trial_ids);
  bool finished() const;
  // What people should know, since the last call: a task stopped early, or one whose search could not be
  // played again after a restart.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }
  // Tasks that ended since the last call.
  std::vector<int> take_finished_tasks();
  JobProgress progress() const;
  const JobRow& job() const { return job_; }
  int64_t trials_done(int task_index) const { return tasks_[task_index].done; }
  // Some task has no result yet, and can still have one.
  bool some_task_is_untried() const;
  // Fastest right and uncut result of a task in this job; 0: none yet.
  double best_ns(int task_index) const { return tasks_[task_index].best_ns; }
  size_t open_count() const { return open_.size(); }
  // Which templates its tasks use, as far as they have begun, and its open trials: one of each Needs. Only
  // grows.
  const std::set<Needs>& needs() const { return needs_; }
  SearchCost take_spent() { return std::exchange(spent_, {}); }

 private:
  // A trial whose task has not begun: what tells its candidate, once there is a space.
  struct StoredTrial {
    int64_t seq = 0;
    std::string template_name, config;
    int template_version = 1;
    bool cancelled = false;
    std::optional<PastTrial::Result> result;
  };
  struct Task {
    std::optional<TaskSpace> space;
    std::unique_ptr<SearchStrategy> search;
    std::set<Candidate> known;  // that have a trial, cancelled ones apart
    std::vector<Observation>
        unobserved;               // results the search has not seen yet, in the order of their records
    int64_t donor_record_id = 0;  // records of other jobs the search was warmed with have ids up to this
    // Found by start(), until the task begins:
    std::vector<StoredTrial> stored;  // in seq order
    std::vector<ProposalRow> proposals;
    std::optional<Candidate> answer;  // the database's, to be given right after the default
    std::vector<Candidate> reopen;    // of cancelled trials: given once more before the search is asked
    int64_t done = 0, open = 0;
    bool exhausted = false, stopped = false, announced = false;
    std::optional<StoppingEstimate> estimate;  // with `space`, which it borrows
    double best_ns = 0, peak_gflops = 0, default_ns = 0;
    std::string best_config, best_template;
    std::string first_trial_id;  // of the default config
  };
  struct Open {
    TrialRow row;
    std::optional<Candidate> candidate;  // none: its template or config is not of this version
  };

  Status take_stored(const TrialWithRecord& trial);
  Result<Task*> task_of(std::string_view what, int index);
  void note_first(Task& task, const std::string& trial_id) const;
  void note_template(int task_index, const std::string& name, int version);
  Status begin(Task& task, size_t index);
  void look_up_answer(Task& task, size_t index);
  Result<std::vector<TrialRow>> propose_answer(Task& task, size_t index);
  static std::optional<Candidate> candidate_of(const Task& task, const std::string& template_name,
                                               int template_version, const std::string& config);
  static std::vector<PastTrial> take_past(Task& task, std::vector<Candidate>& cancelled);
  static bool play_again(Task& task, const std::vector<PastTrial>& past);
  Result<std::vector<TrialRow>> store_trials(Task& task, size_t index,
                                             const std::vector<Candidate>& candidates, ProposalRow* proposal);
  Result<std::vector<TrialRow>> propose_batch(Task& task, size_t index, size_t wanted);
  Result<std::optional<size_t>> choose_task();
  TaskStanding standing(size_t index) const;
  void judge_stop(Task& task, size_t index);
  void count(Task& task, int index, const TrialRow& row, const MeasureRecord& record);
  static bool settled(const Task& task) { return task.exhausted || task.stopped; }
  int64_t trials_spent() const;
  int64_t trials_total() const;  // that will have been spent when the job ends, as far as is known
  bool ended(const Task& task) const {
    if (unstored_ && &tasks_[unstored_->index] == &task) return false;
    return task.open == 0 && (settled(task) || proposals_ended_ || trials_spent() >= trials_total());
  }

  Store& store_;
  JobRow job_;
  int64_t trials_;
  TaskSpaceFactory make_space_;
  StrategyFactory make_search_;
  KnownAnswer known_answer_;
  std::vector<Task> tasks_;
  std::map<std::string, Open> open_;  // by trial id
  std::map<Outcome, int64_t> outcomes_;
  int64_t observed_record_id_ = 0;  // of this job, all tasks
  std::vector<std::string> notes_;
  int latest_task_ = 0;
  int64_t turns_ = 0;  // batches proposed
  bool proposals_ended_ = false;
  struct Unstored {  // candidates whose trials the store refused
    size_t index;    // of their task
    std::vector<Candidate> candidates;
    std::optional<ProposalRow> proposal;
    Status why;
  };
  std::optional<Unstored> unstored_;
  SearchCost spent_;
  std::set<Needs> needs_;
};

}  // namespace tuner
