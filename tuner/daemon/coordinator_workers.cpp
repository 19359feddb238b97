// What workers ask of the coordinator: Register and Sync.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "compiler_core/backend.h"
#include "proto/convert.h"
#include "tuner/daemon/coordinator.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
constexpr int64_t kForgetWorkerMs = 600'000;  // a worker silent for so long leaves the list
constexpr uint64_t kInputSeed = 1;            // one for all trials, so that their times compare
constexpr int64_t kLookMs = 250;

std::string random_session() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 4; ++i) {
    char word[9];
    std::snprintf(word, sizeof word, "%08x", random());
    text += word;
  }
  return text;
}

// Whether a worker that offers `offered` measures code for `wanted`: on CPUs with another number of threads, or
// for an older CPU.
bool measures(const std::string& offered, const std::vector<std::string>& features, int max_threads,
              const std::string& wanted) {
  const Result<Target> there = parse_target(offered), code = parse_target(wanted);
  if (!there || !code || there->family != code->family) return false;
  return backend_of(*code).measures(*code, *there, features, max_threads);
}

}  // namespace

Status Coordinator::register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) {
  if (request.worker_id().empty() || request.incarnation().empty())
    return invalid_argument("worker_id, incarnation: found \"", request.worker_id(), "\" and \"",
                            request.incarnation(), "\", expected a name for each");
  if (request.protocol() != 1)
    return invalid_argument("worker ", request.worker_id(), ": protocol: found ", request.protocol(),
                            ", expected 1. Use the measure_server of the daemon's version");
  if (request.targets_size() == 0)
    return invalid_argument("worker ", request.worker_id(),
                            ": targets: found none, expected what it can measure");
  Worker worker;
  worker.owner = {request.worker_id(), request.incarnation()};
  worker.host = request.environment().host();
  worker.targets.assign(request.targets().begin(), request.targets().end());
  worker.features.assign(request.cpu_features().begin(), request.cpu_features().end());
  worker.max_threads = request.max_threads();
  worker.races = request.races();

  std::vector<LeaseTable::Loss> losses;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return unavailable(stop_reason_);
    worker.last_seen_ms = clock_.now_ms();
    std::erase_if(workers_, [&](const auto& item) {
      return clock_.now_ms() - item.second.last_seen_ms > kForgetWorkerMs;
    });
    for (auto it = workers_.begin(); it != workers_.end();) {
      if (it->second.owner.worker_id != request.worker_id()) {
        ++it;
        continue;
      }
      worker.trials_done = it->second.trials_done;
      // Another life of the same worker: what the old one ran has died with it.
      if (it->second.owner.incarnation != request.incarnation()) {
        const std::vector<LeaseTable::Loss> more = leases_.worker_lost(it->second.owner);
        losses.insert(losses.end(), more.begin(), more.end());
      }
      it = workers_.erase(it);
    }
    const std::string session = random_session();
    workers_[session] = std::move(worker);
    reply->set_session(session);
    reply->set_lease_ttl_ms(options_.leases.ttl_ms);
  }
  work_.notify_all();
  spdlog::info("worker {} is here, from {}", request.worker_id(), request.environment().host());
  handle_losses(losses);
  return Status::ok();
}

bool Coordinator::serves_locked(Worker& worker, const std::string& target) const {
  const auto [it, added] = worker.serves.try_emplace(target, false);
  if (added && target.starts_with(kRaceOf))
    it->second = worker.races && serves_locked(worker, target.substr(kRaceOf.size()));
  else if (added)
    it->second = std::any_of(worker.targets.begin(), worker.targets.end(), [&](const std::string& offered) {
      return offered == target || measures(offered, worker.features, worker.max_threads, target);
    });
  return it->second;
}

// Stores the results, then tells the searches. Fills acks; what could not be stored stays unacknowledged and
// comes again.
Status Coordinator::accept_results(const v1::SyncRequest& request, v1::SyncReply* reply) {
  std::vector<MeasureRecord> records;
  std::vector<const v1::MeasureRecord*> messages, refused;
  for (int i = 0; i < request.results_size(); ++i) {
    const v1::MeasureRecord& message = request.results(i);
    Result<MeasureRecord> record = from_proto(message, str("results[", i, "]"));
    if (record) {
      records.push_back(*std::move(record));
      messages.push_back(&message);
    } else {
      // Sent again it would be no better: let the worker forget it, and have the trial run again.
      spdlog::error("a result is refused: {}", record.message());
      refused.push_back(&message);
    }
  }
  std::vector<bool> stored(records.size(), true), known(records.size(), true);
  const Stopwatch storing;
  if (const Status all = store_.add_records(records); !all) {
    for (size_t i = 0; i < records.size(); ++i) {
      const Status one = store_.add_records({records[i]});
      known[i] = one.code() != StatusCode::kNotFound;
      stored[i] = one.is_ok() || !known[i];
      if (!one) spdlog::error("the result of trial {} is not stored: {}", records[i].trial_id, one.message());
    }
  }
  const double store_ms = storing.elapsed_ms() / static_cast<double>(std::max<size_t>(records.size(), 1));
  const std::lock_guard lock(mutex_);
  const auto ack = [&](const std::string& trial_id, int attempt) {
    v1::Ack* a = reply->add_acks();
    a->set_trial_id(trial_id);
    a->set_attempt(attempt);
  };
  for (size_t i = 0; i < records.size(); ++i) {
    if (!stored[i]) continue;
    ack(records[i].trial_id, records[i].attempt);
    if (known[i]) close_locked(records[i], *messages[i], store_ms, request.session());
  }
  for (const v1::MeasureRecord* message : refused) {
    ack(message->trial_id(), message->attempt());
    leases_.drop(message->trial_id());
  }
  search_woken_ = true;
  search_.notify_all();
  work_.notify_all();
  news_.notify_all();
  return Status::ok();
}

void Coordinator::close_locked(const MeasureRecord& record, const v1::MeasureRecord& message, double store_ms,
                               const std::string& session) {
  const std::string& id = record.trial_id;
  if (const auto worker = workers_.find(session); worker != workers_.end()) ++worker->second.trials_done;
  if (const auto rerun = reruns_.find(id); rerun != reruns_.end()) {
    // A late result of the job's own attempt is not the rerun's.
    if (record.attempt < 1'000'000) return;
    rerun->second.record = message;
    leases_.close(id);
    return;
  }
  const std::optional<std::string> job_id = leases_.close(id);
  specs_.erase(id);
  task_of_trial_.erase(id);
  if (!job_id) return;
  const auto found = jobs_.find(*job_id);
  if (found == jobs_.end()) return;
  Job& job = *found->second;
  job.results_came = true;
  job.times.add(TrialPhase::kBuild, message.build_ms());
  job.times.add(TrialPhase::kStore, store_ms + job.lease_store_ms + job.proposal_store_ms);
  if (message.run_ms() <= 0) return;  // it was not built
  job.times.add(TrialPhase::kRun, message.run_ms());
  job.times.add(TrialPhase::kCheck, message.check_ms());
}

// Leases up to `slots` queued trials to the session's worker. Unlocks while the store writes.
void Coordinator::lease_locked(std::unique_lock<std::mutex>& lock, const std::string& session,
                               const std::set<std::string>& held, int slots, v1::SyncReply* reply) {
  const auto found = workers_.find(session);
  if (found == workers_.end() || slots <= 0) return;
  const LeaseTable::Owner owner = found->second.owner;
  const std::vector<LeaseTable::Trial> reserved = leases_.reserve(
      [&](const std::string& target) { return serves_locked(found->second, target); }, held, slots);
  if (reserved.empty()) return;
  // One commit for all of them. Reruns and races are not in the store as open trials.
  std::vector<std::string> ids;
  for (const LeaseTable::Trial& trial : reserved)
    if (!reruns_.contains(trial.id) && !races_.contains(trial.id)) ids.push_back(trial.id);
  std::map<std::string, TrialRow> stored;
  if (!ids.empty()) {
    lock.unlock();
    const Stopwatch storing;
    Result<std::vector<TrialRow>> rows = store_.lease_trials(ids, owner.worker_id);
    const double store_ms = storing.elapsed_ms();
    lock.lock();
    if (!rows) spdlog::error("{} trials cannot be leased: {}", ids.size(), rows.message());
    if (rows)
      for (TrialRow& row : *rows) {
        if (const auto job = jobs_.find(row.job_id); job != jobs_.end())
          job->second->lease_store_ms = store_ms / static_cast<double>(rows->size());
        stored.emplace(row.id, std::move(row));
      }
  }
  const std::set<std::string> in_store(ids.begin(), ids.end());
  for (const LeaseTable::Trial& trial : reserved) {
    int attempt = trial.attempt + 1;
    int64_t fencing = trial.fencing + 1;
    if (in_store.contains(trial.id)) {
      const auto row = stored.find(trial.id);
      if (row == stored.end()) {
        // Closed meanwhile, and close() has forgotten it or will; or the disk: try again later.
        leases_.release(trial.id);
        continue;
      }
      attempt = row->second.attempt;
      fencing = row->second.fencing;
    }
    if (!leases_.grant(trial.id, owner, attempt, fencing, clock_.now_ms())) continue;
    if (const auto race = races_.find(trial.id); race != races_.end())
      race->second.begun_ms = clock_.now_ms();
    if (!specs_.contains(trial.id)) continue;
    v1::Lease* lease = reply->add_leases();
    *lease = specs_[trial.id];
    lease->set_attempt(attempt);
    lease->set_fencing(fencing);
    specs_[trial.id] = *lease;
  }
}

void Coordinator::add_best_times_locked(v1::SyncReply* reply) const {
  for (const auto& [id, job] : jobs_) {
    for (const auto& [task, best_ns] : job->best_ns) {
      v1::BestTime* best = reply->add_best();
      best->set_workload_key(job->row.tasks[task].workload_key);
      best->set_target(job->row.tasks[task].target);
      best->set_best_ns(best_ns);
      for (v1::Lease& lease : *reply->mutable_leases()) {
        const auto of = task_of_trial_.find(lease.trial_id());
        if (of != task_of_trial_.end() && of->second == task &&
            lease.workload_key() == best->workload_key() && lease.target() == best->target())
          lease.set_best_ns(best_ns);
      }
    }
  }
}

Status Coordinator::sync(const v1::SyncRequest& request, v1::SyncReply* reply, const Cancelled& cancelled) {
  if (request.results_size() > kMaxResultsPerSync || request.held_size() > kMaxHeldPerSync ||
      request.races_size() > kMaxRacesPerSync)
    return invalid_argument("sync: found ", request.results_size(), " results, ", request.races_size(),
                            " races and ", request.held_size(), " held leases, at most ", kMaxResultsPerSync,
                            ", ", kMaxRacesPerSync, " and ", kMaxHeldPerSync, " are taken at once");
  const Status unknown(StatusCode::kAborted, "unknown session; register again and keep your work");
  uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto worker = workers_.find(request.session());
    if (worker == workers_.end()) return unknown;
    generation = ++worker->second.generation;
    worker->second.last_seen_ms = clock_.now_ms();
    worker->second.capacity = request.free_slots() + request.held_size();
    take_courses_locked(request);
  }
  work_.notify_all();  // an older Sync of this worker that still waits gives up
  if (request.results_size() > 0) RETURN_IF_ERROR(accept_results(request, reply));
  if (request.races_size() > 0) RETURN_IF_ERROR(accept_races(request, reply));

  std::vector<LeaseTable::Held> held;
  std::set<std::string> held_ids;
  for (const v1::HeldLease& h : request.held()) {
    held.push_back({h.trial_id(), h.attempt(), h.fencing()});
    held_ids.insert(h.trial_id());
  }
  std::unique_lock lock(mutex_);
  const int64_t deadline = clock_.now_ms() + std::clamp<int64_t>(request.wait_ms(), 0, options_.max_wait_ms);
  bool first = true;
  while (true) {
    const auto worker = workers_.find(request.session());
    if (worker == workers_.end()) return unknown;
    if (worker->second.generation != generation)
      return Status(StatusCode::kDeadlineExceeded, "a newer Sync took over");
    worker->second.last_seen_ms = clock_.now_ms();
    const LeaseTable::Heartbeat heartbeat = leases_.heartbeat(worker->second.owner, held, clock_.now_ms());
    for (const LeaseTable::Held& h : heartbeat.revoked) {
      v1::Ack* revoked = reply->add_revoked();
      revoked->set_trial_id(h.trial_id);
      revoked->set_attempt(h.attempt);
    }
    // Leases whose reply got lost are delivered again. Only before this call leases more itself, and not to a
    // worker that still has results to send: those may be the missing ones.
    int redelivered = 0;
    if (first && request.results_size() < kMaxResultsPerSync) {
      for (const std::string& id : heartbeat.missing) {
        if (const auto spec = specs_.find(id); spec != specs_.end()) {
          *reply->add_leases() = spec->second;
          ++redelivered;
        }
      }
    }
    first = false;
    if (cancelled()) break;  // nobody would hear of new leases
    if (stopping_) {
      // A worker outlives its daemon: it keeps its work and tries again. But what was stored is acknowledged.
      if (reply->acks_size() == 0) return unavailable(stop_reason_);
      break;
    }
    lease_locked(lock, request.session(), held_ids, request.free_slots() - redelivered, reply);
    if (reply->acks_size() + reply->leases_size() + reply->revoked_size() > 0) break;
    const int64_t left = deadline - clock_.now_ms();
    if (left <= 0) break;
    work_.wait_for(lock, milliseconds(std::min(left, kLookMs)));
  }
  add_best_times_locked(reply);
  for (v1::Lease& lease : *reply->mutable_leases()) lease.set_input_seed(kInputSeed);
  return Status::ok();
}

}  // namespace tuner
