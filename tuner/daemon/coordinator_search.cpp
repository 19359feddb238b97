// The search threads: results in, proposals out, jobs that end.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler_core/base/clock.h"
#include "compiler_core/base/room.h"
#include "tuner/daemon/coordinator.h"

namespace tuner {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr size_t kDefaultCapacity = 4;  // trials a worker holds, until one has said
constexpr size_t kMostOpen = 4096;      // per job: proposals made long before they are measured are poor ones

}  // namespace

void Coordinator::search_loop() {
  while (true) {
    {
      Locked farm(farm_);
      farm.wait_for(search_, kTick, [&] { return farm->turns.some_wait() || farm->stopping; });
      if (farm->stopping) return;
      metrics_.search_turned_ms = clock_.now_ms();
      tick(*farm);
    }
    if (!take_turn()) continue;
    const Locked farm(farm_);
    if (farm->turns.some_wait()) search_.notify_one();
  }
}

// A few times a second every job has a turn: time passes for races and limits.
void Coordinator::tick(FarmState& farm) {
  const int64_t now = clock_.now_ms();
  if (now - farm.ticked_ms < kTick.count()) return;
  farm.ticked_ms = now;
  for (const std::shared_ptr<Job>& job : farm.jobs.running()) farm.turns.wake(job->id());
}

// False: no job waits for one.
bool Coordinator::take_turn() {
  std::optional<std::string> id;
  std::shared_ptr<Job> job;
  {
    const Locked farm(farm_);
    id = farm->turns.begin();
    if (!id) return false;
    job = farm->jobs.find(*id);
    if (job != nullptr && job->ended()) job = nullptr;
  }
  if (job != nullptr) {
    const Stopwatch turn;
    step(job);
    metrics_.search_turn_s.observe(turn.elapsed_ms() / 1000);
  }
  const Locked farm(farm_);
  farm->turns.end(*id);
  return true;
}

// Jobs that run when the daemon stops can be continued.
void Coordinator::interrupt_jobs() {
  std::vector<std::shared_ptr<Job>> running;
  {
    const Locked farm(farm_);
    running = farm->jobs.running();
  }
  for (const std::shared_ptr<Job>& job : running) {
    const LogAbout about({.job = job->id()});
    if (const Status s =
            store_.set_job_state(job->id(), JobState::kQueued, "interrupted; submit it again to continue");
        !s)
      spdlog::error("job {}: {}", job->id(), s.message());
  }
}

std::shared_ptr<Coordinator::Run> Coordinator::run_of(const std::string& job_id) const {
  const Locked runs(runs_);
  const auto found = runs->find(job_id);
  return found == runs->end() ? nullptr : found->second;
}

size_t Coordinator::low_water_of(const FarmState& farm, const Job& job) const {
  const std::string& tenant = job.row().tenant;
  // Twice what the workers hold: while one batch is measured the search thinks about the next. Tenants share it by
  // their weights, the jobs of a tenant alike.
  const auto held = static_cast<double>(
      std::max(static_cast<size_t>(farm.workers.capacity(clock_.now_ms())), kDefaultCapacity));
  std::map<std::string, int> jobs{{tenant, 0}};
  for (const std::shared_ptr<Job>& job : farm.jobs.running()) ++jobs[job->row().tenant];
  double weights = 0;
  for (const auto& [name, count] : jobs) weights += farm.leases.shares().of(name).weight;
  const double part = farm.leases.shares().of(tenant).weight / weights / std::max(jobs[tenant], 1);
  // What nobody here can build waits beside what is measured, not in its place.
  size_t beside = 0;
  for (const LeaseQueue::JobLine& line : unbuildable_of(farm, job.id(), clock_.now_ms()))
    beside += line.count;
  return std::min(kMostOpen,
                  beside + std::max<size_t>(static_cast<size_t>(2 * held * part), 2 * kDefaultCapacity));
}

Status Coordinator::begin_run(const std::shared_ptr<Job>& job) {
  auto runner = std::make_unique<JobRunner>(
      store_, job->row(), job->trials(), options_.make_space, options_.make_search,
      [this](const JobRow::Task& task) { return answers_.known_config(task); });
  RETURN_IF_ERROR(store_.set_job_state(job->id(), JobState::kRunning, ""));
  RETURN_IF_ERROR(runner->start());
  {
    const Locked farm(farm_);
    job->set_state(JobState::kRunning);
  }
  const auto run = std::make_shared<Run>();
  *run = {.job = job,
          .runner = std::move(runner),
          .time_limit = TimeLimit(job->row().stop.time_limit_s, clock_.now_ms(), job->row().stop.time_used_s),
          .race = options_.race};
  {
    const Locked runs(runs_);
    (*runs)[job->id()] = run;
  }
  queue_trials(*job, run->runner->open_trials());
  RETURN_IF_ERROR(resume_races(job->id()));
  const JobProgress begun = run->runner->progress();
  news_.tell(*job, begun.trials_done > 0
                       ? str("continues after ", begun.trials_done, " of ", begun.trials_total, " trials")
                       : str("searches with ", job->row().search, ", seed ", job->row().seed));
  return Status::ok();
}

// One turn of one job.
void Coordinator::step(const std::shared_ptr<Job>& job) {
  const LogAbout about({.job = job->id()});
  size_t low_water = 0;
  bool cancel = false, results_came = false;
  {
    const Locked farm(farm_);
    results_came = job->take_results();
    low_water = low_water_of(*farm, *job);
    cancel = job->cancel_asked();
  }
  if (cancel) return end_job(*job, JobState::kCancelled, "cancelled");
  if (run_of(job->id()) == nullptr)
    if (const Status begun = begin_run(job); !begun) return end_job(*job, JobState::kFailed, begun.message());
  const std::shared_ptr<Run> kept = run_of(job->id());
  Run& run = *kept;
  size_t new_results = 0;
  if (results_came) {
    const Result<size_t> observed = run.runner->observe();
    if (!observed) return end_job(*job, JobState::kFailed, observed.message());
    new_results = *observed;
  }
  store_time_used(run);
  watch_time_limit(run);
  const Result<std::vector<TrialRow>> proposed = run.runner->propose(low_water);
  if (!proposed) return end_job(*job, JobState::kFailed, proposed.message());
  if (const Status* const trouble = run.runner->store_trouble())
    news_.note_commit(*trouble);
  else if (!proposed->empty())
    news_.note_commit(Status::ok());
  queue_trials(*job, *proposed);
  for (const std::string& note : run.runner->take_notes()) news_.tell(*job, note);
  report(run, new_results);
  look_at_releases(run);

  for (const int index : run.runner->take_finished_tasks()) {
    if (!run.time_limit.exists())
      end_task(run, index);
    else if (run.runner->trials_done(index) > 0)
      run.to_race.push_back(index);
  }
  step_races(run);
  if (!begin_races(run) && run.to_race.empty() && run.runner->finished()) conclude(run);
}

// What the job is told of workers of other releases, and what becomes of trials that nobody can build.
void Coordinator::look_at_releases(Run& run) {
  std::vector<std::string> lines;
  std::vector<LeaseTable::Loss> lost;
  {
    const Locked farm(farm_);
    const int64_t now = clock_.now_ms();
    lines = lacks_to_tell(*farm, run.runner->needs(), options_.templates, now, run.releases_told);
    for (std::string& line :
         unbuildable_to_tell(*farm, run.job->id(), options_, now, run.releases_told, lost))
      lines.push_back(std::move(line));
    if (std::string line = build_office_.builder_to_tell(*farm, run.job->id(), run.builder_told);
        !line.empty())
      lines.push_back(std::move(line));
  }
  for (const LeaseTable::Loss& loss : lost)
    (void)loss_office_.give_up(loss);  // what the disk refuses comes again
  for (const std::string& line : lines) {
    spdlog::warn("{}", line);
    news_.tell(*run.job, line);
  }
}

// Trials and races are over: says what came of the job.
void Coordinator::conclude(const Run& run) {
  const JobRow& row = run.job->row();
  size_t untuned = 0, unreached = 0;
  if (!options_.by_hand) learner_.learn_from(row.tasks);
  for (size_t i = 0; i < row.tasks.size(); ++i) {
    if (run.out_of_time && run.runner->trials_done(static_cast<int>(i)) == 0)
      ++unreached;
    else if (!answers_.best_of(row.tasks[i]))
      ++untuned;
  }
  std::string message;
  if (untuned > 0) {
    std::string counts;
    for (const auto& [outcome, n] : run.runner->progress().outcomes)
      counts += str(counts.empty() ? "" : ", ", n, " ", outcome_name(outcome));
    message = str(untuned, " of ", row.tasks.size(), " tasks have no right answer that was timed in full (",
                  counts, "). What went wrong: tuner records export --job ", row.id);
    if (run.runner->progress().outcomes.contains(Outcome::kOutOfMemory))
      message += str(". Candidates may take ", bytes_text(row.options.memory_limit_bytes),
                     R"(: raise "memory_limit_gib" in "measure", or take a smaller shape)");
  }
  if (unreached > 0)
    message += str(message.empty() ? "" : ". ", unreached, " of ", row.tasks.size(),
                   " tasks were not reached within the time limit of ", row.stop.time_limit_s,
                   " s; submit again to continue");
  end_job(*run.job, untuned > 0 ? JobState::kFailed : JobState::kFinished, message);
}

// Makes stored trials leasable. Those whose result came while they were being loaded are observed instead.
void Coordinator::queue_trials(Job& job, const std::vector<TrialRow>& rows) {
  if (rows.empty()) return;
  const LogAbout about({.job = job.id()});
  // Leases of an earlier life that no worker can have survived go back to the queue at once.
  if (options_.leases.restart_grace_ms == 0)
    for (const TrialRow& row : rows)
      if (row.state == TrialState::kLeased)
        if (const Status s = store_.requeue_trial(row.id, row.attempt); !s)
          spdlog::warn("trial {}: {}", row.id, s.message());
  std::vector<LeaseTable::Loss> poisoned;
  {
    const Locked farm(farm_);
    poisoned = LossOffice::poisoned_among(*farm, rows, job);
    for (const TrialRow& row : rows) {
      if (std::ranges::find(poisoned, row.id, &LeaseTable::Loss::trial_id) != poisoned.end()) continue;
      Work work{.kind = WorkKind::kTrial,
                .task = job.row().tasks[static_cast<size_t>(row.task_index)],
                .options = job.row().options,
                .task_index = row.task_index,
                .template_name = row.template_name,
                .config = row.config,
                .template_version = row.template_version};
      work.options.constants = work.task.constants;
      const bool suspect = farm->ledger.suspects(work);
      const LeaseTable::Trial trial{.id = row.id,
                                    .job_id = job.id(),
                                    .tenant = job.row().tenant,
                                    .priority = job.row().priority,
                                    .work = std::move(work),
                                    .attempt = row.attempt,
                                    .fencing = row.fencing,
                                    .grants = row.grants,
                                    .suspect = suspect};
      const bool may_live = row.state == TrialState::kLeased && options_.leases.restart_grace_ms > 0;
      const LeaseTable::Added added = may_live
                                          ? farm->leases.restore_leased(trial, row.worker_id, clock_.now_ms())
                                          : farm->leases.enqueue(trial);
      if (added != LeaseTable::Added::kResultCame) continue;
      job.results_came();
      wake_search(*farm, job.id());
    }
  }
  for (const LeaseTable::Loss& loss : poisoned)
    if (loss_office_.give_up(loss)) {
      const Locked farm(farm_);
      job.results_came();
      wake_search(*farm, job.id());
    }
  wake_desk();
}

// Tells how far the job is, and, once, that nobody here can measure it: it would wait in silence.
void Coordinator::report(Run& run, size_t new_results) {
  Job& job = *run.job;
  std::vector<double> best_ns;
  for (size_t i = 0; i < job.row().tasks.size(); ++i)
    best_ns.push_back(run.runner->best_ns(static_cast<int>(i)));
  const JobProgress progress = run.runner->progress();
  const SearchCost cost = run.runner->take_spent();
  std::string hint;
  {
    const Locked farm(farm_);
    const int64_t now = clock_.now_ms();
    if (job.take_progress(progress, cost, best_ns, new_results, now)) news_.notify();
    const size_t open = run.runner->open_count() + farm->races.of_job(job.id()).size();
    // Watchers are told of the store (send_store_trouble).
    if (farm->store_trouble.now(now).empty() && job.may_wait_in_vain(open, options_.no_worker_hint_ms, now))
      hint = nobody_measures(*farm, job);
    if (!hint.empty()) job.told_that_it_waits();
  }
  if (!hint.empty()) news_.tell(job, hint);
}

// Empty when workers that are here measure all of the job's targets, and some of them take work.
std::string Coordinator::nobody_measures(FarmState& farm, const Job& job) {
  const int64_t now = clock_.now_ms();
  for (const JobRow::Task& task : job.row().tasks) {
    if (farm.workers.some_serve({.target = task.target}, now)) {
      const std::string unfit = farm.workers.all_unfit({.target = task.target}, now);
      if (unfit.empty()) continue;
      return str("no worker takes work of \"", task.target, "\" now (", unfit,
                 "). The job goes on when one does");
    }
    std::string offered, away;
    for (const Workers::Entry& worker : farm.workers.list(now))
      for (const std::string& target : worker.offer.targets) {
        if (worker.here)
          offered += str(offered.empty() ? "" : "; ", worker.offer.life.worker_id, ": ", target);
        else if (target == task.target)
          away = str("; ", worker.offer.life.worker_id, " was last heard of ", worker.silent_ms / 1000,
                     " s ago");
      }
    return str("no worker measures \"", task.target, "\" (",
               offered.empty() ? "none is connected" : "here: " + offered, away,
               "). The job waits; start one on such a machine: measure_server (or, where nothing is "
               "compiled, measure_runner) "
               "--daemon ADDRESS");
  }
  return "";
}

void Coordinator::end_job(Job& job, JobState state, const std::string& message) {
  const LogAbout about({.job = job.id(), .request = job.row().request_id});
  const std::shared_ptr<Run> run = run_of(job.id());
  const bool out_of_time = run != nullptr && run->out_of_time;
  if (state != JobState::kFinished || out_of_time) {
    if (const Status s = store_.cancel_open_trials(job.id()); !s)
      spdlog::error("job {}: {}", job.id(), s.message());
    end_open_races(job.id());
  }
  if (const Status s = store_.set_job_state(job.id(), state, message); !s)
    spdlog::error("job {}: {}", job.id(), s.message());
  news_.tell(job, message.empty() ? std::string(job_state_name(state)) : message, nullptr, state);
  spdlog::info("job {} {}{}{}", job.id(), job_state_name(state), message.empty() ? "" : ": ", message);
  {
    const Locked farm(farm_);
    farm->leases.forget_job(job.id());
    farm->races.forget_job(job.id());
    job.set_state(state);  // from here on it may be submitted again
  }
  news_.notify();
  wake_desk();
  const Locked runs(runs_);
  runs->erase(job.id());
}

}  // namespace tuner
