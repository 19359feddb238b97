#include "measure_server/worker/worker_core.h"

#include <algorithm>
#include <utility>

#include "compiler_core/target.h"

namespace tuner {
namespace {

constexpr int kMaxResults = 64;  // of one Sync
constexpr int kMaxRaces = 16;
constexpr int64_t kCompactAboveBytes = 4 << 20;

int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int threads_of(const std::string& target) {
  const Result<Target> parsed = parse_target(target);
  return parsed.is_ok() ? parsed->threads : 1;
}

WorkerCore::WorkerCore(Options options, Spool& spool)
    : options_([&] {
        if (options.now_ms == nullptr) options.now_ms = steady_ms;
        return options;
      }()),
      spool_(spool) {
  for (const v1::MeasureRecord& record : spool_.records())
    owed_[{record.trial_id(), record.attempt()}] = record;
}

void WorkerCore::set_session(std::string session) {
  std::lock_guard lock(mutex_);
  session_ = std::move(session);
}

std::string WorkerCore::session() const {
  std::lock_guard lock(mutex_);
  return session_;
}

v1::SyncRequest WorkerCore::make_request(int wait_ms) const {
  std::lock_guard lock(mutex_);
  v1::SyncRequest request;
  request.set_session(session_);
  request.set_wait_ms(wait_ms);
  const int open = static_cast<int>(held_.size());
  request.set_free_slots(draining_ || stopped_ ? 0 : std::max(0, options_.slots - open));
  for (const auto& [k, held] : held_) {
    v1::HeldLease* h = request.add_held();
    h->set_trial_id(k.first);
    h->set_attempt(k.second);
    h->set_fencing(held.lease.fencing());
    h->set_phase(held.phase);
    if (held.course) *h->mutable_race() = *held.course;
  }
  for (const auto& [k, record] : owed_) {
    if (request.results_size() == kMaxResults) break;
    *request.add_results() = record;
  }
  for (const auto& [k, result] : owed_races_) {
    if (request.races_size() == kMaxRaces) break;
    *request.add_races() = result;
  }
  return request;
}

void WorkerCore::apply(const v1::SyncReply& reply) {
  std::vector<std::string> revoked_runs;
  {
    std::lock_guard lock(mutex_);
    for (const v1::Ack& ack : reply.acks()) {
      owed_.erase({ack.trial_id(), ack.attempt()});
      owed_races_.erase({ack.trial_id(), ack.attempt()});
    }
    if (spooling_ == 0 && reply.acks_size() > 0) {
      std::vector<v1::MeasureRecord> still_owed;
      if (!owed_.empty() && spool_.bytes() > kCompactAboveBytes)
        for (const auto& [k, record] : owed_) still_owed.push_back(record);
      if (owed_.empty() || !still_owed.empty()) spool_.keep_only(still_owed);
    }
    for (const v1::BestTime& best : reply.best())
      best_ns_[{best.workload_key(), best.target()}] = best.best_ns();
    for (const v1::Ack& revoked : reply.revoked()) {
      const auto it = held_.find({revoked.trial_id(), revoked.attempt()});
      if (it == held_.end()) continue;
      if (it->second.phase == v1::RUNNING) revoked_runs.push_back(revoked.trial_id());
      held_.erase(it);
    }
    for (const v1::Lease& lease : reply.leases()) {
      if (stopped_ || owed_.contains(key(lease)) || owed_races_.contains(key(lease)) ||
          held_.contains(key(lease)))
        continue;
      // An older attempt of the same trial is not ours any more.
      std::erase_if(held_, [&](const auto& entry) {
        return entry.first.first == lease.trial_id() && entry.second.phase == v1::WAITING;
      });
      held_[key(lease)] = Held{.lease = lease, .since_ms = options_.now_ms(), .order = order_++};
    }
    if (reply.drain()) draining_ = true;
  }
  changed_.notify_all();
  if (revoked_run_)
    for (const std::string& trial : revoked_runs) revoked_run_(trial);
}

WorkerCore::Held* WorkerCore::next_locked(bool built) {
  Held* next = nullptr;
  for (auto& [k, held] : held_)
    if (held.phase == v1::WAITING && held.built == built && (next == nullptr || held.order < next->order))
      next = &held;
  return next;
}

bool WorkerCore::uses_every_core(const v1::Lease& lease) const {
  return threads_of(lease.target()) >= options_.cpus;
}

std::optional<v1::Lease> WorkerCore::next_to_build(Builds builds) {
  const bool instead = builds == Builds::kInsteadOfRuns;
  std::unique_lock lock(mutex_);
  if (instead && std::exchange(building_instead_, false)) changed_.notify_all();
  Held* next = nullptr;
  changed_.wait(lock, [&] {
    if (stopped_) return true;
    for (const auto& [k, held] : held_)
      if (held.phase == v1::RUNNING && (instead || uses_every_core(held.lease))) return false;
    if (instead && next_locked(/*built=*/true) != nullptr) return false;
    next = next_locked(/*built=*/false);
    return next != nullptr;
  });
  if (stopped_) return std::nullopt;
  next->phase = v1::BUILDING;
  if (instead) building_instead_ = true;
  return next->lease;
}

bool WorkerCore::built(const v1::Lease& lease, const std::string& digest, double build_ms, double queue_ms) {
  std::lock_guard lock(mutex_);
  const auto it = held_.find(key(lease));
  if (it == held_.end()) return false;
  it->second.phase = v1::WAITING;
  it->second.built = true;
  it->second.digest = digest;
  it->second.build_ms = build_ms;
  it->second.queue_ms = queue_ms;
  changed_.notify_all();
  return true;
}

double WorkerCore::best_locked(const v1::Lease& lease) const {
  const auto it = best_ns_.find({lease.workload_key(), lease.target()});
  const double news = it == best_ns_.end() ? 0 : it->second;
  if (news <= 0) return lease.best_ns();
  return lease.best_ns() <= 0 ? news : std::min(news, lease.best_ns());
}

std::optional<WorkerCore::Built> WorkerCore::next_to_run() {
  std::unique_lock lock(mutex_);
  Held* next = nullptr;
  changed_.wait(lock, [&] {
    if (stopped_) return true;
    if (building_instead_) return false;
    next = next_locked(/*built=*/true);
    if (next == nullptr) return false;
    if (!uses_every_core(next->lease)) return true;
    for (const auto& [k, held] : held_)
      if (held.phase == v1::BUILDING) return false;
    return true;
  });
  if (stopped_) return std::nullopt;
  next->phase = v1::RUNNING;
  return Built{next->lease, next->digest, next->build_ms, next->queue_ms, best_locked(next->lease)};
}

Status WorkerCore::finish(const v1::Lease& lease, const v1::MeasureRecord& record) {
  // On disk before anybody is told, outside the lock: an fsync may take long. Meanwhile the spool may not be
  // cleared.
  {
    std::lock_guard lock(mutex_);
    ++spooling_;
  }
  const Status spooled = spool_.append(record);
  {
    std::lock_guard lock(mutex_);
    --spooling_;
    if (!spooled.is_ok()) return spooled;
    held_.erase(key(lease));
    owed_[key(lease)] = record;
  }
  changed_.notify_all();
  if (news_) news_();
  return Status::ok();
}

void WorkerCore::tell_course(const v1::Lease& lease, const v1::RaceCourse& course) {
  {
    std::lock_guard lock(mutex_);
    const auto it = held_.find(key(lease));
    if (it == held_.end()) return;
    it->second.course = course;
  }
  if (news_) news_();
}

void WorkerCore::finish_race(const v1::Lease& lease, const v1::RaceResult& result) {
  {
    std::lock_guard lock(mutex_);
    held_.erase(key(lease));
    owed_races_[key(lease)] = result;
  }
  changed_.notify_all();
  if (news_) news_();
}

bool WorkerCore::holds(const v1::Lease& lease) const {
  std::lock_guard lock(mutex_);
  return held_.contains(key(lease));
}

void WorkerCore::drain() {
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
  }
  if (news_) news_();
}

bool WorkerCore::draining() const {
  std::lock_guard lock(mutex_);
  return draining_;
}

bool WorkerCore::idle() const {
  std::lock_guard lock(mutex_);
  return held_.empty() && owed_.empty() && owed_races_.empty();
}

void WorkerCore::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

int64_t WorkerCore::held_since_ms(const v1::Lease& lease) const {
  std::lock_guard lock(mutex_);
  const auto it = held_.find(key(lease));
  return it == held_.end() ? options_.now_ms() : it->second.since_ms;
}

}  // namespace tuner
