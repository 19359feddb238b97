// What workers ask of the coordinator: Register and Sync.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "compiler_core/base/clock.h"
#include "proto/convert.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/messages.h"

namespace tuner {
namespace {

constexpr int64_t kLookMs = 250;  // how often a waiting Sync looks whether its worker has gone

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

void add_ack(v1::SyncReply* reply, const std::string& trial_id, int attempt) {
  v1::Ack* ack = reply->add_acks();
  ack->set_trial_id(trial_id);
  ack->set_attempt(attempt);
}

}  // namespace

Status Coordinator::register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) {
  ASSIGN_OR_RETURN(Workers::Offer offer, from_proto(request));
  std::vector<LeaseTable::Loss> losses;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return stopped_locked();
    const std::string session = random_session();
    for (const WorkerLife& ended : workers_.enter(session, std::move(offer), clock_.now_ms()))
      for (LeaseTable::Loss& loss : leases_.worker_lost(ended)) losses.push_back(std::move(loss));
    reply->set_session(session);
    reply->set_lease_ttl_ms(options_.leases.ttl_ms);
  }
  work_.notify_all();
  spdlog::info("worker {} is here, from {}", request.worker_id(), request.environment().host());
  handle_losses(losses);
  return Status::ok();
}

// Stores the results, then tells the searches. Fills acks; what could not be stored stays unacknowledged and
// comes again.
Status Coordinator::accept_results(const v1::SyncRequest& request, v1::SyncReply* reply) {
  std::vector<MeasureRecord> records;
  std::vector<double> check_ms;
  std::vector<const v1::MeasureRecord*> refused;
  for (int i = 0; i < request.results_size(); ++i) {
    const v1::MeasureRecord& message = request.results(i);
    Result<MeasureRecord> record = from_proto(message, str("results[", i, "]"));
    if (record) {
      records.push_back(*std::move(record));
      check_ms.push_back(message.check_ms());
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
  for (size_t i = 0; i < records.size(); ++i) {
    if (!stored[i]) continue;
    add_ack(reply, records[i].trial_id, records[i].attempt);
    if (known[i]) close_locked(records[i], check_ms[i], store_ms, request.session());
  }
  for (const v1::MeasureRecord* message : refused) {
    add_ack(reply, message->trial_id(), message->attempt());
    leases_.drop(message->trial_id());
  }
  wake_search_locked();
  work_.notify_all();
  news_.notify_all();
  return Status::ok();
}

void Coordinator::close_locked(const MeasureRecord& record, double check_ms, double store_ms,
                               const std::string& session) {
  const std::string& id = record.trial_id;
  workers_.count_trial(session);
  if (reruns_.find(id) != nullptr) {
    if (reruns_.take(record)) leases_.close(id);
    return;
  }
  const std::optional<std::string> job_id = leases_.close(id);
  const std::shared_ptr<Job> job = job_id ? jobs_.find(*job_id) : nullptr;
  if (job == nullptr) return;
  job->results_came();
  job->count_costs(record, check_ms, store_ms);
}

// Stores results of races, then tells the searches. What cannot be stored stays unacknowledged and comes
// again.
Status Coordinator::accept_races(const v1::SyncRequest& request, v1::SyncReply* reply) {
  for (const v1::RaceResult& result : request.races())
    if (accept_race(result)) add_ack(reply, result.race_id(), result.attempt());
  search_.notify_all();
  news_.notify_all();
  return Status::ok();
}

// False: the disk refuses it. The result of a race that nobody knows, or that has ended, is done with.
bool Coordinator::accept_race(const v1::RaceResult& message) {
  const std::string& id = message.race_id();
  RaceRow row;
  bool of_job = false;
  {
    const std::lock_guard lock(mutex_);
    const Races::Race* const race = races_.under_way(id);
    if (race == nullptr) return true;
    of_job = !race->job_id.empty();
    row.job_id = race->job_id;
    row.task_index = race->task_index;
  }
  std::string error = message.error();
  if (error.empty()) {
    Result<RaceRow> result = from_proto(message, "race");
    if (result) {
      result->job_id = row.job_id;
      result->task_index = row.task_index;
      result->finished_at_us = wall_time_us();
      row = *std::move(result);
    } else {
      spdlog::error("a race's result is refused: {}", result.message());
      error = result.message();
    }
  }
  if (error.empty() && of_job) {
    const Status stored = store_.add_race(row);
    if (!stored && stored.code() != StatusCode::kInvalidArgument && stored.code() != StatusCode::kNotFound) {
      spdlog::error("{} is not stored: {}", id, stored.message());
      return false;
    }
    if (!stored) error = stored.message();
  }
  const std::lock_guard lock(mutex_);
  if (races_.under_way(id) == nullptr) return true;
  leases_.close(id);
  if (error.empty())
    races_.won(id, row);
  else
    races_.failed(id, error);
  search_woken_ = true;
  return true;
}

// How far the races are that this worker runs.
void Coordinator::take_courses_locked(const v1::SyncRequest& request) {
  for (const v1::HeldLease& held : request.held()) {
    if (!held.has_race() || !races_.take_course(held.trial_id(), from_proto(held.race()))) continue;
    if (const std::shared_ptr<Job> job = jobs_.find(races_.find(held.trial_id())->job_id)) job->note_race();
    news_.notify_all();
  }
}

// The leases of these trials as the store has written them, in one commit; none when it cannot.
std::map<std::string, TrialRow> Coordinator::store_leases(const std::vector<std::string>& ids,
                                                          const std::string& worker_id, double* store_ms) {
  std::map<std::string, TrialRow> stored;
  const Stopwatch storing;
  Result<std::vector<TrialRow>> rows = store_.lease_trials(ids, worker_id);
  *store_ms = storing.elapsed_ms() / static_cast<double>(rows ? std::max<size_t>(rows->size(), 1) : 1);
  if (!rows) {
    spdlog::error("{} trials cannot be leased: {}", ids.size(), rows.message());
    return stored;
  }
  for (TrialRow& row : *rows) {
    std::string id = row.id;
    stored.emplace(std::move(id), std::move(row));
  }
  return stored;
}

// Leases up to `slots` queued trials to the session's worker. Unlocks while the store writes.
void Coordinator::lease_locked(std::unique_lock<std::mutex>& lock, const std::string& session,
                               const std::set<std::string>& held, int slots, v1::SyncReply* reply) {
  const WorkerLife* const known = workers_.life(session);
  if (known == nullptr || slots <= 0) return;
  const WorkerLife worker = *known;
  const auto serves = [&](const Work& work) { return workers_.serves(session, work.kind, work.task.target); };
  const std::vector<LeaseTable::Trial> reserved = leases_.reserve(serves, held, static_cast<size_t>(slots));
  std::vector<std::string> ids;  // reruns and races are no open trials of the store
  for (const LeaseTable::Trial& trial : reserved)
    if (trial.work.kind == WorkKind::kTrial) ids.push_back(trial.id);
  std::map<std::string, TrialRow> stored;
  if (!ids.empty()) {
    double store_ms = 0;
    lock.unlock();
    stored = store_leases(ids, worker.worker_id, &store_ms);
    lock.lock();
    for (const auto& [id, row] : stored)
      if (const std::shared_ptr<Job> job = jobs_.find(row.job_id)) job->count_lease(store_ms);
  }
  for (const LeaseTable::Trial& trial : reserved) {
    int attempt = trial.attempt + 1;
    int64_t fencing = trial.fencing + 1;
    if (trial.work.kind == WorkKind::kTrial) {
      const auto row = stored.find(trial.id);
      if (row == stored.end()) {
        // Closed meanwhile, and close() has forgotten it or will; or the disk: try again later.
        leases_.release(trial.id);
        continue;
      }
      attempt = row->second.attempt;
      fencing = row->second.fencing;
    }
    if (!leases_.grant(trial.id, worker, attempt, fencing, clock_.now_ms())) continue;
    if (trial.work.kind == WorkKind::kRace) races_.leased(trial.id, clock_.now_ms());
    to_proto(*leases_.find(trial.id), reply->add_leases());
  }
}

// The best times known of open tasks, beside the leases that are cut by them.
void Coordinator::add_best_times_locked(v1::SyncReply* reply) const {
  for (const auto& [id, job] : jobs_.all()) {
    for (const auto& [task_index, best_ns] : job->best_ns()) {
      const JobRow::Task& task = job->row().tasks[static_cast<size_t>(task_index)];
      v1::BestTime* best = reply->add_best();
      best->set_workload_key(task.workload_key);
      best->set_target(task.target);
      best->set_best_ns(best_ns);
      for (v1::Lease& lease : *reply->mutable_leases()) {
        const LeaseTable::Trial* const trial = leases_.find(lease.trial_id());
        if (trial != nullptr && trial->work.kind == WorkKind::kTrial &&
            trial->work.task_index == task_index && trial->work.task.workload_key == task.workload_key &&
            trial->work.task.target == task.target)
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
  const std::string& session = request.session();
  std::optional<uint64_t> call;
  {
    const std::lock_guard lock(mutex_);
    call = workers_.begin_sync(session, request.free_slots() + request.held_size(), clock_.now_ms());
    if (!call) return unknown;
    take_courses_locked(request);
  }
  work_.notify_all();  // an older Sync of this worker that still waits gives up
  if (request.results_size() > 0) RETURN_IF_ERROR(accept_results(request, reply));
  if (request.races_size() > 0) RETURN_IF_ERROR(accept_races(request, reply));

  const std::vector<LeaseTable::Held> held = held_of(request);
  std::set<std::string> held_ids;
  for (const LeaseTable::Held& h : held) held_ids.insert(h.trial_id);
  std::unique_lock lock(mutex_);
  const int64_t deadline = clock_.now_ms() + std::clamp<int64_t>(request.wait_ms(), 0, options_.max_wait_ms);
  for (bool first = true;; first = false) {
    const Workers::Call now = workers_.check(session, *call, clock_.now_ms());
    if (now == Workers::Call::kUnknown) return unknown;
    if (now == Workers::Call::kOvertaken)
      return Status(StatusCode::kDeadlineExceeded, "a newer Sync took over");
    const LeaseTable::Heartbeat heartbeat = leases_.heartbeat(*workers_.life(session), held, clock_.now_ms());
    for (const LeaseTable::Held& h : heartbeat.revoked) {
      v1::Ack* revoked = reply->add_revoked();
      revoked->set_trial_id(h.trial_id);
      revoked->set_attempt(h.attempt);
    }
    // Leases whose reply got lost are delivered again. Only before this call leases more itself, and not to a
    // worker that still has results to send: those may be the missing ones.
    int redelivered = 0;
    if (first && request.results_size() < kMaxResultsPerSync) {
      for (const std::string& id : heartbeat.missing) to_proto(*leases_.find(id), reply->add_leases());
      redelivered = static_cast<int>(heartbeat.missing.size());
    }
    if (cancelled()) break;  // nobody would hear of new leases
    if (stopping_) {
      // A worker outlives its daemon: it keeps its work and tries again. But what was stored is acknowledged.
      if (reply->acks_size() == 0) return stopped_locked();
      break;
    }
    lease_locked(lock, session, held_ids, request.free_slots() - redelivered, reply);
    if (reply->acks_size() + reply->leases_size() + reply->revoked_size() > 0) break;
    const int64_t left = deadline - clock_.now_ms();
    if (left <= 0) break;
    work_.wait_for(lock, std::chrono::milliseconds(std::min(left, kLookMs)));
  }
  add_best_times_locked(reply);
  return Status::ok();
}

}  // namespace tuner
