#include "tuner/daemon/tables/lease_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler_core/base/measure_limits.h"
#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr size_t kRememberClosed = 65'536;
constexpr int kInnocentLosses = 10;      // of these one counts as a fault
constexpr double kTableSlackMs = 1'000;  // this table's time is that of its latest call which tells it
constexpr int64_t kDrainMs = 30'000;  // for so long one worker becomes idle for a suspect; then another may

std::string joined(const std::set<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

// --- the queue ---

void LeaseTable::put_in_queue(Entry& entry, bool first) {
  const Trial& trial = entry.trial;
  entry.state = State::kQueued;
  entry.alone = false;
  queue_.put({.id = trial.id,
              .needs = needs_of(trial.work),
              .tenant = trial.tenant,
              .job_id = trial.job_id,
              .priority = trial.priority,
              .urgent = !trial.in_store(),
              .first = first,
              .queued_ms = last_expire_ms_.value_or(0)});
  shares_.wants(trial.tenant, now_ms_);
  if (trial.suspect) suspects_.insert(trial.id);
}

void LeaseTable::take_from_queue(const Entry& entry) {
  if (entry.state != State::kQueued) return;
  queue_.take(entry.trial.id);
  suspects_.erase(entry.trial.id);
}

void LeaseTable::reserve(Entry& entry, std::vector<Trial>& reserved) {
  take_from_queue(entry);
  entry.state = State::kReserved;
  entry.charged_ms = shares_.charge(entry.trial.tenant);
  reserved.push_back(entry.trial);
}

// A worker's word counts up to the time for which it had the lease.
void LeaseTable::settle(Entry& entry, std::optional<double> device_ms) {
  if (entry.charged_ms < 0) return;
  const double at_work = entry.at_work ? static_cast<double>(now_ms_ - entry.at_work_ms) : 0;
  const double most = static_cast<double>(now_ms_ - entry.granted_ms) + kTableSlackMs;
  shares_.settle(entry.trial.tenant, std::exchange(entry.charged_ms, -1),
                 device_ms ? std::clamp(*device_ms, 0.0, most) : at_work);
}

void LeaseTable::take_from_owner(Entry& entry) {
  if (const auto kept = unclaimed_.find(entry.kept_for); kept != unclaimed_.end()) {
    kept->second.erase(entry.trial.id);
    if (kept->second.empty()) unclaimed_.erase(kept);
  }
  entry.kept_for.clear();
  if (entry.owner) {
    const auto leases = leases_.find(*entry.owner);
    leases->second.erase(entry.trial.id);
    if (leases->second.empty()) leases_.erase(leases);
    if (entry.alone) alone_.erase(*entry.owner);
  }
  entry.owner.reset();
  entry.at_work = entry.running = entry.alone = false;
}

// A lease of before a restart: only the life that was given it may speak for it.
bool LeaseTable::is_kept_for(const Entry& entry, const Owner& owner) const {
  return entry.kept_for == owner.worker_id &&
         was_granted(entry.trial.grants, entry.trial.attempt, owner.worker_id, owner.incarnation);
}

void LeaseTable::remove(Trials::iterator entry) {
  if (entry->second.owner) revoked_.insert(*entry->second.owner);
  settle(entry->second, {});
  take_from_queue(entry->second);
  take_from_owner(entry->second);
  trials_.erase(entry);
}

size_t LeaseTable::leased() const {
  size_t sum = 0;
  for (const auto& [worker, kept] : unclaimed_) sum += kept.size();
  for (const auto& [owner, leased] : leases_) sum += leased.size();
  return sum;
}

int64_t LeaseTable::oldest_queued_ms(int64_t now_ms) const {
  const std::optional<int64_t> oldest = queue_.oldest_queued_ms();
  return oldest ? std::min(now_ms, std::max(*oldest, first_expire_ms_.value_or(now_ms))) : now_ms;
}

LeaseTable::Added LeaseTable::add(Entry entry, bool first) {
  const auto [it, added] = trials_.try_emplace(entry.trial.id);
  if (!added) return Added::kKnownAlready;
  it->second = std::move(entry);
  if (it->second.state == State::kQueued) put_in_queue(it->second, first);
  return Added::kNew;
}

LeaseTable::Added LeaseTable::enqueue(const Trial& trial) {
  if (closed_.contains(trial.id)) return Added::kResultCame;
  return add({.trial = trial}, /*first=*/false);
}

LeaseTable::Added LeaseTable::enqueue_again(const Trial& trial) {
  const Added added = add({.trial = trial}, /*first=*/true);
  if (added == Added::kNew) closed_.erase(trial.id);
  return added;
}

LeaseTable::Added LeaseTable::restore_leased(const Trial& trial, const std::string& worker_id,
                                             int64_t now_ms) {
  if (closed_.contains(trial.id)) return Added::kResultCame;
  const Added added = add({.trial = trial,
                           .state = State::kLeased,
                           .kept_for = worker_id,
                           .expires_ms = now_ms + options_.restart_grace_ms},
                          /*first=*/false);
  if (added == Added::kNew) unclaimed_[worker_id].insert(trial.id);
  return added;
}

std::vector<LeaseTable::Trial> LeaseTable::reserve(const Asker& asker, const std::set<std::string>& held,
                                                   size_t n) {
  std::vector<Trial> reserved;
  if (n == 0 || queue_.size() == 0 || alone_.contains({asker.worker_id, asker.incarnation})) return reserved;
  if (reserve_suspect(asker, held, reserved)) return reserved;
  // The same needs are asked about once.
  std::map<Needs, bool> served;
  const LeaseQueue::Chooser chooser{.serves =
                                        [&](const Needs& needs) {
                                          const auto [it, added] = served.try_emplace(needs, false);
                                          if (added) it->second = asker.serves(needs);
                                          return it->second;
                                        },
                                    .may_have =
                                        [&](const std::string& id) {
                                          const Entry& entry = trials_.at(id);
                                          if (entry.trial.suspect || held.contains(id)) return false;
                                          return !entry.failed_workers.contains(asker.worker_id) ||
                                                 !asker.others(needs_of(entry.trial.work),
                                                               entry.failed_workers);
                                        },
                                    .worker_id = asker.worker_id,
                                    .now_ms = last_expire_ms_.value_or(0)};
  while (reserved.size() < n) {
    const std::optional<std::string> id = queue_.choose(chooser, shares_);
    if (!id) break;
    reserve(trials_.at(*id), reserved);
  }
  return reserved;
}

bool LeaseTable::reserve_suspect(const Asker& asker, const std::set<std::string>& held,
                                 std::vector<Trial>& reserved) {
  const Owner owner{asker.worker_id, asker.incarnation};
  const int64_t now_ms = last_expire_ms_.value_or(0);
  for (const std::string& id : suspects_) {
    Entry& entry = trials_.at(id);
    const Needs needs = needs_of(entry.trial.work);
    if (held.contains(id) || !asker.serves(needs)) continue;
    std::set<std::string> others = entry.failed_workers;
    others.insert(entry.lost_workers.begin(), entry.lost_workers.end());
    if (others.contains(asker.worker_id) && asker.others(needs, others)) continue;
    const bool taken = entry.drains && *entry.drains != owner && now_ms - entry.drains_since_ms < kDrainMs;
    if (taken) continue;
    if (!held.empty() || leases_.contains(owner)) {
      if (!entry.drains || *entry.drains != owner) {
        entry.drains = owner;
        entry.drains_since_ms = now_ms;
      }
      return true;
    }
    entry.drains.reset();
    reserve(entry, reserved);
    entry.alone = true;
    return true;
  }
  return false;
}

bool LeaseTable::grant(const std::string& trial_id, const Owner& owner, int attempt, int64_t fencing,
                       int64_t now_ms) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end()) return false;
  Entry& entry = found->second;
  CHECK(entry.state == State::kReserved)
      << "trial " << trial_id << " is granted without having been reserved";
  CHECK(fencing > entry.trial.fencing) << "trial " << trial_id << ": fencing token " << fencing << " after "
                                       << entry.trial.fencing << "; tokens only grow";
  entry.state = State::kLeased;
  entry.owner = owner;
  entry.at_work = entry.running = false;
  entry.granted_ms = now_ms;
  now_ms_ = std::max(now_ms_, now_ms);
  if (entry.alone) alone_.insert(owner);
  entry.first_granted_ms.emplace(owner, now_ms);
  if (entry.trial.grants.size() >= kMostGrants) entry.trial.grants.erase(entry.trial.grants.begin());
  entry.trial.grants.push_back({attempt, owner.worker_id, owner.incarnation});
  entry.trial.attempt = attempt;
  entry.trial.fencing = fencing;
  entry.expires_ms = now_ms + options_.ttl_ms;
  leases_[owner].insert(trial_id);
  return true;
}

void LeaseTable::release(const std::string& trial_id) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end() || found->second.state != State::kReserved) return;
  settle(found->second, 0);
  put_in_queue(found->second, /*first=*/true);
}

// --- leases ---

void LeaseTable::renew(const std::string& trial_id, const Owner& owner, int64_t now_ms) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end()) return;
  Entry& entry = found->second;
  if (entry.state != State::kLeased || entry.owner != owner) return;
  entry.expires_ms = now_ms + options_.ttl_ms;
  entry.at_work = entry.running = false;
  entry.granted_ms = now_ms;  // its worker is done with it
}

LeaseTable::Heartbeat LeaseTable::heartbeat(const Owner& owner, const std::vector<Held>& held, int64_t now_ms,
                                            bool complete) {
  now_ms_ = std::max(now_ms_, now_ms);
  Heartbeat answer;
  std::set<std::string> named;
  for (const Held& h : held) {
    named.insert(h.trial_id);
    const auto found = trials_.find(h.trial_id);
    if (found == trials_.end()) {
      answer.revoked.push_back(h);
      continue;
    }
    Entry& entry = found->second;
    if (h.fencing <= entry.overdue_fencing) answer.revoked.push_back(h);
    const bool current = entry.state == State::kLeased && entry.trial.fencing == h.fencing;
    if (current && (entry.owner ? *entry.owner == owner : is_kept_for(entry, owner))) {
      if (!entry.owner) {
        take_from_owner(entry);
        entry.owner = owner;
        entry.granted_ms = now_ms;
        leases_[owner].insert(h.trial_id);
      }
      if (h.at_work && !entry.at_work) entry.at_work_ms = now_ms;
      entry.at_work = h.at_work;
      entry.running = h.at_work && h.running;
      entry.expires_ms = now_ms + options_.ttl_ms;
    }
    // An expired lease is not renewed, and not revoked either: its result is welcome for as long as the trial
    // is open.
  }
  if (const auto mine = leases_.find(owner); mine != leases_.end())
    for (const std::string& id : mine->second)
      if (!named.contains(id)) answer.missing.push_back(id);
  if (const auto kept = unclaimed_.find(owner.worker_id); complete && kept != unclaimed_.end())
    for (const std::string& id : kept->second)
      if (!named.contains(id)) trials_.at(id).expires_ms = now_ms;
  return answer;
}

std::vector<std::string> LeaseTable::withdraw(const std::string& job_id, WorkKind kind) {
  std::vector<std::string> withdrawn;
  queue_.for_each([&](const std::string& id) {
    const Trial& trial = trials_.at(id).trial;
    if (trial.job_id == job_id && trial.work.kind == kind) withdrawn.push_back(id);
  });
  for (const std::string& id : withdrawn) remove(trials_.find(id));
  std::ranges::sort(withdrawn);
  return withdrawn;
}

void LeaseTable::remember_closed(const std::string& trial_id) {
  if (!closed_.insert(trial_id).second) return;
  closed_order_.push_back(trial_id);
  if (closed_order_.size() <= kRememberClosed) return;
  closed_.erase(closed_order_.front());
  closed_order_.pop_front();
}

std::optional<std::string> LeaseTable::close(const std::string& trial_id, std::optional<double> device_ms) {
  remember_closed(trial_id);
  const auto found = trials_.find(trial_id);
  if (found == trials_.end()) return std::nullopt;
  std::string job_id = found->second.trial.job_id;
  settle(found->second, device_ms);
  remove(found);
  return job_id;
}

// A worker was lost with it.
LeaseTable::Loss LeaseTable::lose_with_worker(Entry& entry, const std::string& why) {
  std::optional<Loss::Death> death;
  if (entry.at_work && entry.owner && !entry.dropped) death = {*entry.owner, entry.running, entry.alone};
  if (entry.at_work || ++entry.innocent_losses % kInnocentLosses == 0) {
    ++entry.faults;
    if (entry.owner) entry.lost_workers.insert(entry.owner->worker_id);
    entry.trial.suspect = true;
  }
  Loss loss = lose(entry, why);
  loss.death = std::move(death);
  return loss;
}

LeaseTable::Loss LeaseTable::lose(Entry& entry, const std::string& why) {
  settle(entry, {});
  take_from_queue(entry);
  take_from_owner(entry);
  entry.state = State::kLost;
  Loss loss{entry.trial.id, entry.trial.attempt, true, {}};
  if (entry.faults >= options_.max_faults && entry.lost_workers.size() > 1) {
    loss.retry = false;
    loss.message = str("poison: workers were lost ", entry.faults, " times while they worked at it (",
                       joined(entry.lost_workers), ")");
  } else if (entry.faults >= options_.max_faults) {
    loss.retry = false;
    loss.message = str("given up after ", entry.faults, " faults; the last: ", why);
  } else if (std::ssize(entry.failed_workers) >= options_.max_failed_workers) {
    loss.retry = false;
    loss.message = str("given up: ", entry.failed_workers.size(), " workers could not measure it (",
                       joined(entry.failed_workers), "); the last: ", why);
  } else {
    loss.message = str("trial ", entry.trial.id, " re-queued after attempt ", entry.trial.attempt, ": ", why);
  }
  return loss;
}

// The time of a lease of before a restart begins anew when its worker takes it up.
bool LeaseTable::overdue(const Entry& entry, int64_t now_ms) {
  if (!entry.owner) return false;
  const double longest_ms = 1000 * longest_s(entry.trial.work);
  if (entry.at_work && static_cast<double>(now_ms - entry.at_work_ms) > longest_ms) return true;
  return static_cast<double>(now_ms - entry.granted_ms) > longest_ms + 1000 * kLeaseWaitS;
}

LeaseTable::Loss LeaseTable::lose_overdue(Entry& entry) {
  const std::string worker = entry.owner->worker_id;
  entry.overdue_fencing = entry.trial.fencing;
  revoked_.insert(*entry.owner);
  if (!entry.at_work) return lose(entry, str("worker ", worker, " had it for too long and did not begin"));
  ++entry.faults;
  entry.failed_workers.insert(worker);
  return lose(entry, str("worker ", worker, " was at it for longer than its options allow (",
                         std::llround(longest_s(entry.trial.work)), " s)"));
}

std::vector<LeaseTable::Loss> LeaseTable::expire_of(const std::set<std::string>& leased, bool stalled,
                                                    int64_t now_ms) {
  std::vector<std::pair<Entry*, std::string>> lost;
  std::vector<Entry*> late;
  for (const std::string& id : leased) {
    Entry& entry = trials_.at(id);
    if (entry.dropped) {
      lost.emplace_back(&entry, "its result could not be read");
    } else if (stalled) {
      entry.expires_ms = std::max(entry.expires_ms, now_ms + options_.ttl_ms);
      entry.at_work_ms = entry.granted_ms = now_ms;  // while we stood still no worker could be heard
    } else if (now_ms >= entry.expires_ms) {
      lost.emplace_back(&entry, entry.owner ? str("worker ", entry.owner->worker_id, " was silent for ",
                                                  static_cast<double>(options_.ttl_ms) / 1000, " s")
                                            : str("worker ", entry.kept_for,
                                                  " did not take it up again after the daemon's restart"));
    } else if (overdue(entry, now_ms)) {
      late.push_back(&entry);
    }
  }
  std::vector<Loss> losses;
  for (Entry* const entry : late) losses.push_back(lose_overdue(*entry));
  for (const auto& [entry, why] : lost) {
    if (!std::exchange(entry->dropped, false)) {
      losses.push_back(lose_with_worker(*entry, why));
      continue;
    }
    ++entry->faults;  // nobody died
    if (entry->owner) entry->lost_workers.insert(entry->owner->worker_id);
    losses.push_back(lose(*entry, why));
  }
  return losses;
}

std::vector<LeaseTable::Loss> LeaseTable::expire(int64_t now_ms) {
  const bool stalled = last_expire_ms_ && now_ms - *last_expire_ms_ > options_.ttl_ms / 2;
  last_expire_ms_ = now_ms;
  now_ms_ = std::max(now_ms_, now_ms);
  if (!first_expire_ms_) first_expire_ms_ = now_ms;
  std::set<std::string> kept;
  for (const auto& [worker, ids] : unclaimed_) kept.insert(ids.begin(), ids.end());
  std::vector<Loss> losses = expire_of(kept, stalled, now_ms);
  std::vector<Owner> owners;
  for (const auto& [owner, leased] : leases_) owners.push_back(owner);
  for (const Owner& owner : owners)
    for (Loss& loss : expire_of(leases_.at(owner), stalled, now_ms)) losses.push_back(std::move(loss));
  return losses;
}

std::vector<LeaseTable::Loss> LeaseTable::worker_lost(const Owner& owner) {
  std::vector<Loss> losses;
  const auto mine = leases_.find(owner);
  if (mine == leases_.end()) return losses;
  for (const std::string& id : std::set<std::string>(mine->second)) {
    Entry& entry = trials_.at(id);
    losses.push_back(lose_with_worker(entry, str("worker ", owner.worker_id, " died or was restarted")));
  }
  return losses;
}

std::optional<LeaseTable::Loss> LeaseTable::give_back(const Owner& owner, const Held& held,
                                                      const std::string& why) {
  const auto found = trials_.find(held.trial_id);
  if (found == trials_.end()) return std::nullopt;
  Entry& entry = found->second;
  if (entry.state != State::kLeased || entry.trial.fencing != held.fencing ||
      !(entry.owner ? *entry.owner == owner : is_kept_for(entry, owner)))
    return std::nullopt;
  return lose(entry, str("worker ", owner.worker_id, " gave it back: ", why));
}

std::optional<LeaseTable::Loss> LeaseTable::fault(const std::string& trial_id, const std::string& worker_id,
                                                  const std::string& why) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end() || found->second.state != State::kLeased) return std::nullopt;
  Entry& entry = found->second;
  entry.failed_workers.insert(worker_id);
  ++entry.faults;
  return lose(entry, str("worker ", worker_id, " could not measure it: ", why));
}

void LeaseTable::drop(const std::string& trial_id, const Owner& owner) {
  const auto found = trials_.find(trial_id);
  if (found != trials_.end() && found->second.owner == owner) found->second.dropped = true;
}

std::optional<LeaseTable::Claim> LeaseTable::claim(const std::string& trial_id, int attempt,
                                                   const Owner& life, int64_t now_ms) const {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end()) return std::nullopt;
  const Entry& entry = found->second;
  Claim claim{.granted = was_granted(entry.trial.grants, attempt, life.worker_id, life.incarnation)};
  if (!claim.granted) return claim;
  claim.current = entry.state == State::kLeased && entry.trial.attempt == attempt;
  if (const auto first = entry.first_granted_ms.find(life); first != entry.first_granted_ms.end())
    claim.held_ms = now_ms - first->second;
  return claim;
}

void LeaseTable::requeued(const std::string& trial_id) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end() || found->second.state != State::kLost) return;
  put_in_queue(found->second, /*first=*/true);  // it has waited longest
}

const LeaseTable::Trial* LeaseTable::find(const std::string& trial_id) const {
  const auto found = trials_.find(trial_id);
  return found == trials_.end() ? nullptr : &found->second.trial;
}

const LeaseTable::Owner* LeaseTable::owner(const std::string& trial_id) const {
  const auto found = trials_.find(trial_id);
  return found == trials_.end() || !found->second.owner ? nullptr : &*found->second.owner;
}

void LeaseTable::forget_job(const std::string& job_id) {
  for (auto it = trials_.begin(); it != trials_.end();) {
    const auto next = std::next(it);
    if (it->second.trial.job_id == job_id) remove(it);
    it = next;
  }
}

std::vector<std::string> LeaseTable::find_all(const std::function<bool(const Trial&)>& is) const {
  std::vector<std::string> found;
  for (const auto& [id, entry] : trials_)
    if (is(entry.trial)) found.push_back(id);
  std::ranges::sort(found);
  return found;
}

size_t LeaseTable::leases_of(const Owner& owner) const {
  const auto mine = leases_.find(owner);
  return mine == leases_.end() ? 0 : mine->second.size();
}

}  // namespace tuner
