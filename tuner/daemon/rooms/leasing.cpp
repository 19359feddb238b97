#include "tuner/daemon/rooms/leasing.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "db/open_race.h"
#include "proto/convert.h"
#include "tuner/daemon/edge/build_messages.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/rooms/document_office.h"
#include "tuner/daemon/search/stopwatch.h"

namespace tuner {

Leasing::Leasing(Parts parts)
    : store_(parts.store),
      farm_(parts.farm),
      clock_(parts.clock),
      metrics_(parts.metrics),
      news_(parts.news),
      build_office_(parts.builds) {}

void Leasing::take_heartbeat(FarmState& farm, SyncCall& call, bool first) {
  // A worker that still has results to send may have some of leases that it does not name.
  const bool complete = first && call.request->results_size() < kMaxResultsPerSync;
  const LeaseTable::Heartbeat heartbeat =
      farm.leases.heartbeat(call.life, call.held, clock_.now_ms(), complete);
  for (const LeaseTable::Held& h : heartbeat.revoked) {
    v1::Ack* revoked = call.reply->add_revoked();
    revoked->set_trial_id(h.trial_id);
    revoked->set_attempt(h.attempt);
  }
  // Leases whose reply got lost are delivered again, before this call leases more itself.
  if (!complete) return;
  for (const std::string& id : heartbeat.missing) deliver(farm, id, call);
  call.slots -= static_cast<int>(heartbeat.missing.size());
}

void Leasing::reserve(FarmState& farm, SyncCall& call, Reserved& reserved) {
  if (call.answered || call.slots <= 0 || farm.leases.queued() == 0) return;
  const int64_t now = clock_.now_ms();
  const LeaseTable::Asker asker{
      .worker_id = call.life.worker_id,
      .incarnation = call.life.incarnation,
      .serves = [&](const Needs& needs) { return farm.workers.serves(call.session(), needs); },
      .others =
          [&](const Needs& needs, const std::set<std::string>& except) {
            return farm.workers.others_serve(needs, except, now);
          }};
  const int n = std::min(call.slots, farm.workers.allowance(call.session(), now));
  for (LeaseTable::Trial& trial : farm.leases.reserve(asker, call.held_ids, static_cast<size_t>(n)))
    reserved.emplace_back(&call, std::move(trial));
}

// Leases queued trials to the calls that have room, in their order.
void Leasing::lease_to(const std::vector<SyncCall*>& calls) {
  Reserved reserved;
  std::vector<LeaseWish> wishes;
  StoredLeases stored;  // attempt and token of what the store has leased
  {
    const Locked farm(farm_);
    if (!farm->stopping)
      for (SyncCall* const call : calls) reserve(*farm, *call, reserved);
  }
  for (const auto& [call, trial] : reserved)
    if (trial.work.kind == WorkKind::kTrial)
      wishes.push_back({trial.id, call->life.worker_id, call->life.incarnation});
  if (reserved.empty()) return;
  const double store_ms = store_leases(wishes, stored);
  for (const auto& [call, trial] : reserved)
    if (trial.work.kind == WorkKind::kRace && trial.in_store()) store_race_lease(*call, trial, stored);

  const Locked farm(farm_);
  for (const auto& [call, trial] : reserved) {
    std::pair<int, int64_t> lease{trial.attempt + 1, trial.fencing + 1};
    if (trial.in_store()) {
      const auto row = stored.find(trial.id);
      if (row == stored.end()) {
        // Closed meanwhile, and close() has forgotten it or will; or the disk: try again later.
        farm->leases.release(trial.id);
        continue;
      }
      lease = row->second;
    }
    if (!farm->leases.grant(trial.id, call->life, lease.first, lease.second, clock_.now_ms())) continue;
    metrics_.leases_granted.add();
    const std::shared_ptr<Job> job = farm->jobs.find(trial.job_id);
    const bool is_race = trial.work.kind == WorkKind::kRace;
    const LogAbout about({.job = trial.job_id,
                          .trial = is_race ? std::string_view() : trial.id,
                          .worker = call->life.worker_id,
                          .request = job ? job->row().request_id : std::string_view(),
                          .race = is_race ? trial.id : std::string_view(),
                          .attempt = lease.first});
    spdlog::debug("{} is leased to {}", trial.id, call->life.worker_id);
    if (is_race) farm->races.leased(trial.id, clock_.now_ms());
    if (job) job->count_lease(store_ms);
    farm->builds.forget(trial.id);  // what it wanted of an earlier attempt
    deliver(*farm, trial.id, *call);
  }
}

void Leasing::deliver(FarmState& farm, const std::string& trial_id, SyncCall& call) {
  const LeaseTable::Trial& trial = *farm.leases.find(trial_id);
  v1::Lease* const lease = call.reply->add_leases();
  to_proto(trial, lease);
  if (const DocumentName* const document = document_of(farm, trial.work.task.workload_key))
    to_proto(document->blob, lease->mutable_document());
  if (farm.workers.kind(call.session()) != WorkerKind::kRunner) return;
  build_office_.want(farm, trial_id);
  call.awaits.insert(trial_id);
}

// Writes leases of trials in one commit. Returns what one of them took, in milliseconds.
double Leasing::store_leases(const std::vector<LeaseWish>& wishes, StoredLeases& stored) {
  if (wishes.empty()) return 0;
  const Stopwatch storing;
  const Result<std::vector<TrialRow>> rows = store_.lease_trials(wishes);
  metrics_.lease_commit_s.observe(storing.elapsed_ms() / 1000);
  news_.note_commit(rows.status());
  if (!rows) {
    if (const auto more = disk_log_.say())
      spdlog::error("{} trials cannot be leased: {}{}", wishes.size(), rows.message(), *more);
    return 0;
  }
  for (const TrialRow& row : *rows) stored[row.id] = {row.attempt, row.fencing};
  return storing.elapsed_ms() / static_cast<double>(wishes.size());
}

void Leasing::store_race_lease(const SyncCall& call, const LeaseTable::Trial& race, StoredLeases& stored) {
  const LogAbout about({.job = race.job_id, .worker = call.life.worker_id, .race = race.id});
  const Result<OpenRaceRow> row = store_.lease_race(race.id, call.life.worker_id, call.life.incarnation);
  if (row)
    stored[race.id] = {row->attempt, row->fencing};
  else if (const auto more = disk_log_.say())
    spdlog::error("{} cannot be leased: {}{}", race.id, row.message(), *more);
}

// The best times known of the tasks that the worker has leases of: they cut hopeless candidates.
void Leasing::add_best_times(const FarmState& farm, SyncCall& call) const {
  std::set<std::pair<std::string, int>> told;
  const auto add = [&](const std::string& trial_id) -> double {
    const LeaseTable::Trial* const trial = farm.leases.find(trial_id);
    if (trial == nullptr || trial->work.kind != WorkKind::kTrial) return 0;
    const std::shared_ptr<const Job> job = farm.jobs.find(trial->job_id);
    if (job == nullptr) return 0;
    const auto best = job->best_ns().find(trial->work.task_index);
    if (best == job->best_ns().end()) return 0;
    if (told.emplace(trial->job_id, trial->work.task_index).second) {
      v1::BestTime* const news = call.reply->add_best();
      news->set_workload_key(trial->work.task.workload_key);
      news->set_target(trial->work.task.target);
      news->set_best_ns(best->second);
    }
    return best->second;
  };
  for (v1::Lease& lease : *call.reply->mutable_leases())
    if (const double best = add(lease.trial_id()); best > 0) lease.set_best_ns(best);
  for (const LeaseTable::Held& held : call.held) add(held.trial_id);
}

}  // namespace tuner
