#include "tuner/daemon/rooms/race_office.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler_core/base/clock.h"
#include "db/open_race.h"
#include "db/resolve/default_time.h"
#include "proto/convert.h"
#include "templates/workload/workload.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/rooms/farm_releases.h"
#include "tuner/daemon/tables/finalists.h"
#include "tuner/search/known_best.h"

namespace tuner {

RaceOffice::RaceOffice(Parts parts, Wake wake)
    : store_(parts.store),
      farm_(parts.farm),
      clock_(parts.clock),
      options_(parts.options),
      news_(parts.news),
      answers_(parts.answers),
      wake_(std::move(wake)) {}

Result<Finalists> RaceOffice::finalists_of(const Run& run, int task_index, const TunedConfig& best) const {
  ASSIGN_OR_RETURN(std::vector<TrialWithRecord> trials, store_.trials(run.job->id()));
  ASSIGN_OR_RETURN(const TrialWithRecord known, store_.trial(best.trial_id));
  ASSIGN_OR_RETURN(const std::vector<ProposalRow> proposals, store_.proposals(run.job->id()));
  const JobRow::Task& task = run.job->row().tasks[static_cast<size_t>(task_index)];
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const Result<Target> target = parse_target(task.target);
  std::optional<DefaultConfig> plain;
  if (workload && target) plain = default_config(*workload, *target, task.algorithms);
  const std::set<std::string> answers = answers_tried(trials, proposals, task_index);
  const std::optional<TrialRow> stored = stored_answer(trials, task_index, known, best, answers);
  return choose_finalists(std::move(trials), task_index, known, plain, answers, stored);
}

// What is measured again in order to be believed again races again.
Result<bool> RaceOffice::nothing_to_race(const Run& run, int task_index, const TunedConfig& best) const {
  if (!best.certified || run.job->row().search == kKnownBestStrategy) return false;
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store_.trials(run.job->id()));
  return is_settled(trials, task_index, best);
}

void RaceOffice::announce(const Run& run, int task_index, const std::string& note) {
  Job& job = *run.job;
  const Result<v1::TunedConfig> tuned =
      answers_.tuned(job.row().tasks[static_cast<size_t>(task_index)], job.flops(task_index));
  if (!tuned) return news_.tell(job, str("task ", task_index + 1, ": ", tuned.message()));
  news_.tell(job,
             str("task ", task_index + 1, " of ", job.row().tasks.size(), " is tuned",
                 note.empty() ? "" : "; ", note),
             &*tuned);
}

void RaceOffice::end_task(Run& run, int task_index) {
  if (races_already(run, task_index)) return;  // since before a restart
  const JobRow::Task& task = run.job->row().tasks[static_cast<size_t>(task_index)];
  const Result<TunedConfig> best = answers_.best_of(task);
  const Result<bool> nothing_new = best ? nothing_to_race(run, task_index, *best) : Result<bool>(true);
  if (!best || !nothing_new || *nothing_new || !is_raced(task.target)) return announce(run, task_index, "");
  if (run.race.limit_s <= 0)
    return announce(run, task_index, "not raced: the time limit; its time is that of one trial");
  Result<Finalists> finalists = finalists_of(run, task_index, *best);
  if (!finalists) return announce(run, task_index, finalists.message());
  const Status started = start_race(run, task_index, *finalists);
  if (!started) return announce(run, task_index, started.message());
  wake_.desk();
  news_.tell(*run.job, str("task ", task_index + 1, ": ", finalists->trials.size(), " finalists race"));
}

bool RaceOffice::races_already(const Run& run, int task_index) const {
  const Locked farm(farm_);
  return std::ranges::any_of(farm->races.of_job(run.job->id()),
                             [&](const Races::Race* race) { return race->task_index == task_index; });
}

// Whether a worker here can race them. What was tuned with a template of an earlier release, which nobody has
// any more, does not race.
Status RaceOffice::check_racers(const FarmState& farm, const JobRow::Task& task, Finalists& finalists) const {
  const int64_t now = clock_.now_ms();
  const Needs any{.kind = WorkKind::kRace, .target = task.target};
  // Right after a start workers are still on their way back.
  const bool all_away = !farm.workers.others_serve({.target = task.target}, {}, now) &&
                        now - farm.started_ms <= options_.race_wait_ms;
  if (farm.workers.serving(any, now) == 0)
    return all_away ? Status::ok()
                    : unavailable("not raced: no worker here can; its time is that of one trial");
  std::erase_if(finalists.trials, [&](const TrialRow& t) {
    const TemplateVersion its{t.template_name, t.template_version};
    return !has_template(options_.templates, its) &&
           nobody_builds(farm, {.kind = WorkKind::kRace, .target = task.target, .templates = {its}}, now);
  });
  for (std::string* role : {&finalists.default_trial_id, &finalists.stored_trial_id})
    if (std::ranges::find(finalists.trials, *role, &TrialRow::id) == finalists.trials.end()) role->clear();
  const Needs needs = needs_of({.kind = WorkKind::kRace, .task = task, .finalists = finalists.trials});
  // A builder that is away is waited for, as any worker is.
  const bool builder_away = !farm.workers.waiting_for_builder(needs, now).empty();
  if (finalists.trials.empty() || (farm.workers.serving(needs, now) == 0 && !builder_away))
    return unavailable(
        "not raced: no worker here has the templates of all finalists; its time is that of one trial");
  return Status::ok();
}

// An error says why the task is not raced, for people.
Status RaceOffice::start_race(const Run& run, int task_index, Finalists& finalists) {
  const Job& job = *run.job;
  {
    const Locked farm(farm_);
    RETURN_IF_ERROR(check_racers(*farm, job.row().tasks[static_cast<size_t>(task_index)], finalists));
  }
  OpenRaceRow row{.id = Races::id_of(str("race ", job.id(), "/", task_index + 1), options_.wall_us()),
                  .job_id = job.id(),
                  .task_index = task_index,
                  .default_trial_id = finalists.default_trial_id,
                  .stored_trial_id = finalists.stored_trial_id,
                  .options = run.race};
  for (const TrialRow& finalist : finalists.trials) row.finalists.push_back(finalist.id);
  if (const Status stored = store_.open_race(row); !stored)
    return failed("not raced (", stored.message(), "); its time is that of one trial");
  queue_race(*run.job, row, finalists.trials);
  return Status::ok();
}

// Makes a stored race leasable.
void RaceOffice::queue_race(Job& job, const OpenRaceRow& row, const std::vector<TrialRow>& finalists) {
  const JobRow::Task& task = job.row().tasks[static_cast<size_t>(row.task_index)];
  Work work{.kind = WorkKind::kRace,
            .task = task,
            .compiler = compiler_of(*Locked(farm_), task),
            .options = job.row().options,
            .race = row.options,
            .finalists = finalists,
            .default_trial_id = row.default_trial_id,
            .stored_trial_id = row.stored_trial_id};
  work.options.constants = task.constants;
  const Needs needs = needs_of(work);
  const LeaseTable::Trial race{.id = row.id,
                               .job_id = job.id(),
                               .tenant = job.row().tenant,
                               .priority = job.row().priority,
                               .work = std::move(work),
                               .attempt = row.attempt,
                               .fencing = row.fencing,
                               .grants = row.grants};
  const Locked farm(farm_);
  const int64_t now = clock_.now_ms();
  const LeaseTable::Added added = row.state == TrialState::kLeased
                                      ? farm->leases.restore_leased(race, row.worker_id, now)
                                      : farm->leases.enqueue_again(race);
  if (added != LeaseTable::Added::kNew) return;
  farm->races.begin(row.id,
                    {.job_id = job.id(),
                     .task_index = row.task_index,
                     .needs = needs,
                     .limit_s = row.options.limit_s,
                     .course = {.finalists = static_cast<int>(finalists.size())}},
                    now);
  job.note_race();
}

Status RaceOffice::resume_races(const std::string& job_id) {
  std::shared_ptr<Job> job;
  {
    const Locked farm(farm_);
    job = farm->jobs.find(job_id);
  }
  ASSIGN_OR_RETURN(std::vector<OpenRaceRow> races, store_.open_races(job_id));
  for (OpenRaceRow& race : races) {
    if (race.task_index < 0 || race.task_index >= std::ssize(job->row().tasks))
      return failed(race.id, " is of task ", race.task_index, ", but job ", job_id, " has ",
                    job->row().tasks.size(), " tasks");
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> found,
                     store_.trials(TrialQuery{.ids = race.finalists}));
    std::vector<TrialRow> finalists;
    for (const TrialWithRecord& t : found) finalists.push_back(t.trial);
    if (race.state == TrialState::kLeased && options_.leases.restart_grace_ms == 0) {
      RETURN_IF_ERROR(store_.requeue_race(race.id, race.attempt));  // no worker can have survived
      race.state = TrialState::kQueued;
    }
    queue_race(*job, race, finalists);
  }
  wake_.desk();
  return Status::ok();
}

void RaceOffice::end_open_races(const std::string& job_id) {
  const Result<std::vector<OpenRaceRow>> races = store_.open_races(job_id);
  const LogAbout about({.job = job_id});
  if (!races) return spdlog::error("job {}: {}", job_id, races.message());
  for (const OpenRaceRow& race : *races)
    if (const Status ended = store_.end_race(race.id, nullptr, "its job has ended"); !ended)
      spdlog::error("{}: {}", race.id, ended.message());
}

void RaceOffice::step_races(Run& run) {
  std::vector<Races::Race> ended;
  std::vector<std::string> given_up;
  int64_t now = 0;
  {
    const Locked farm(farm_);
    now = clock_.now_ms();
    const auto served = [&](const Needs& needs) { return farm->workers.serving(needs, now) > 0; };
    given_up = farm->races.give_up_unserved(run.job->id(), served, now);
    for (const std::string& id : given_up) farm->leases.close(id);
    // Those that a worker has are finished. Others would wait for as long as no worker takes anything.
    if (run.time_limit.is_over(now))
      for (const std::string& id : farm->leases.withdraw(run.job->id(), WorkKind::kRace)) {
        farm->leases.close(id);  // should its result come all the same
        farm->races.failed(id, "no worker took it within the time limit");
        given_up.push_back(id);
      }
    ended = farm->races.take_ended(run.job->id());
    if (!ended.empty()) run.job->note_race();
  }
  for (const std::string& id : given_up)
    if (const Status stored = store_.end_race(id, nullptr, "no worker could run it"); !stored)
      spdlog::error("{}: {}", id, stored.message());
  for (const Races::Race& race : ended)
    if (race.begun_ms && race.error.empty())
      run.time_limit.count_race(static_cast<double>(now - *race.begun_ms), race.limit_s);
  for (const Races::Race& race : ended)
    announce(run, race.task_index,
             !race.error.empty()
                 ? str("its race has no result (", race.error, "), its time is that of one trial")
             : !race.uncertified_why.empty() ? str("not certified: ", race.uncertified_why)
                                             : "");
}

// Tasks whose race is worth time to wait for: they have more than their default to race.
int64_t RaceOffice::races_to_come(const Run& run) {
  const std::vector<JobRow::Task>& tasks = run.job->row().tasks;
  const int64_t now = clock_.now_ms();
  const Locked farm(farm_);
  int64_t races = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int index = static_cast<int>(i);
    if (run.runner->trials_done(index) < 2 || run.done_racing.contains(index)) continue;
    const Needs needs{.kind = WorkKind::kRace, .target = tasks[i].target};
    races += is_raced(tasks[i].target) && farm->workers.serving(needs, now) > 0 ? 1 : 0;
  }
  return races;
}

void RaceOffice::store_time_used(Run& run) {
  const int64_t now = clock_.now_ms();
  if (!run.time_limit.is_to_be_stored(now)) return;
  run.time_limit.stored(now);
  StopOptions stop = run.job->row().stop;
  stop.time_used_s = run.time_limit.used_s(now);
  const Status kept = store_.update_job(run.job->id(), {.state = JobState::kRunning, .stop = stop});
  if (!kept)
    if (const auto more = disk_log_.say())
      spdlog::error("job {}: its time is not stored: {}{}", run.job->id(), kept.message(), *more);
}

void RaceOffice::watch_time_limit(Run& run) {
  if (!run.time_limit.exists() || run.runner->finished()) return;
  if (!run.out_of_time) {
    const bool untried = run.runner->some_task_is_untried();
    if (!run.time_limit.ends_search(untried ? 0 : races_to_come(run), untried, clock_.now_ms())) return;
    run.out_of_time = true;
    run.runner->end_proposals();
    news_.tell(*run.job, str("the search ends for the time limit of ", run.time_limit.limit_s(),
                             " s: trials that have begun are finished, then the best race"));
  }
  std::vector<std::string> withdrawn;
  {
    const Locked farm(farm_);
    withdrawn = farm->leases.withdraw(run.job->id());
  }
  run.runner->withdraw(withdrawn);
}

bool RaceOffice::begin_races(Run& run) {
  const JobRunner& runner = *run.runner;
  const std::vector<JobRow::Task>& tasks = run.job->row().tasks;
  const auto under_way = [&](const FarmState& farm) { return std::ssize(farm.races.of_job(run.job->id())); };
  while (!run.to_race.empty()) {
    // What a race of this task may save; one that has only its default has nothing to choose from.
    const auto rank = [&](int index) {
      return std::tuple(runner.trials_done(index) > 1,
                        static_cast<double>(tasks[static_cast<size_t>(index)].uses) * runner.best_ns(index),
                        -index);
    };
    const auto next = std::ranges::max_element(run.to_race, {}, rank);
    const int index = *next;
    const bool worth = runner.trials_done(index) > 1;
    // When the search has ended no race is to wait for a worker's last trials.
    if (!runner.finished() && (!worth || run.out_of_time)) break;
    int racers = 0;
    {
      const Locked farm(farm_);
      const Needs needs{.kind = WorkKind::kRace, .target = tasks[static_cast<size_t>(index)].target};
      racers = std::max(farm->workers.serving(needs, clock_.now_ms()), 1);
      if (under_way(*farm) >= racers) break;
    }
    run.race.limit_s =
        run.time_limit.race_limit_s(worth ? races_to_come(run) : std::ssize(run.to_race), racers,
                                    /*searching=*/!runner.finished(), options_.race.limit_s, clock_.now_ms());
    run.to_race.erase(next);
    run.done_racing.insert(index);
    end_task(run, index);
  }
  const Locked farm(farm_);
  return under_way(*farm) > 0;
}

}  // namespace tuner
