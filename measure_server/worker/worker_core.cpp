#include "measure_server/worker/worker_core.h"

#include <algorithm>
#include <utility>

#include "compiler_core/target.h"

namespace tuner {
namespace {

constexpr int kMaxResults = 64;  // of one Sync
constexpr int kMaxRaces = 16;
constexpr size_t kMaxResultBytes = 1 << 20;  // of one Sync; one result goes however long it is
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
  for (const v1::RaceResult& race : spool_.races()) owed_races_[{race.race_id(), race.attempt()}] = race;
}

void WorkerCore::set_session(std::string session) {
  std::lock_guard lock(mutex_);
  session_ = std::move(session);
}

std::string WorkerCore::session() const {
  std::lock_guard lock(mutex_);
  return session_;
}

v1::SyncRequest WorkerCore::make_request(int wait_ms) {
  std::lock_guard lock(mutex_);
  v1::SyncRequest request;
  request.set_session(session_);
  request.set_wait_ms(wait_ms);
  request.set_unfit(unfit_);
  const int open = static_cast<int>(held_.size());
  const bool takes = !draining_ && !stopped_ && unfit_.empty();
  request.set_free_slots(takes ? std::max(0, options_.slots - open) : 0);
  for (const auto& [k, held] : held_) {
    v1::HeldLease* h = request.add_held();
    h->set_trial_id(k.first);
    h->set_attempt(k.second);
    h->set_fencing(held.lease.fencing());
    // Nothing of it is done here while it is fetched.
    const bool at_work = !held.waits_for_device && !(builds_elsewhere() && held.phase == v1::BUILDING);
    h->set_phase(at_work ? held.phase : v1::WAITING);
    h->set_awaits_build(builds_elsewhere() && !held.answered);
    if (held.course) *h->mutable_race() = *held.course;
  }
  told_phases_ = phases_;
  for (auto& [k, returned] : returned_) {
    *request.add_returned() = returned.lease;
    returned.told = true;
  }
  size_t bytes = 0;
  const auto fits = [&](const auto& message) {
    const size_t before = bytes;
    bytes += message.ByteSizeLong();
    return before == 0 || bytes <= kMaxResultBytes;
  };
  for (const auto& [k, record] : owed_) {
    if (request.results_size() == kMaxResults || !fits(record)) break;
    *request.add_results() = record;
  }
  for (const auto& [k, result] : owed_races_) {
    if (request.races_size() == kMaxRaces || !fits(result)) break;
    *request.add_races() = result;
  }
  return request;
}

bool WorkerCore::phases_told() const {
  std::lock_guard lock(mutex_);
  return told_phases_ == phases_;
}

void WorkerCore::take_acks_locked(const v1::SyncReply& reply) {
  for (const v1::Ack& ack : reply.acks()) {
    owed_.erase({ack.trial_id(), ack.attempt()});
    owed_races_.erase({ack.trial_id(), ack.attempt()});
  }
  if (spooling_ > 0 || reply.acks_size() == 0) return;
  const bool nothing_owed = owed_.empty() && owed_races_.empty();
  // A failure costs a message sent twice after a restart.
  if (nothing_owed || spool_.bytes() > kCompactAboveBytes) (void)keep_owed_locked();
}

// Makes the spool hold what is owed, and nothing else.
Status WorkerCore::keep_owed_locked() {
  std::vector<v1::MeasureRecord> records;
  std::vector<v1::RaceResult> races;
  for (const auto& [k, record] : owed_) records.push_back(record);
  for (const auto& [k, race] : owed_races_) races.push_back(race);
  RETURN_IF_ERROR(spool_.keep_only(records, races));
  unspooled_ = false;
  return Status::ok();
}

void WorkerCore::apply(const v1::SyncReply& reply) {
  if (builds_elsewhere())
    for (const v1::LeaseBuilt& built : reply.built()) options_.take_built(built);
  std::vector<std::string> revoked_runs;
  {
    std::lock_guard lock(mutex_);
    take_acks_locked(reply);
    // Should this be a late reply to an older request, the daemon delivers these leases again.
    std::erase_if(returned_, [](const auto& entry) { return entry.second.told; });
    for (const v1::BestTime& best : reply.best())
      best_ns_[{best.workload_key(), best.target()}] = best.best_ns();
    for (const v1::Ack& revoked : reply.revoked()) {
      const auto it = held_.find({revoked.trial_id(), revoked.attempt()});
      if (it == held_.end()) continue;
      if (it->second.phase == v1::RUNNING) revoked_runs.push_back(revoked.trial_id());
      held_.erase(it);
    }
    // Who leaves and cannot work holds nothing that would keep it here.
    const bool takes = !stopped_ && !(draining_ && !unfit_.empty());
    for (const v1::Lease& lease : reply.leases()) {
      if (!takes || owed_.contains(key(lease)) || owed_races_.contains(key(lease)) ||
          held_.contains(key(lease)))
        continue;
      // An older attempt of the same trial is not ours any more.
      std::erase_if(held_, [&](const auto& entry) {
        return entry.first.first == lease.trial_id() && entry.second.phase == v1::WAITING;
      });
      held_[key(lease)] = Held{.lease = lease, .since_ms = options_.now_ms(), .order = order_++};
    }
    for (const v1::LeaseBuilt& built : reply.built())
      if (const auto it = held_.find({built.trial_id(), built.attempt()}); it != held_.end())
        it->second.answered = true;
    if (reply.drain()) draining_ = true;
    if (draining_ && builds_elsewhere()) return_waiting_locked(/*only_unanswered=*/true);
  }
  changed_.notify_all();
  if (revoked_run_)
    for (const std::string& trial : revoked_runs) revoked_run_(trial);
}

WorkerCore::Held* WorkerCore::next_locked(bool built, bool on_device_only) {
  Held* next = nullptr;
  for (auto& [k, held] : held_)
    if (held.phase == v1::WAITING && !held.ran && held.built == built &&
        (built || held.answered || !builds_elsewhere()) && (!on_device_only || on_device(held.lease)) &&
        (next == nullptr || held.order < next->order))
      next = &held;
  return next;
}

bool WorkerCore::builds_many_locked() const {
  const auto building = [](const auto& entry) { return entry.second.phase == v1::BUILDING; };
  return std::ranges::count_if(held_, building) > 1;
}

bool WorkerCore::uses_every_core(const v1::Lease& lease) const {
  return threads_of(lease.target()) >= options_.cpus;
}

std::optional<v1::Lease> WorkerCore::next_to_build(Builds builds) {
  const bool instead = builds == Builds::kInsteadOfRuns, for_device = builds == Builds::kForDevice;
  std::unique_lock lock(mutex_);
  if (instead && std::exchange(building_instead_, false)) changed_.notify_all();
  Held* next = nullptr;
  changed_.wait(lock, [&] {
    if (stopped_) return true;
    if (!unfit_.empty()) return false;
    for (const auto& [k, held] : held_) {
      const bool on_cpu = for_device && !on_device(held.lease);
      if (held.phase == v1::RUNNING && (instead || on_cpu || uses_every_core(held.lease))) return false;
      if (on_cpu && held.phase == v1::WAITING && held.built && !held.ran) return false;
    }
    if (instead && next_locked(/*built=*/true) != nullptr) return false;
    next = next_locked(/*built=*/false, /*on_device_only=*/for_device);
    return next != nullptr;
  });
  if (stopped_) return std::nullopt;
  next->phase = v1::BUILDING;
  if (!builds_elsewhere()) ++phases_;
  if (instead) building_instead_ = true;
  v1::Lease lease = next->lease;
  lock.unlock();
  tell_phase();
  return lease;
}

bool WorkerCore::begin_many_threads() {
  std::lock_guard lock(mutex_);
  for (const auto& [k, held] : held_) {
    const bool is_ready = held.phase == v1::WAITING && held.built && !held.ran;
    if (!on_device(held.lease) && (held.phase == v1::RUNNING || is_ready)) return false;
  }
  ++many_threads_;
  return true;
}

void WorkerCore::end_many_threads() {
  {
    std::lock_guard lock(mutex_);
    --many_threads_;
  }
  changed_.notify_all();
}

bool WorkerCore::built(const v1::Lease& lease, const BuiltCandidate& candidate) {
  std::lock_guard lock(mutex_);
  const auto it = held_.find(key(lease));
  if (it == held_.end()) return false;
  it->second.phase = v1::WAITING;
  it->second.built = true;
  it->second.candidate = candidate;
  changed_.notify_all();
  return true;
}

void WorkerCore::await_again(const v1::Lease& lease) {
  {
    std::lock_guard lock(mutex_);
    const auto it = held_.find(key(lease));
    if (it == held_.end()) return;
    it->second.phase = v1::WAITING;
    it->second.answered = it->second.built = false;
    if (draining_) return_waiting_locked(/*only_unanswered=*/true);
  }
  changed_.notify_all();
  if (news_) news_();
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
    if (building_instead_ || !unfit_.empty()) return false;
    next = next_locked(/*built=*/true);
    if (next == nullptr || (many_threads_ > 0 && !on_device(next->lease))) return false;
    if (options_.on_device && !builds_elsewhere() && !on_device(next->lease) && builds_many_locked())
      return false;
    if (!uses_every_core(next->lease)) return true;
    for (const auto& [k, held] : held_)
      if (held.phase == v1::BUILDING) return false;
    return true;
  });
  if (stopped_) return std::nullopt;
  next->phase = v1::RUNNING;
  ++phases_;
  Built built{{next->candidate}, next->lease, best_locked(next->lease)};
  lock.unlock();
  tell_phase();
  return built;
}

void WorkerCore::wait_for_device(const v1::Lease& lease, bool waits) {
  {
    std::lock_guard lock(mutex_);
    const auto it = held_.find(key(lease));
    if (it == held_.end() || it->second.waits_for_device == waits) return;
    it->second.waits_for_device = waits;
    ++phases_;
  }
  tell_phase();
}

void WorkerCore::ran(const v1::Lease& lease) {
  {
    std::lock_guard lock(mutex_);
    const auto it = held_.find(key(lease));
    if (it == held_.end()) return;
    it->second.phase = v1::WAITING;
    it->second.ran = true;
  }
  changed_.notify_all();
}

Status WorkerCore::spool(const std::function<Status()>& append, const std::function<void()>& owe_locked) {
  {
    std::lock_guard lock(mutex_);
    ++spooling_;
  }
  const Status spooled = append();
  {
    std::lock_guard lock(mutex_);
    --spooling_;
    if (!spooled.is_ok()) unspooled_ = true;
    owe_locked();
  }
  changed_.notify_all();
  if (news_) news_();
  return spooled;
}

Status WorkerCore::finish(const std::vector<Finished>& results) {
  std::vector<const v1::MeasureRecord*> records;
  records.reserve(results.size());
  for (const Finished& f : results) records.push_back(&f.record);
  return spool([&] { return spool_.append(records); },
               [&] {
                 for (const Finished& f : results) {
                   held_.erase(key(f.lease));
                   owed_[key(f.lease)] = f.record;
                 }
               });
}

Status WorkerCore::finish_race(const v1::Lease& lease, const v1::RaceResult& result) {
  return spool([&] { return spool_.append(result); },
               [&] {
                 held_.erase(key(lease));
                 owed_races_[key(lease)] = result;
               });
}

v1::HeldLease& WorkerCore::return_locked(const Held& held) {
  v1::HeldLease& returned = returned_[key(held.lease)].lease;
  returned.set_trial_id(held.lease.trial_id());
  returned.set_attempt(held.lease.attempt());
  returned.set_fencing(held.lease.fencing());
  returned.set_phase(v1::WAITING);
  return returned;
}

// Gives back all that is not being built or run, or of that only what awaits its build elsewhere. Returns
// whether there was any.
bool WorkerCore::return_waiting_locked(bool only_unanswered) {
  return std::erase_if(held_, [&](const auto& entry) {
           if (entry.second.phase != v1::WAITING || entry.second.ran) return false;
           if (only_unanswered && entry.second.answered) return false;
           return_locked(entry.second);
           return true;
         }) > 0;
}

void WorkerCore::set_unfit(const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    const bool news = unfit_ != why;
    unfit_ = why;
    if (!return_waiting_locked() && !news) return;
  }
  changed_.notify_all();
  if (news_) news_();
}

void WorkerCore::set_fit() {
  {
    std::lock_guard lock(mutex_);
    unfit_.clear();
  }
  changed_.notify_all();
  if (news_) news_();
}

void WorkerCore::give_back(const v1::Lease& lease, const std::optional<v1::TemplateVersion>& found) {
  {
    std::lock_guard lock(mutex_);
    const auto it = held_.find(key(lease));
    if (it == held_.end()) return;
    v1::HeldLease& returned = return_locked(it->second);
    if (found) *returned.mutable_found() = *found;
    held_.erase(it);
  }
  changed_.notify_all();
  if (news_) news_();
}

Status WorkerCore::spool_again() {
  std::lock_guard lock(mutex_);
  if (!unspooled_) return Status::ok();
  if (spooling_ > 0) return unavailable("the spool is in use");
  return keep_owed_locked();
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

bool WorkerCore::holds(const v1::Lease& lease) const {
  std::lock_guard lock(mutex_);
  return held_.contains(key(lease));
}

void WorkerCore::drain() {
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
    if (!unfit_.empty() || builds_elsewhere()) return_waiting_locked(/*only_unanswered=*/unfit_.empty());
  }
  if (news_) news_();
}

bool WorkerCore::draining() const {
  std::lock_guard lock(mutex_);
  return draining_;
}

bool WorkerCore::idle() const {
  std::lock_guard lock(mutex_);
  return held_.empty() && owed_.empty() && owed_races_.empty() && returned_.empty();
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
