// The coordinator's search thread: results in, proposals out, leases that ran out, jobs that end.
#include <sched.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler_core/base/clock.h"
#include "proto/convert.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload.h"
#include "tuner/daemon/coordinator.h"

namespace tuner {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr int kDefaultCapacity = 4;  // trials a worker holds, until one has said
constexpr size_t kMostOpen = 4096;   // per job: proposals made long before they are measured are poor ones
constexpr int64_t kRateWindowMs = 20'000;

// Takes this thread off the last CPU it may use, which the worker beside this daemon keeps for the kernel
// being timed: a refit of the model takes tens of milliseconds and would be seen in the samples.
void leave_last_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2) return;
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) last = cpu;
  CPU_CLR(last, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

void Coordinator::search_loop() {
  if (options_.beside_worker) leave_last_cpu();
  while (true) {
    std::vector<LeaseTable::Loss> losses;
    std::vector<std::string> ids;
    {
      std::unique_lock lock(mutex_);
      search_.wait_for(lock, kTick, [&] { return search_woken_ || stopping_; });
      if (stopping_) break;
      search_woken_ = false;
      losses = leases_.expire(clock_.now_ms());
      for (const auto& [id, job] : jobs_)
        if (job->state == JobState::kQueued || job->state == JobState::kRunning) ids.push_back(id);
    }
    handle_losses(losses);
    for (const std::string& id : ids) step(id);
  }
  std::vector<std::string> running;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, job] : jobs_)
      if (job->state == JobState::kQueued || job->state == JobState::kRunning) running.push_back(id);
  }
  for (const std::string& id : running)
    if (const Status s =
            store_.set_job_state(id, JobState::kQueued, "interrupted; submit it again to continue");
        !s)
      spdlog::error("job {}: {}", id, s.message());
}

size_t Coordinator::low_water_locked() const {
  int capacity = 0;
  for (const auto& [session, worker] : workers_)
    if (clock_.now_ms() - worker.last_seen_ms <= options_.leases.ttl_ms) capacity += worker.capacity;
  // Twice what the workers hold: while one batch is measured the search thinks about the next.
  return std::min(2 * static_cast<size_t>(std::max(capacity, kDefaultCapacity)), kMostOpen);
}

// One turn of one job.
void Coordinator::step(const std::string& job_id) {
  std::shared_ptr<Job> job;
  size_t low_water = 0;
  bool cancel = false, results_came = false;
  {
    const std::lock_guard lock(mutex_);
    job = jobs_.at(job_id);
    results_came = std::exchange(job->results_came, false);
    low_water = low_water_locked();
    cancel = job->cancel_asked;
  }
  if (cancel) return end_job(job_id, JobState::kCancelled, "cancelled");
  if (job->runner == nullptr) {
    auto runner =
        std::make_unique<JobRunner>(store_, job->row, job->limit, options_.make_space, options_.make_search);
    Status started = store_.set_job_state(job_id, JobState::kRunning, "");
    if (started) started = runner->start();
    if (!started) return end_job(job_id, JobState::kFailed, started.message());
    job->runner = std::move(runner);
    if (const double limit_s = job->row.stop.time_limit_s; limit_s > 0)
      job->deadline_ms = clock_.now_ms() + std::llround(1000 * limit_s);
    {
      const std::lock_guard lock(mutex_);
      job->state = JobState::kRunning;
    }
    queue_trials(job_id, job->runner->open_trials());
    const JobProgress begun = job->runner->progress();
    add_event(job_id, JobState::kRunning,
              begun.trials_done > 0
                  ? str("continues after ", begun.trials_done, " of ", begun.trials_total, " trials")
                  : str("searches with ", job->row.search, ", seed ", job->row.seed),
              nullptr);
  }
  size_t new_results = 0;
  if (results_came) {
    const Result<size_t> observed = job->runner->observe();
    if (!observed) return end_job(job_id, JobState::kFailed, observed.message());
    new_results = *observed;
  }
  watch_time_limit(*job);
  Result<std::vector<TrialRow>> proposed = job->runner->propose(low_water);
  if (!proposed) return end_job(job_id, JobState::kFailed, proposed.message());
  queue_trials(job_id, *proposed);
  for (const std::string& note : job->runner->take_notes())
    add_event(job_id, JobState::kRunning, note, nullptr);
  update_progress(*job, new_results);

  for (const int index : job->runner->take_finished_tasks()) {
    if (job->deadline_ms == 0)
      end_task(*job, index);
    else if (job->runner->trials_done(index) > 0)
      job->to_race.push_back(index);
  }
  step_races(*job);
  if (!begin_races(*job) && job->to_race.empty() && job->runner->finished()) conclude(*job);
}

// Trials and races are over: says what came of the job.
void Coordinator::conclude(const Job& job) {
  const size_t tasks = job.row.tasks.size();
  size_t untuned = 0, unreached = 0;
  learner_.learn_from(job.row.tasks);
  for (size_t i = 0; i < tasks; ++i) {
    const JobRow::Task& task = job.row.tasks[i];
    if (job.out_of_time && job.runner->trials_done(static_cast<int>(i)) == 0)
      ++unreached;
    else if (!best_of(task))
      ++untuned;
  }
  std::string message;
  if (untuned > 0) {
    std::string counts;
    for (const auto& [outcome, n] : job.runner->progress().outcomes)
      counts += str(counts.empty() ? "" : ", ", n, " ", outcome_name(outcome));
    message = str(untuned, " of ", tasks, " tasks have no right answer that was timed in full (", counts,
                  "). What went wrong: tuner records export --job ", job.row.id);
  }
  if (unreached > 0)
    message += str(message.empty() ? "" : ". ", unreached, " of ", tasks,
                   " tasks were not reached within the time limit of ", job.row.stop.time_limit_s,
                   " s; submit again to continue");
  end_job(job.row.id, untuned > 0 ? JobState::kFailed : JobState::kFinished, message);
}

// Makes stored trials leasable. Those whose result came while they were being loaded are observed instead.
void Coordinator::queue_trials(const std::string& job_id, const std::vector<TrialRow>& rows) {
  if (rows.empty()) return;
  bool answered = false;
  // Leases of an earlier life that no worker can have survived go back to the queue at once.
  if (options_.leases.restart_grace_ms == 0)
    for (const TrialRow& row : rows)
      if (row.state == TrialState::kLeased)
        if (const Status s = store_.requeue_trial(row.id, row.attempt); !s)
          spdlog::warn("trial {}: {}", row.id, s.message());
  {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Job> job = jobs_.at(job_id);
    for (const TrialRow& row : rows) {
      const JobRow::Task& task = job->row.tasks[row.task_index];
      const LeaseTable::Trial trial{row.id, job_id, task.target, row.attempt, row.fencing};
      const bool may_live = row.state == TrialState::kLeased && options_.leases.restart_grace_ms > 0;
      const LeaseTable::Added added =
          may_live ? leases_.restore_leased(trial, clock_.now_ms()) : leases_.enqueue(trial);
      if (added == LeaseTable::Added::kResultCame) answered = true;
      if (added != LeaseTable::Added::kNew) continue;
      v1::Lease lease;
      to_proto(row, task, job->row.options, &lease);
      specs_[row.id] = std::move(lease);
      task_of_trial_[row.id] = row.task_index;
    }
  }
  work_.notify_all();
  if (!answered) return;
  const std::lock_guard lock(mutex_);
  jobs_.at(job_id)->results_came = true;
  search_woken_ = true;
}

void Coordinator::handle_losses(const std::vector<LeaseTable::Loss>& losses) {
  for (const LeaseTable::Loss& loss : losses) {
    std::string job_id;
    {
      const std::lock_guard lock(mutex_);
      if (const auto rerun = reruns_.find(loss.trial_id); rerun != reruns_.end()) {
        rerun->second.error = loss.message;  // the caller decides whether to try again
        news_.notify_all();
        continue;
      }
      if (lose_race_locked(loss)) continue;
      job_id = leases_.job_of(loss.trial_id);
    }
    spdlog::warn("{}", loss.message);
    if (loss.retry) {
      const Status requeued = store_.requeue_trial(loss.trial_id, loss.attempt);
      if (!requeued) spdlog::warn("trial {} stays as it is: {}", loss.trial_id, requeued.message());
      {
        const std::lock_guard lock(mutex_);
        leases_.requeued(loss.trial_id);
      }
      work_.notify_all();
    } else {
      MeasureRecord record;
      record.trial_id = loss.trial_id;
      record.attempt = loss.attempt;
      record.outcome = Outcome::kDeviceLost;
      record.message = loss.message;
      record.finished_at_us = wall_time_us();
      if (const Status added = store_.add_records({record}); !added) {
        spdlog::error("trial {}: {}", loss.trial_id, added.message());
        continue;
      }
      const std::lock_guard lock(mutex_);
      leases_.close(loss.trial_id);
      specs_.erase(loss.trial_id);
      task_of_trial_.erase(loss.trial_id);
      if (const auto job = jobs_.find(job_id); job != jobs_.end()) job->second->results_came = true;
      search_woken_ = true;
      search_.notify_all();
    }
    if (!job_id.empty()) add_event(job_id, JobState::kRunning, loss.message, nullptr);
  }
}

void Coordinator::update_progress(Job& job, size_t new_results) {
  const JobProgress p = job.runner->progress();
  const JobRunner::Spent spent = job.runner->take_spent();
  std::string hint;
  {
    const std::lock_guard lock(mutex_);
    job.unproposed_ms += spent.search_ms;
    if (spent.trials > 0) {
      job.times.add(TrialPhase::kPropose, std::exchange(job.unproposed_ms, 0), spent.trials);
      job.proposal_store_ms = spent.store_ms / static_cast<double>(spent.trials);
    }
    const int64_t now = clock_.now_ms();
    for (size_t i = 0; i < new_results; ++i) job.result_times_ms.push_back(now);
    while (!job.result_times_ms.empty() && now - job.result_times_ms.front() > kRateWindowMs)
      job.result_times_ms.pop_front();
    if (new_results > 0) job.idle_since_ms = now;
    for (size_t i = 0; i < job.row.tasks.size(); ++i)
      if (const double best_ns = job.runner->best_ns(static_cast<int>(i)); best_ns > 0)
        job.best_ns[static_cast<int>(i)] = best_ns;

    v1::Progress next;
    next.set_task_index(p.task_index);
    next.set_trials_done(p.trials_done);
    next.set_trials_total(p.trials_total);
    next.set_best_ns(p.best_ns);
    if (p.best_ns > 0) next.set_best_gflops(job.flops[p.task_index] / p.best_ns);
    next.set_peak_gflops(p.peak_gflops);
    next.set_default_ns(p.default_ns);
    next.set_search_status(p.search_status);
    if (p.gain_chance) next.set_gain_chance(*p.gain_chance);
    next.set_best_config(p.best_config);
    next.set_best_template(p.best_template);
    for (int phase = 0; phase < kTrialPhases; ++phase) {
      v1::PhaseTime* time = next.add_phases();
      time->set_phase(std::string(trial_phase_name(static_cast<TrialPhase>(phase))));
      time->set_median_ms(job.times.median_ms(static_cast<TrialPhase>(phase)));
      time->set_total_ms(job.times.total_ms(static_cast<TrialPhase>(phase)));
    }
    for (const auto& [outcome, n] : p.outcomes) {
      v1::OutcomeCount* count = next.add_outcomes();
      count->set_outcome(to_proto(outcome));
      count->set_count(n);
    }
    if (const std::deque<int64_t>& times = job.result_times_ms; times.size() >= 2 && now > times.front()) {
      next.set_trials_per_second((times.size() - 1) * 1000.0 / (now - times.front()));
      next.set_eta_s((p.trials_total - p.trials_done) / next.trials_per_second());
    }
    if (new_results > 0 || job.progress_version == 0) {
      job.progress = std::move(next);
      ++job.progress_version;
      news_.notify_all();
    }

    // A job nobody can measure would wait in silence.
    if (!job.hinted && job.runner->open_count() > 0 && now - job.idle_since_ms > options_.no_worker_hint_ms) {
      job.hinted = true;
      for (const JobRow::Task& task : job.row.tasks) {
        std::string offered;
        bool served = false;
        for (auto& [session, worker] : workers_) {
          served = served || serves_locked(worker, task.target);
          for (const std::string& t : worker.targets)
            offered += str(offered.empty() ? "" : "; ", worker.owner.worker_id, ": ", t);
        }
        if (served || !hint.empty()) continue;
        hint = str("no worker measures \"", task.target, "\" (",
                   offered.empty() ? "none is connected" : "here: " + offered,
                   "). The job waits; start one on such a machine: measure_server --daemon ADDRESS");
      }
    }
  }
  if (!hint.empty()) add_event(job.row.id, JobState::kRunning, hint, nullptr);
}

void Coordinator::end_job(const std::string& job_id, JobState state, const std::string& message) {
  bool out_of_time = false;
  {
    const std::lock_guard lock(mutex_);
    out_of_time = jobs_.at(job_id)->out_of_time;
  }
  if (state != JobState::kFinished || out_of_time)
    if (const Status s = store_.cancel_open_trials(job_id); !s)
      spdlog::error("job {}: {}", job_id, s.message());
  if (const Status s = store_.set_job_state(job_id, state, message); !s)
    spdlog::error("job {}: {}", job_id, s.message());
  add_event(job_id, state, message.empty() ? std::string(job_state_name(state)) : message, nullptr);
  {
    const std::lock_guard lock(mutex_);
    leases_.forget_job(job_id);
    std::erase_if(races_, [&](const auto& race) {
      if (race.second.job_id != job_id) return false;
      specs_.erase(race.first);
      return true;
    });
    const std::shared_ptr<Job> job = jobs_.at(job_id);
    for (auto it = task_of_trial_.begin(); it != task_of_trial_.end();) {
      if (leases_.job_of(it->first).empty()) {
        specs_.erase(it->first);
        it = task_of_trial_.erase(it);
      } else {
        ++it;
      }
    }
    job->runner.reset();
    job->best_ns.clear();
    job->results_came = false;
    job->state = state;
  }
  news_.notify_all();
  work_.notify_all();
  spdlog::info("job {} {}{}{}", job_id, job_state_name(state), message.empty() ? "" : ": ", message);
}

}  // namespace tuner
