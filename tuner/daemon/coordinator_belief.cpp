// What of the results counts: who had the attempt, what cannot be, and whom configs have killed.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "compiler_core/target.h"
#include "db/quarantine.h"
#include "tuner/daemon/belief.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/incoming.h"
#include "tuner/daemon/messages.h"

namespace tuner {

// What earlier daemons on this database found out.
Status Coordinator::load_distrust() {
  constexpr int64_t kDayUs = 86'400'000'000;
  ASSIGN_OR_RETURN(const std::vector<DeathRow> deaths, store_.deaths());
  ASSIGN_OR_RETURN(const std::vector<QuarantineRow> quarantine, store_.quarantine(""));
  const Locked farm(farm_);
  for (const DeathRow& line : deaths) (void)farm->ledger.take(line);
  for (const QuarantineRow& row : quarantine)
    if (options_.wall_us() - row.received_at_us < kDayUs)
      farm->workers.remember_quarantined(row.worker_id, row.why, clock_.now_ms());
  return Status::ok();
}

// Only the desk asks. Reading a workload and a target takes some microseconds, and tasks have many results.
const Coordinator::TaskFacts& Coordinator::facts_of(const JobRow::Task& task) {
  constexpr size_t kMostKnown = 4096;
  if (facts_.size() >= kMostKnown) facts_.clear();
  const auto [it, added] = facts_.try_emplace(str(task.target, "\n", task.workload_key));
  if (added) {
    const Result<Target> target = parse_target(task.target);
    it->second = {.bound = machine_bound(task), .on_host = target && target->family->bound_by_host()};
  }
  return it->second;
}

void Coordinator::refuse_not_leased(const SyncCall& call, const std::string& id, int attempt,
                                    std::string_view why) {
  metrics_.results_not_leased.add();
  const std::string shown_id = shown(id);
  const LogAbout about({.trial = shown_id, .worker = call.life.worker_id, .attempt = attempt});
  if (const auto more = not_leased_log_.say())
    spdlog::warn("a result of worker {} for {}, attempt {}, is not taken: {}{}", call.life.worker_id,
                 shown_id, attempt, why, *more);
}

// False: the result is done with, and acknowledged: it is of an attempt that its sender did not have, or is
// stored already. An error: the disk cannot tell, so the result is to come again.
Result<bool> Coordinator::is_of_its_sender(Incoming& result) {
  MeasureRecord& record = result.record;
  const SyncCall& call = *result.call;
  const WorkerLife sender = sender_of(record.environment, call.life);
  std::string_view why = "it names another worker";
  if (sender.worker_id == call.life.worker_id) {
    record.environment.worker_id = sender.worker_id;
    record.environment.worker_incarnation = sender.incarnation;
    std::optional<LeaseTable::Claim> claim;
    {
      const Locked farm(farm_);
      claim = farm->leases.claim(record.trial_id, record.attempt, sender, clock_.now_ms());
      if (claim && claim->granted) {
        const Work& work = farm->leases.find(record.trial_id)->work;
        result.claim = *claim;
        result.repeats = work.options.repeats;
        result.facts = facts_of(work.task);
        return true;
      }
    }
    if (!claim) return is_of_its_sender_by_the_store(result);
    why = "it did not have that attempt";
  }
  refuse_not_leased(call, record.trial_id, record.attempt, why);
  add_ack(record.trial_id, record.attempt, result.call->reply);
  return false;
}

// The trial is not open here: it is closed, or of a job that this daemon does not run.
Result<bool> Coordinator::is_of_its_sender_by_the_store(Incoming& result) {
  const MeasureRecord& record = result.record;
  const Environment& sender = record.environment;
  const auto done = [&](std::string_view why) {
    if (!why.empty()) refuse_not_leased(*result.call, record.trial_id, record.attempt, why);
    add_ack(record.trial_id, record.attempt, result.call->reply);
    return false;
  };
  const Result<TrialWithRecord> trial = store_.trial(record.trial_id);
  if (!trial && trial.status().code() == StatusCode::kNotFound) return done("there is no such trial");
  if (!trial) return trial.status();
  if (!was_granted(trial->trial.grants, record.attempt, sender.worker_id, sender.worker_incarnation))
    return done("it did not have that attempt");
  ASSIGN_OR_RETURN(const std::vector<MeasureRecord> records, store_.records(record.trial_id));
  const bool stored = std::ranges::any_of(records, [&](const MeasureRecord& r) {
    return r.attempt == record.attempt && r.environment.worker_id == sender.worker_id &&
           r.environment.worker_incarnation == sender.worker_incarnation;
  });
  if (stored) return done("");
  result.claim.granted = true;
  result.repeats = record.options.repeats;
  result.facts = facts_of(trial->task);
  return true;
}

// True: it cannot be, and is in quarantine; or the disk refused that, and it comes again.
bool Coordinator::take_impossible(const Incoming& result, std::vector<LeaseTable::Loss>& losses) {
  const MeasureRecord& record = result.record;
  const Circumstances known{
      .bound = result.facts.bound, .repeats = result.repeats, .held_ms = result.claim.held_ms};
  const std::optional<std::string> why = why_impossible(record, known);
  if (!why) return false;
  const QuarantineRow row{.lease_id = record.trial_id,
                          .attempt = record.attempt,
                          .worker_id = record.environment.worker_id,
                          .worker_incarnation = record.environment.worker_incarnation,
                          .host = record.environment.host,
                          .claimed_ns = record_time_ns(record),
                          .why = *why,
                          .received_at_us = options_.wall_us()};
  if (quarantine(*result.call, row, result.claim.current, losses))
    add_ack(record.trial_id, record.attempt, result.call->reply);
  return true;
}

// Keeps the claim for people. The trial or race goes to another worker first; who sent it is trusted less.
Status Coordinator::quarantine(SyncCall& call, const QuarantineRow& row, bool current,
                               std::vector<LeaseTable::Loss>& losses) {
  QuarantineRow stored = row;
  if (const Status added = store_.add_quarantine(stored); !added) {
    if (const auto more = disk_log_.say())
      spdlog::error("a result in quarantine is not stored: {}{}", shown(added.message()), *more);
    return added;
  }
  metrics_.results_quarantined.add();
  const std::string id = shown(row.lease_id);
  const LogAbout about({.trial = id, .worker = call.life.worker_id, .attempt = row.attempt});
  if (const auto more = quarantine_log_.say())
    spdlog::warn("a result of worker {} for {} cannot be and is in quarantine: {}{}", call.life.worker_id, id,
                 row.why, *more);
  const Locked farm(farm_);
  const int64_t pause = farm->workers.count_quarantined(call.session(), row.why, clock_.now_ms());
  if (pause > 0)
    spdlog::warn("worker {} gets nothing for {} s: it sends results that cannot be", call.life.worker_id,
                 pause / 1000);
  if (!current) return Status::ok();
  if (auto loss = farm->leases.fault(row.lease_id, call.life.worker_id, "its result cannot be: " + row.why)) {
    metrics_.lost(LostWhy::kFault, 1);
    losses.push_back(*std::move(loss));
  }
  return Status::ok();
}

// Nothing: it can be. Else whether it may be acknowledged; the race goes to another worker.
std::optional<bool> Coordinator::take_impossible_race(SyncCall& call, const v1::RaceResult& message,
                                                      const RaceRow& row, const Work& work,
                                                      const LeaseTable::Claim& claim) {
  const Circumstances known{.bound = facts_of(work.task).bound, .held_ms = claim.held_ms};
  const std::optional<std::string> why = why_impossible(row, work.finalists, known);
  if (!why) return std::nullopt;
  const QuarantineRow claimed{.lease_id = message.race_id(),
                              .attempt = message.attempt(),
                              .worker_id = row.environment.worker_id,
                              .worker_incarnation = row.environment.worker_incarnation,
                              .host = row.environment.host,
                              .claimed_ns = row.time_ns,
                              .why = *why,
                              .received_at_us = options_.wall_us()};
  std::vector<LeaseTable::Loss> losses;
  if (!quarantine(call, claimed, claim.current, losses)) return false;
  handle_losses(std::move(losses));
  return true;
}

// A worker whose machine has become slower is left alone until it is calm.
void Coordinator::note_pace(FarmState& farm, const Incoming& result) {
  const MeasureRecord& r = result.record;
  if (!result.facts.on_host || !result.claim.current) return;
  const double sentinel_ns = std::min(r.sentinel_before_ns, r.sentinel_after_ns);
  const std::string& worker = result.call->life.worker_id;
  switch (farm.workers.observe_sentinel(result.call->session(), sentinel_ns, clock_.now_ms())) {
    case Standing::News::kSlower:
      spdlog::warn("worker {} has become slower; it gets little until it is calm", worker);
      break;
    case Standing::News::kCalm:
      spdlog::info("worker {} is calm again", worker);
      break;
    case Standing::News::kNewPace:
      spdlog::warn("worker {} has stayed slower; its new pace is believed", worker);
      break;
    case Standing::News::kNone:
      break;
  }
}

// --- the poison ledger ---

// Writes down who was lost while it built or ran what; a config that is poison by that is not tried again, in
// whatever job.
void Coordinator::take_deaths(std::vector<LeaseTable::Loss>& losses) {
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

// A result came of configs that workers had died at.
void Coordinator::take_survivors(std::vector<DeathRow> lines) {
  if (lines.empty()) return;
  {
    const Locked farm(farm_);
    for (const DeathRow& line : lines) (void)farm->ledger.take(line);
  }
  if (const Status stored = store_.add_deaths(lines); !stored)
    if (const auto more = disk_log_.say())
      spdlog::error("the poison ledger is not written: {}{}", shown(stored.message()), *more);
}

// Of new or stored trials those whose config is poison: each is to end without a worker.
std::vector<LeaseTable::Loss> Coordinator::poisoned_among(const FarmState& farm,
                                                          const std::vector<TrialRow>& rows,
                                                          const Job& job) const {
  std::vector<LeaseTable::Loss> poisoned;
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
