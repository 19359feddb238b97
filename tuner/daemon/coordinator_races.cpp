// Races: after a task's last trial its best candidates are leased together to one worker, which measures them
// against each other. The result decides what Store::best answers.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "compiler_core/base/clock.h"
#include "compiler_core/base/statistics.h"
#include "db/resolve/default_time.h"
#include "proto/convert.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/search/known_best.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
constexpr size_t kLeastFinalists = 3, kMostFinalists = 16;
constexpr milliseconds kLook{250};
// Races begin apart from each other's fencing tokens: these are no rows of the store.
constexpr int64_t kFirstFencing = 0;

// No two races have the same: the result of an earlier one, sent again, must not pass for this one's.
std::string lease_id(const std::string& what) { return str(what, " @", wall_time_us()); }

void add_candidate(const TrialRow& trial, v1::Lease* lease) {
  v1::RaceCandidate* c = lease->add_finalists();
  c->set_trial_id(trial.id);
  c->set_template_name(trial.template_name);
  c->set_template_version(trial.template_version);
  c->set_config(trial.config);
}

}  // namespace

// Workers that are here and can race kernels of the target.
int Coordinator::racers_locked(const std::string& target) {
  const int64_t now = clock_.now_ms();
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [&](auto& item) {
    return now - item.second.last_seen_ms <= options_.leases.ttl_ms &&
           serves_locked(item.second, str(kRaceOf, target));
  }));
}

// The task's trials of this job, and the best known one whatever job it is of, whose interval overlaps that
// of the fastest: at least 3, at most 16, fastest first, each config once: as a trial of this job, where it
// is one. The best known one is there however its trial went, as the race decides anew what it was; so is the
// default config, as the gain over it is what people tune for.
Result<Coordinator::Finalists> Coordinator::finalists_of(const Job& job, int task_index,
                                                         const TunedConfig& best) const {
  ASSIGN_OR_RETURN(std::vector<TrialWithRecord> trials, store_.trials(job.row.id));
  ASSIGN_OR_RETURN(TrialWithRecord known, store_.trial(best.trial_id));
  std::erase_if(trials, [&](const TrialWithRecord& t) {
    return t.trial.task_index != task_index || !t.record || t.record->outcome != Outcome::kOk ||
           t.record->cut;
  });
  const auto same = [](const TrialRow& a, const TrialRow& b) {
    return a.template_name == b.template_name && a.template_version == b.template_version &&
           a.config == b.config;
  };
  const auto is_known = [&](const TrialWithRecord& t) { return same(t.trial, known.trial); };
  if (std::none_of(trials.begin(), trials.end(), is_known)) trials.push_back(known);
  std::stable_sort(trials.begin(), trials.end(), [](const TrialWithRecord& a, const TrialWithRecord& b) {
    return record_time_ns(*a.record) < record_time_ns(*b.record);
  });
  Finalists out;
  const auto add = [&](const TrialRow& trial) {
    if (std::none_of(out.trials.begin(), out.trials.end(), [&](const TrialRow& f) { return same(f, trial); }))
      out.trials.push_back(trial);
  };
  const double limit_ns = median_interval(trials.front().record->run_ns).high;
  for (const TrialWithRecord& t : trials) {
    if (out.trials.size() == kMostFinalists) break;
    if (out.trials.size() < kLeastFinalists || median_interval(t.record->run_ns).low <= limit_ns)
      add(t.trial);
  }
  for (const TrialWithRecord& t : trials)
    if (is_known(t)) add(t.trial);
  const JobRow::Task& task = job.row.tasks[static_cast<size_t>(task_index)];
  const Result<Workload> workload = workload_from_key(task.workload_key);
  const Result<Target> target = parse_target(task.target);
  if (!workload || !target) return out;
  const std::optional<DefaultConfig> plain = default_config(*workload, *target, task.algorithms);
  const auto of_default =
      std::ranges::find_if(trials, [&](const TrialWithRecord& t) { return plain && plain->is(t.trial); });
  if (of_default == trials.end()) return out;
  add(of_default->trial);
  for (const TrialRow& t : out.trials)
    if (plain->is(t)) out.default_trial_id = t.id;
  return out;
}

// Raced already, and this job has found nothing faster since: it was interrupted after its race, or adds
// nothing to what was known.
Result<bool> Coordinator::settled(const Job& job, int task_index, const TunedConfig& best) const {
  if (!best.certified || job.row.search == kKnownBestStrategy) return false;
  ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> trials, store_.trials(job.row.id));
  return std::none_of(trials.begin(), trials.end(), [&](const TrialWithRecord& t) {
    return t.trial.task_index == task_index && t.record && t.record->outcome == Outcome::kOk &&
           !t.record->cut && t.record_id > best.race_id && record_time_ns(*t.record) < best.time_ns;
  });
}

void Coordinator::announce(Job& job, int task_index, const std::string& note) {
  const JobRow::Task& task = job.row.tasks[static_cast<size_t>(task_index)];
  const Result<TunedConfig> best = best_of(task);
  if (!best)
    return add_event(job.row.id, JobState::kRunning, str("task ", task_index + 1, ": ", best.message()),
                     nullptr);
  v1::TunedConfig tuned;
  to_proto(*best, job.flops[static_cast<size_t>(task_index)], &tuned);
  add_event(
      job.row.id, JobState::kRunning,
      str("task ", task_index + 1, " of ", job.row.tasks.size(), " is tuned", note.empty() ? "" : "; ", note),
      &tuned);
}

// The task has had its last trial: starts its race, or says at once what is known where none can be.
void Coordinator::end_task(Job& job, int task_index) {
  const JobRow::Task& task = job.row.tasks[static_cast<size_t>(task_index)];
  const Result<TunedConfig> best = best_of(task);
  const Result<Target> target = parse_target(task.target);
  // What is measured again in order to be believed again races again.
  const Result<bool> nothing_new = best ? settled(job, task_index, *best) : Result<bool>(true);
  if (!best || !nothing_new || *nothing_new || !target || !target->family->races())
    return announce(job, task_index, "");
  if (job.race.limit_s <= 0)
    return announce(job, task_index, "not raced: the time limit; its time is that of one trial");
  const Result<Finalists> finalists = finalists_of(job, task_index, *best);
  if (!finalists) return announce(job, task_index, finalists.message());

  const std::string id = lease_id(str("race ", job.row.id, "/", task_index + 1));
  v1::Lease lease;
  to_proto(TrialRow{.id = id}, task, job.row.options, &lease);
  for (const TrialRow& trial : finalists->trials) add_candidate(trial, &lease);
  lease.set_default_trial(finalists->default_trial_id);
  to_proto(job.race, lease.mutable_race());
  bool served = false;
  {
    const std::lock_guard lock(mutex_);
    served = race_served_locked(task.target);
    if (served) {
      leases_.enqueue_again({id, job.row.id, str(kRaceOf, task.target), 0, kFirstFencing});
      specs_[id] = std::move(lease);
      races_[id] = {.job_id = job.row.id,
                    .task_index = task_index,
                    .target = task.target,
                    .served_ms = clock_.now_ms(),
                    .limit_s = job.race.limit_s};
      races_[id].course.set_finalists(static_cast<int>(finalists->trials.size()));
      ++job.progress_version;
    }
  }
  if (!served)
    return announce(job, task_index, "not raced: no worker here can; its time is that of one trial");
  work_.notify_all();
  add_event(job.row.id, JobState::kRunning,
            str("task ", task_index + 1, ": ", finalists->trials.size(), " finalists race"), nullptr);
}

// Tells what races of the job have ended.
void Coordinator::step_races(Job& job) {
  std::vector<Race> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = races_.begin(); it != races_.end();) {
      Race& race = it->second;
      if (race.job_id != job.row.id) {
        ++it;
        continue;
      }
      if (race_served_locked(race.target)) race.served_ms = clock_.now_ms();
      if (!race.ended && clock_.now_ms() - race.served_ms > options_.race_wait_ms) {
        race.ended = true;
        race.error = "the workers that could have run it have gone";
        leases_.close(it->first);
      }
      if (!race.ended) {
        ++it;
        continue;
      }
      ended.push_back(race);
      ++job.progress_version;
      specs_.erase(it->first);
      it = races_.erase(it);
    }
  }
  for (const Race& race : ended) count_race(job, race);
  for (const Race& race : ended)
    announce(job, race.task_index,
             !race.error.empty()
                 ? str("its race has no result (", race.error, "), its time is that of one trial")
             : !race.uncertified_why.empty() ? str("not certified: ", race.uncertified_why)
                                             : "");
}

// Stores results of races, then tells the searches. What cannot be stored stays unacknowledged and comes
// again.
Status Coordinator::accept_races(const v1::SyncRequest& request, v1::SyncReply* reply) {
  for (const v1::RaceResult& result : request.races()) {
    std::string job_id, error = result.error();
    int task_index = 0;
    bool known = false;
    {
      const std::lock_guard lock(mutex_);
      const auto race = races_.find(result.race_id());
      known = race != races_.end() && !race->second.ended;
      if (known) job_id = race->second.job_id, task_index = race->second.task_index;
    }
    if (known && error.empty()) {
      Result<RaceRow> row = from_proto(result, "race");
      if (!row) {
        spdlog::error("a race's result is refused: {}", row.message());
        error = row.message();
      } else if (!job_id.empty()) {
        row->job_id = job_id;
        row->task_index = task_index;
        row->finished_at_us = wall_time_us();
        const Status stored = store_.add_race(*row);
        if (!stored && stored.code() != StatusCode::kInvalidArgument &&
            stored.code() != StatusCode::kNotFound) {
          spdlog::error("{} is not stored: {}", result.race_id(), stored.message());
          continue;
        }
        if (!stored) error = stored.message();
      }
    }
    const std::lock_guard lock(mutex_);
    v1::Ack* ack = reply->add_acks();
    ack->set_trial_id(result.race_id());
    ack->set_attempt(result.attempt());
    const auto race = races_.find(result.race_id());
    if (race == races_.end() || race->second.ended) continue;
    leases_.close(result.race_id());
    race->second.ended = true;
    race->second.error = error;
    if (!result.certified()) race->second.uncertified_why = result.uncertified_why();
    if (job_id.empty()) race->second.result = result;
    search_woken_ = true;
  }
  search_.notify_all();
  news_.notify_all();
  return Status::ok();
}

// How far the races are that this worker runs.
void Coordinator::take_courses_locked(const v1::SyncRequest& request) {
  for (const v1::HeldLease& held : request.held()) {
    if (!held.has_race()) continue;
    const auto race = races_.find(held.trial_id());
    if (race == races_.end() || race->second.ended) continue;
    race->second.course = held.race();
    const auto job = jobs_.find(race->second.job_id);
    if (job != jobs_.end()) ++job->second->progress_version;
    news_.notify_all();
  }
}

void Coordinator::add_races_locked(const std::string& job_id, v1::Progress* progress) const {
  for (const auto& [id, race] : races_) {
    if (race.job_id != job_id || race.ended) continue;
    v1::RaceProgress* out = progress->add_races();
    out->set_task_index(race.task_index);
    *out->mutable_course() = race.course;
  }
}

// A lease that was lost with its worker: a race is given to another, or ends. False: it is no race.
bool Coordinator::lose_race_locked(const LeaseTable::Loss& loss) {
  const auto race = races_.find(loss.trial_id);
  if (race == races_.end()) return false;
  spdlog::warn("{}", loss.message);
  if (loss.retry) {
    leases_.requeued(loss.trial_id);
    work_.notify_all();
    return true;
  }
  leases_.close(loss.trial_id);
  race->second.ended = true;
  race->second.error = loss.message;
  search_woken_ = true;
  news_.notify_all();
  return true;
}

Status Coordinator::remeasure(const v1::RemeasureRequest& request, v1::RaceResult* reply,
                              const Cancelled& cancelled) {
  ASSIGN_OR_RETURN(const TrialWithRecord trial, store_.trial(request.trial_id()));
  ASSIGN_OR_RETURN(const Target target, parse_target(trial.task.target));
  if (!target.family->races())
    return invalid_argument("trial ", trial.trial.id, " is of \"", trial.task.target,
                            "\", whose kernels are not raced. Use tuner rerun");
  ASSIGN_OR_RETURN(const JobRow job, store_.job(trial.trial.job_id));
  const std::string id = lease_id("remeasure " + trial.trial.id);
  v1::Lease lease;
  to_proto(TrialRow{.id = id}, trial.task, job.options, &lease);
  add_candidate(trial.trial, &lease);
  *lease.mutable_race() = request.options();
  lease.mutable_options()->set_constants(std::string(
      constants_name(request.options().constants() == "cold" ? Constants::kCold : Constants::kWarm)));

  const int64_t limit = clock_.now_ms() + options_.rerun_limit_ms;
  std::unique_lock lock(mutex_);
  if (stopping_) return unavailable(stop_reason_);
  leases_.enqueue_again({id, id, str(kRaceOf, trial.task.target), 0, kFirstFencing});
  races_[id] = {.target = trial.task.target};
  specs_[id] = std::move(lease);
  work_.notify_all();
  Status status;
  while (status && !races_[id].ended) {
    if (stopping_)
      status = unavailable(stop_reason_);
    else if (cancelled())
      status = Status(StatusCode::kAborted, "the caller has gone");
    else if (clock_.now_ms() >= limit)
      status = Status(
          StatusCode::kDeadlineExceeded,
          str("trial ", trial.trial.id, ": no worker measured it within ", options_.rerun_limit_ms / 1000,
              " s. `tuner workers` lists who is there; it needs one for \"", trial.task.target, "\""));
    else
      news_.wait_for(lock, kLook);
  }
  if (status && !races_[id].error.empty()) status = failed("trial ", trial.trial.id, ": ", races_[id].error);
  if (status) *reply = *races_[id].result;
  races_.erase(id);
  specs_.erase(id);
  leases_.forget_job(id);
  return status;
}

}  // namespace tuner
