#include "tuner/daemon/rooms/referee.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "compiler_core/target.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/tables/belief.h"

namespace tuner {

Referee::Referee(Store& store, Guarded<FarmState>& farm, const Clock& clock,
                 const CoordinatorOptions& options, DaemonMetrics& metrics)
    : store_(store), farm_(farm), clock_(clock), options_(options), metrics_(metrics) {}

Status Referee::load() {
  constexpr int64_t kDayUs = 86'400'000'000;
  ASSIGN_OR_RETURN(const std::vector<QuarantineRow> quarantine, store_.quarantine(""));
  const Locked farm(farm_);
  for (const QuarantineRow& row : quarantine)
    if (options_.wall_us() - row.received_at_us < kDayUs)
      farm->workers.remember_quarantined(row.worker_id, row.why, clock_.now_ms());
  return Status::ok();
}

// Reading a workload and a target takes some microseconds, and tasks have many results.
const TaskFacts& Referee::facts_of(const JobRow::Task& task) {
  constexpr size_t kMostKnown = 4096;
  if (facts_.size() >= kMostKnown) facts_.clear();
  const auto [it, added] = facts_.try_emplace(str(task.target, "\n", task.workload_key));
  if (added) {
    const Result<Target> target = parse_target(task.target);
    it->second = {.bound = machine_bound(task), .on_host = target && target->family->bound_by_host()};
  }
  return it->second;
}

void Referee::refuse(const SyncCall& call, const std::string& id, int attempt, std::string_view why) {
  metrics_.results_not_leased.add();
  const std::string shown_id = shown(id);
  const LogAbout about({.trial = shown_id, .worker = call.life.worker_id, .attempt = attempt});
  if (const auto more = not_leased_log_.say())
    spdlog::warn("a result of worker {} for {}, attempt {}, is not taken: {}{}", call.life.worker_id,
                 shown_id, attempt, why, *more);
}

Result<bool> Referee::is_of_its_sender(Incoming& result) {
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
  refuse(call, record.trial_id, record.attempt, why);
  add_ack(record.trial_id, record.attempt, result.call->reply);
  return false;
}

// The trial is not open here: it is closed, or of a job that this daemon does not run.
Result<bool> Referee::is_of_its_sender_by_the_store(Incoming& result) {
  const MeasureRecord& record = result.record;
  const Environment& sender = record.environment;
  const auto done = [&](std::string_view why) {
    if (!why.empty()) refuse(*result.call, record.trial_id, record.attempt, why);
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

bool Referee::take_impossible(const Incoming& result, Losses& losses) {
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
Status Referee::quarantine(SyncCall& call, const QuarantineRow& row, bool current, Losses& losses) {
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

std::optional<bool> Referee::take_impossible(SyncCall& call, const v1::RaceResult& message,
                                             const RaceRow& row, const Work& work,
                                             const LeaseTable::Claim& claim, Losses& losses) {
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
  return quarantine(call, claimed, claim.current, losses).is_ok();
}

void Referee::note_pace(FarmState& farm, const Incoming& result) const {
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

}  // namespace tuner
