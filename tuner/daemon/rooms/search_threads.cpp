#include "tuner/daemon/rooms/search_threads.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/room.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/search/stopwatch.h"

namespace tuner {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr int kMostSearchThreads = 4;
constexpr size_t kDefaultCapacity = 4;  // trials a worker holds, until one has said
constexpr size_t kMostOpen = 4096;      // per job: proposals made long before they are measured are poor ones

// How many trials of the job are to be open before its search proposes no more.
size_t low_water_of(const FarmState& farm, const Job& job, int64_t now_ms) {
  const std::string& tenant = job.row().tenant;
  // Twice what the workers hold: while one batch is measured the search thinks about the next. Tenants share
  // it by their weights, the jobs of a tenant alike.
  const auto held =
      static_cast<double>(std::max(static_cast<size_t>(farm.workers.capacity(now_ms)), kDefaultCapacity));
  std::map<std::string, int> jobs{{tenant, 0}};
  for (const std::shared_ptr<Job>& job : farm.jobs.running()) ++jobs[job->row().tenant];
  double weights = 0;
  for (const auto& [name, count] : jobs) weights += farm.leases.shares().of(name).weight;
  const double part = farm.leases.shares().of(tenant).weight / weights / std::max(jobs[tenant], 1);
  // What nobody here can build waits beside what is measured, not in its place.
  size_t beside = 0;
  for (const LeaseQueue::JobLine& line : unbuildable_of(farm, job.id(), now_ms)) beside += line.count;
  return std::min(kMostOpen,
                  beside + std::max<size_t>(static_cast<size_t>(2 * held * part), 2 * kDefaultCapacity));
}

// Empty when workers that are here measure all of the job's targets, and some of them take work.
std::string nobody_measures(FarmState& farm, const Job& job, int64_t now) {
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

}  // namespace

SearchThreads::SearchThreads(Parts parts, std::function<void()> wake_desk)
    : of_(parts), wake_desk_(std::move(wake_desk)) {}

SearchThreads::~SearchThreads() { stop(); }

void SearchThreads::start() {
  const int64_t now = of_.clock.now_ms();
  Locked(agenda_)->ticked_ms = now;
  of_.metrics.search_turned_ms = now;
  if (of_.options.by_hand) return;
  const int cpus = static_cast<int>(cpus_of_this_thread().size());
  const int threads =
      of_.options.search_threads > 0 ? of_.options.search_threads : std::min(cpus, kMostSearchThreads);
  for (int i = 0; i < std::max(threads, 1); ++i) threads_.emplace_back([this] { loop(); });
}

void SearchThreads::stop() {
  Locked(agenda_)->stopping = true;
  woken_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (!threads_.empty()) interrupt_jobs();
  threads_.clear();
}

void SearchThreads::wake(const std::string& job_id) {
  Locked(agenda_)->turns.wake(job_id);
  woken_.notify_one();
}

void SearchThreads::loop() {
  while (true) {
    {
      Locked agenda(agenda_);
      agenda.wait_for(woken_, kTick, [&] { return agenda->turns.some_wait() || agenda->stopping; });
      if (agenda->stopping) return;
    }
    of_.metrics.search_turned_ms = of_.clock.now_ms();
    tick();
    if (take_turn() && Locked(agenda_)->turns.some_wait()) woken_.notify_one();
  }
}

void SearchThreads::tick() {
  const int64_t now = of_.clock.now_ms();
  {
    const Locked agenda(agenda_);
    if (now - agenda->ticked_ms < kTick.count()) return;
    agenda->ticked_ms = now;
  }
  const Locked farm(of_.farm);
  const Locked agenda(agenda_);
  for (const std::shared_ptr<Job>& job : farm->jobs.running()) agenda->turns.wake(job->id());
}

bool SearchThreads::take_turn() {
  const std::optional<std::string> id = Locked(agenda_)->turns.begin();
  if (!id) return false;
  std::shared_ptr<Job> job;
  {
    const Locked farm(of_.farm);
    job = farm->jobs.find(*id);
    if (job != nullptr && job->ended()) job = nullptr;
  }
  if (job != nullptr) {
    const Stopwatch turn;
    step(job);
    of_.metrics.search_turn_s.observe(turn.elapsed_ms() / 1000);
  }
  Locked(agenda_)->turns.end(*id);
  return true;
}

// Jobs that run when the daemon stops can be continued.
void SearchThreads::interrupt_jobs() {
  std::vector<std::shared_ptr<Job>> running;
  {
    const Locked farm(of_.farm);
    running = farm->jobs.running();
  }
  for (const std::shared_ptr<Job>& job : running) {
    const LogAbout about({.job = job->id()});
    if (const Status s =
            of_.store.set_job_state(job->id(), JobState::kQueued, "interrupted; submit it again to continue");
        !s)
      spdlog::error("job {}: {}", job->id(), s.message());
  }
}

std::shared_ptr<Run> SearchThreads::run_of(const std::string& job_id) const {
  const Locked runs(runs_);
  const auto found = runs->find(job_id);
  return found == runs->end() ? nullptr : found->second;
}

Status SearchThreads::begin_run(const std::shared_ptr<Job>& job) {
  auto runner = std::make_unique<JobRunner>(
      of_.store, job->row(), job->trials(), of_.options.make_space, of_.options.make_search,
      [this](const JobRow::Task& task) { return of_.answers.known_config(task); });
  RETURN_IF_ERROR(of_.store.set_job_state(job->id(), JobState::kRunning, ""));
  RETURN_IF_ERROR(runner->start());
  {
    const Locked farm(of_.farm);
    job->set_state(JobState::kRunning);
  }
  const auto run = std::make_shared<Run>();
  *run = {
      .job = job,
      .runner = std::move(runner),
      .time_limit = TimeLimit(job->row().stop.time_limit_s, of_.clock.now_ms(), job->row().stop.time_used_s),
      .race = of_.options.race};
  {
    const Locked runs(runs_);
    (*runs)[job->id()] = run;
  }
  queue_trials(*job, run->runner->open_trials());
  RETURN_IF_ERROR(of_.races.resume_races(job->id()));
  const JobProgress begun = run->runner->progress();
  of_.news.tell(*job, begun.trials_done > 0
                          ? str("continues after ", begun.trials_done, " of ", begun.trials_total, " trials")
                          : str("searches with ", job->row().search, ", seed ", job->row().seed));
  return Status::ok();
}

// One turn of one job.
void SearchThreads::step(const std::shared_ptr<Job>& job) {
  const LogAbout about({.job = job->id()});
  size_t low_water = 0;
  bool cancel = false, results_came = false;
  {
    const Locked farm(of_.farm);
    results_came = job->take_results();
    low_water = low_water_of(*farm, *job, of_.clock.now_ms());
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
  of_.races.store_time_used(run);
  of_.races.watch_time_limit(run);
  const Result<std::vector<TrialRow>> proposed = run.runner->propose(low_water);
  if (!proposed) return end_job(*job, JobState::kFailed, proposed.message());
  if (const Status* const trouble = run.runner->store_trouble())
    of_.news.note_commit(*trouble);
  else if (!proposed->empty())
    of_.news.note_commit(Status::ok());
  queue_trials(*job, *proposed);
  for (const std::string& note : run.runner->take_notes()) of_.news.tell(*job, note);
  report(run, new_results);
  look_at_releases(run);

  for (const int index : run.runner->take_finished_tasks()) {
    if (!run.time_limit.exists())
      of_.races.end_task(run, index);
    else if (run.runner->trials_done(index) > 0)
      run.to_race.push_back(index);
  }
  of_.races.step_races(run);
  if (!of_.races.begin_races(run) && run.to_race.empty() && run.runner->finished()) conclude(run);
}

// What the job is told of workers of other releases, and what becomes of trials that nobody can build.
void SearchThreads::look_at_releases(Run& run) {
  std::vector<std::string> lines;
  std::vector<LeaseTable::Loss> lost;
  {
    const Locked farm(of_.farm);
    const int64_t now = of_.clock.now_ms();
    lines = lacks_to_tell(*farm, run.runner->needs(), of_.options.templates, now, run.releases_told);
    for (std::string& line :
         unbuildable_to_tell(*farm, run.job->id(), of_.options, now, run.releases_told, lost))
      lines.push_back(std::move(line));
    if (std::string line = of_.builds.builder_to_tell(*farm, run.job->id(), run.builder_told); !line.empty())
      lines.push_back(std::move(line));
  }
  for (const LeaseTable::Loss& loss : lost)
    (void)of_.losses.give_up(loss);  // what the disk refuses comes again
  for (const std::string& line : lines) {
    spdlog::warn("{}", line);
    of_.news.tell(*run.job, line);
  }
}

// Trials and races are over: says what came of the job.
void SearchThreads::conclude(const Run& run) {
  const JobRow& row = run.job->row();
  size_t untuned = 0, unreached = 0;
  if (!of_.options.by_hand) of_.learner.learn_from(row.tasks);
  for (size_t i = 0; i < row.tasks.size(); ++i) {
    if (run.out_of_time && run.runner->trials_done(static_cast<int>(i)) == 0)
      ++unreached;
    else if (!of_.answers.best_of(row.tasks[i]))
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

// Page by page: a job may have had a million trials, and few of them are open.
Status SearchThreads::queue_open_trials(Job& job) {
  constexpr int64_t kPage = 1024;
  TrialQuery query{.job = job.id(), .limit = kPage, .open = true};
  size_t open = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> page, of_.store.trials(query));
    std::vector<TrialRow> rows;
    for (const TrialWithRecord& t : page) rows.push_back(t.trial);
    queue_trials(job, rows);
    open += rows.size();
    if (std::ssize(page) < kPage) break;
    query.after = page.back().trial.seq;
  }
  const LogAbout about({.job = job.id(), .request = job.row().request_id});
  spdlog::info("job {} goes on: {} open trials", job.id(), open);
  return Status::ok();
}

// Makes stored trials leasable. Those whose result came while they were being loaded are observed instead.
void SearchThreads::queue_trials(Job& job, const std::vector<TrialRow>& rows) {
  if (rows.empty()) return;
  const LogAbout about({.job = job.id()});
  // Leases of an earlier life that no worker can have survived go back to the queue at once.
  if (of_.options.leases.restart_grace_ms == 0)
    for (const TrialRow& row : rows)
      if (row.state == TrialState::kLeased)
        if (const Status s = of_.store.requeue_trial(row.id, row.attempt); !s)
          spdlog::warn("trial {}: {}", row.id, s.message());
  std::vector<LeaseTable::Loss> poisoned;
  {
    const Locked farm(of_.farm);
    poisoned = LossOffice::poisoned_among(*farm, rows, job);
    for (const TrialRow& row : rows) {
      if (std::ranges::find(poisoned, row.id, &LeaseTable::Loss::trial_id) != poisoned.end()) continue;
      Work work{.kind = WorkKind::kTrial,
                .task = job.row().tasks[static_cast<size_t>(row.task_index)],
                .compiler = compiler_of(*farm, job.row().tasks[static_cast<size_t>(row.task_index)]),
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
      const bool may_live = row.state == TrialState::kLeased && of_.options.leases.restart_grace_ms > 0;
      const LeaseTable::Added added =
          may_live ? farm->leases.restore_leased(trial, row.worker_id, of_.clock.now_ms())
                   : farm->leases.enqueue(trial);
      if (added != LeaseTable::Added::kResultCame) continue;
      job.results_came();
      wake(job.id());
    }
  }
  for (const LeaseTable::Loss& loss : poisoned)
    if (of_.losses.give_up(loss)) {
      const Locked farm(of_.farm);
      job.results_came();
      wake(job.id());
    }
  wake_desk_();
}

// Tells how far the job is, and, once, that nobody here can measure it: it would wait in silence.
void SearchThreads::report(Run& run, size_t new_results) {
  Job& job = *run.job;
  std::vector<double> best_ns;
  for (size_t i = 0; i < job.row().tasks.size(); ++i)
    best_ns.push_back(run.runner->best_ns(static_cast<int>(i)));
  const JobProgress progress = run.runner->progress();
  const SearchCost cost = run.runner->take_spent();
  std::string hint;
  {
    const Locked farm(of_.farm);
    const int64_t now = of_.clock.now_ms();
    if (job.take_progress(progress, cost, best_ns, new_results, now)) of_.news.notify();
    const size_t open = run.runner->open_count() + farm->races.of_job(job.id()).size();
    // Watchers are told of the store (send_store_trouble).
    if (farm->store_trouble.now(now).empty() &&
        job.may_wait_in_vain(open, of_.options.no_worker_hint_ms, now))
      hint = nobody_measures(*farm, job, now);
    if (!hint.empty()) job.told_that_it_waits();
  }
  if (!hint.empty()) of_.news.tell(job, hint);
}

void SearchThreads::end_job(Job& job, JobState state, const std::string& message) {
  const LogAbout about({.job = job.id(), .request = job.row().request_id});
  const std::shared_ptr<Run> run = run_of(job.id());
  const bool out_of_time = run != nullptr && run->out_of_time;
  if (state != JobState::kFinished || out_of_time) {
    if (const Status s = of_.store.cancel_open_trials(job.id()); !s)
      spdlog::error("job {}: {}", job.id(), s.message());
    of_.races.end_open_races(job.id());
  }
  if (const Status s = of_.store.set_job_state(job.id(), state, message); !s)
    spdlog::error("job {}: {}", job.id(), s.message());
  of_.news.tell(job, message.empty() ? std::string(job_state_name(state)) : message, nullptr, state);
  spdlog::info("job {} {}{}{}", job.id(), job_state_name(state), message.empty() ? "" : ": ", message);
  {
    const Locked farm(of_.farm);
    farm->leases.forget_job(job.id());
    farm->races.forget_job(job.id());
    job.set_state(state);  // from here on it may be submitted again
  }
  of_.news.notify();
  wake_desk_();
  const Locked runs(runs_);
  runs->erase(job.id());
}

}  // namespace tuner
