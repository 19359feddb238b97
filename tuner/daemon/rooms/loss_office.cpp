#include "tuner/daemon/rooms/loss_office.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"

namespace tuner {

LossOffice::LossOffice(Store& store, Guarded<FarmState>& farm, const CoordinatorOptions& options,
                       DaemonMetrics& metrics, JobNews& news, Wake wake)
    : store_(store), farm_(farm), options_(options), metrics_(metrics), news_(news), wake_(std::move(wake)) {}

void LossOffice::handle(Losses losses) {
  if (losses.empty()) return;
  take_deaths(losses);
  std::vector<std::pair<std::string, int>> attempts;
  const auto by_id = [](const auto& a, const auto& b) { return a->id() < b->id(); };
  std::map<std::shared_ptr<Job>, std::vector<const LeaseTable::Loss*>, decltype(by_id)> told(by_id);
  for (const LeaseTable::Loss& loss : losses) {
    std::shared_ptr<Job> job;
    {
      const Locked farm(farm_);
      if (farm->reruns.find(loss.trial_id) != nullptr) {
        farm->reruns.fail(loss.trial_id, loss.message);  // the caller decides whether to try again
        news_.notify();
        continue;
      }
      if (const LeaseTable::Trial* const trial = farm->leases.find(loss.trial_id))
        job = farm->jobs.find(trial->job_id);
    }
    if (lose_race(loss)) continue;
    if (loss.retry)
      attempts.emplace_back(loss.trial_id, loss.attempt);
    else if (!give_up(loss))
      continue;
    if (job != nullptr && !loss.told_anyway) told[job].push_back(&loss);
  }
  if (!attempts.empty())
    if (const Result<int64_t> requeued = store_.requeue_trials(attempts); !requeued)
      if (const auto more = disk_log_.say())
        spdlog::warn("{} lost trials stay as they are: {}{}", attempts.size(), requeued.message(), *more);
  {
    const Locked farm(farm_);
    for (const auto& [id, attempt] : attempts) farm->leases.requeued(id);
  }
  wake_.desk();
  for (const auto& [job, lost] : told) {
    const std::string text = lost.size() == 1
                                 ? lost[0]->message
                                 : str(lost.size(), " trials were lost; the first: ", lost[0]->message);
    const bool one = lost.size() == 1;
    const LogAbout about({.job = job->id(),
                          .trial = one ? lost[0]->trial_id : std::string_view(),
                          .attempt = one ? lost[0]->attempt : 0});
    spdlog::warn("{}", text);
    news_.tell(*job, with_trial_name(text, lost[0]->trial_id));
  }
}

// Logs name trials by id, as leases and workers do; who watches a job sees the names that people use.
std::string LossOffice::with_trial_name(std::string text, const std::string& trial_id) const {
  const std::string by_id = str("trial ", trial_id, " ");
  const size_t at = text.find(by_id);
  const Result<TrialWithRecord> trial = store_.trial(trial_id);
  if (at == std::string::npos || !trial) return text;
  return text.replace(at, by_id.size(), str("trial ", trial->trial.name(), " "));
}

// A race is given to another worker, or ends. False: it is no race.
bool LossOffice::lose_race(const LeaseTable::Loss& loss) {
  bool of_job = false;
  {
    const Locked farm(farm_);
    const Races::Race* const race = farm->races.find(loss.trial_id);
    if (race == nullptr) return false;
    of_job = !race->job_id.empty();
  }
  const LogAbout about({.race = loss.trial_id, .attempt = loss.attempt});
  spdlog::warn("{}", loss.message);
  if (of_job) {
    const Status stored = loss.retry ? store_.requeue_race(loss.trial_id, loss.attempt)
                                     : store_.end_race(loss.trial_id, nullptr, loss.message);
    if (!stored) spdlog::warn("{} stays as it is: {}", loss.trial_id, stored.message());
  }
  const Locked farm(farm_);
  if (loss.retry) {
    farm->leases.requeued(loss.trial_id);
    wake_.desk();
    return true;
  }
  metrics_.races_ended.add();
  const Races::Race* const race = farm->races.find(loss.trial_id);
  const std::string job_id = race == nullptr ? "" : race->job_id;
  farm->leases.close(loss.trial_id);
  farm->races.failed(loss.trial_id, loss.message);
  wake_.search(job_id);
  news_.notify();
  return true;
}

bool LossOffice::give_up(const LeaseTable::Loss& loss) {
  const LogAbout about({.trial = loss.trial_id, .attempt = loss.attempt});
  MeasureRecord record;
  record.trial_id = loss.trial_id;
  record.attempt = loss.attempt;
  record.outcome = Outcome::kDeviceLost;
  record.message = loss.message;
  record.finished_at_us = options_.wall_us();
  if (const Status added = store_.add_records({record}); !added) {
    if (const auto more = disk_log_.say())
      spdlog::error("trial {}: {}{}", loss.trial_id, added.message(), *more);
    return false;
  }
  metrics_.trials_given_up.add();
  const Locked farm(farm_);
  const std::optional<std::string> job_id = farm->leases.close(loss.trial_id);
  if (const std::shared_ptr<Job> job = job_id ? farm->jobs.find(*job_id) : nullptr) {
    job->results_came();
    wake_.search(*job_id);
  }
  return true;
}

// --- the poison ledger ---

Status LossOffice::load() {
  ASSIGN_OR_RETURN(const std::vector<DeathRow> deaths, store_.deaths());
  const Locked farm(farm_);
  for (const DeathRow& line : deaths) (void)farm->ledger.take(line);
  return Status::ok();
}

// Writes down who was lost while it built or ran what; a config that is poison by that is not tried again, in
// whatever job.
void LossOffice::take_deaths(Losses& losses) {
  std::vector<DeathRow> lines;
  {
    const Locked farm(farm_);
    for (LeaseTable::Loss& loss : losses) {
      const LeaseTable::Trial* const trial = farm->leases.find(loss.trial_id);
      if (!loss.death || trial == nullptr || trial->work.kind != WorkKind::kTrial) continue;
      const Work work = trial->work;
      const auto& [life, running, alone] = *loss.death;
      lines.push_back(PoisonLedger::line(work, life, running ? DeathPhase::kRunning : DeathPhase::kBuilding,
                                         alone, options_.wall_us()));
      if (!farm->ledger.take(lines.back())) continue;
      lines.push_back(
          PoisonLedger::line(work, life, DeathPhase::kPoison, /*alone=*/false, options_.wall_us()));
      metrics_.configs_poisoned.add();
    }
    // Those of this call that it was decided on, and others of the same config, which wait.
    if (!lines.empty())
      for (LeaseTable::Loss& loss : losses) {
        const LeaseTable::Trial* const trial = farm->leases.find(loss.trial_id);
        if (trial == nullptr || trial->work.kind != WorkKind::kTrial) continue;
        if (auto why = farm->ledger.verdict(trial->work)) {
          loss.retry = false;
          loss.message = *std::move(why);
        }
      }
  }
  if (lines.empty()) return;
  const bool poison = std::ranges::find(lines, DeathPhase::kPoison, &DeathRow::phase) != lines.end();
  if (const Status stored = store_.add_deaths(lines); !stored)
    if (const auto more = disk_log_.say())
      spdlog::error("the poison ledger is not written: {}{}", shown(stored.message()), *more);
  if (!poison) return;
  const Locked farm(farm_);
  for (const std::string& id : farm->leases.find_all([&](const LeaseTable::Trial& trial) {
         return trial.work.kind == WorkKind::kTrial && farm->ledger.verdict(trial.work).has_value();
       })) {
    if (std::ranges::find(losses, id, &LeaseTable::Loss::trial_id) != losses.end()) continue;
    const LeaseTable::Trial& trial = *farm->leases.find(id);
    losses.push_back({.trial_id = id,
                      .attempt = std::max(trial.attempt, 1),
                      .retry = false,
                      .message = *farm->ledger.verdict(trial.work)});
  }
}

void LossOffice::survived(std::vector<DeathRow> lines) {
  if (lines.empty()) return;
  {
    const Locked farm(farm_);
    for (const DeathRow& line : lines) (void)farm->ledger.take(line);
  }
  if (const Status stored = store_.add_deaths(lines); !stored)
    if (const auto more = disk_log_.say())
      spdlog::error("the poison ledger is not written: {}{}", shown(stored.message()), *more);
}

LossOffice::Losses LossOffice::poisoned_among(const FarmState& farm, const std::vector<TrialRow>& rows,
                                              const Job& job) {
  Losses poisoned;
  if (farm.ledger.empty()) return poisoned;
  for (const TrialRow& row : rows) {
    const Work work{.task = job.row().tasks[static_cast<size_t>(row.task_index)],
                    .template_name = row.template_name,
                    .config = row.config,
                    .template_version = row.template_version};
    if (auto why = farm.ledger.verdict(work))
      poisoned.push_back({.trial_id = row.id,
                          .attempt = std::max(row.attempt, 1),
                          .retry = false,
                          .message = *std::move(why)});
  }
  return poisoned;
}

}  // namespace tuner
