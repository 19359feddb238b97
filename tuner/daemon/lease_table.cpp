#include "tuner/daemon/lease_table.h"

#include <algorithm>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner {

LeaseTable::Added LeaseTable::enqueue(const Trial& trial) {
  if (closed_.contains(trial.id)) return Added::kResultCame;
  const auto [it, added] = trials_.try_emplace(trial.id, Entry{.trial = trial});
  if (!added) return Added::kKnownAlready;
  queue_.push_back(trial.id);
  return Added::kNew;
}

LeaseTable::Added LeaseTable::enqueue_again(const Trial& trial) {
  if (!trials_.try_emplace(trial.id, Entry{.trial = trial}).second) return Added::kKnownAlready;
  closed_.erase(trial.id);
  queue_.push_front(trial.id);
  return Added::kNew;
}

LeaseTable::Added LeaseTable::restore_leased(const Trial& trial, int64_t now_ms) {
  if (closed_.contains(trial.id)) return Added::kResultCame;
  const Entry entry{
      .trial = trial, .state = State::kLeased, .expires_ms = now_ms + options_.restart_grace_ms};
  return trials_.try_emplace(trial.id, entry).second ? Added::kNew : Added::kKnownAlready;
}

std::vector<LeaseTable::Trial> LeaseTable::reserve(const Serves& serves, const std::set<std::string>& held,
                                                   size_t n) {
  std::vector<Trial> reserved;
  for (auto it = queue_.begin(); it != queue_.end() && reserved.size() < n;) {
    const auto found = trials_.find(*it);
    if (found == trials_.end() || found->second.state != State::kQueued) {
      it = queue_.erase(it);
    } else if (held.contains(*it) || !serves(found->second.trial.work)) {
      ++it;
    } else {
      found->second.state = State::kReserved;
      reserved.push_back(found->second.trial);
      it = queue_.erase(it);
    }
  }
  return reserved;
}

bool LeaseTable::has_work(const Serves& serves, const std::set<std::string>& held) const {
  return std::any_of(queue_.begin(), queue_.end(), [&](const std::string& id) {
    const auto found = trials_.find(id);
    return found != trials_.end() && found->second.state == State::kQueued && !held.contains(id) &&
           serves(found->second.trial.work);
  });
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
  entry.trial.attempt = attempt;
  entry.trial.fencing = fencing;
  entry.expires_ms = now_ms + options_.ttl_ms;
  return true;
}

void LeaseTable::release(const std::string& trial_id) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end() || found->second.state != State::kReserved) return;
  found->second.state = State::kQueued;
  queue_.push_front(trial_id);
}

LeaseTable::Heartbeat LeaseTable::heartbeat(const Owner& owner, const std::vector<Held>& held,
                                            int64_t now_ms) {
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
    const bool current = entry.state == State::kLeased && entry.trial.fencing == h.fencing;
    if (current && (!entry.owner || *entry.owner == owner)) {
      entry.owner = owner;
      entry.expires_ms = now_ms + options_.ttl_ms;
    }
    // An expired lease is not renewed, and not revoked either: its result is welcome for as long as the trial
    // is open.
  }
  for (const auto& [id, entry] : trials_)
    if (entry.state == State::kLeased && entry.owner == owner && !named.contains(id))
      answer.missing.push_back(id);
  return answer;
}

std::vector<std::string> LeaseTable::withdraw(const std::string& job_id) {
  std::vector<std::string> withdrawn;
  std::erase_if(trials_, [&](const auto& item) {  // reserve() skips what is left of them in queue_
    const auto& [id, entry] = item;
    if (entry.trial.job_id != job_id || entry.trial.work.kind != WorkKind::kTrial ||
        entry.state != State::kQueued)
      return false;
    withdrawn.push_back(id);
    return true;
  });
  return withdrawn;
}

std::optional<std::string> LeaseTable::close(const std::string& trial_id) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end()) {
    closed_.emplace(trial_id, "");
    return std::nullopt;
  }
  std::string job_id = std::move(found->second.trial.job_id);
  trials_.erase(found);
  closed_[trial_id] = job_id;
  return job_id;
}

LeaseTable::Loss LeaseTable::lose(Entry& entry, const std::string& why) {
  if (entry.owner) entry.lost_workers.insert(entry.owner->worker_id);
  entry.state = State::kLost;
  entry.owner.reset();
  Loss loss{entry.trial.id, entry.trial.attempt, true, {}};
  if (static_cast<int>(entry.lost_workers.size()) >= options_.poison_workers) {
    std::string names;
    for (const std::string& w : entry.lost_workers) names += (names.empty() ? "" : ", ") + w;
    loss.retry = false;
    loss.message =
        str("poison: ", entry.lost_workers.size(), " workers were lost while they held it (", names, ")");
  } else if (entry.trial.attempt >= options_.max_attempts) {
    loss.retry = false;
    loss.message = str("given up after ", entry.trial.attempt, " attempts; the last: ", why);
  } else {
    loss.message = str("trial ", entry.trial.id, " re-queued after attempt ", entry.trial.attempt, ": ", why);
  }
  return loss;
}

std::vector<LeaseTable::Loss> LeaseTable::expire(int64_t now_ms) {
  const bool stalled = last_expire_ms_ && now_ms - *last_expire_ms_ > options_.ttl_ms / 2;
  last_expire_ms_ = now_ms;
  std::vector<Loss> losses;
  for (auto& [id, entry] : trials_) {
    if (entry.state != State::kLeased) continue;
    if (entry.dropped) {
      entry.dropped = false;
      losses.push_back(lose(entry, "its result could not be read"));
    } else if (stalled) {
      entry.expires_ms = std::max(entry.expires_ms, now_ms + options_.ttl_ms);
    } else if (now_ms >= entry.expires_ms) {
      losses.push_back(lose(entry, entry.owner
                                       ? str("worker ", entry.owner->worker_id, " was silent for ",
                                             options_.ttl_ms / 1000.0, " s")
                                       : "no worker took its lease up again after the daemon's restart"));
    }
  }
  return losses;
}

std::vector<LeaseTable::Loss> LeaseTable::worker_lost(const Owner& owner) {
  std::vector<Loss> losses;
  for (auto& [id, entry] : trials_)
    if (entry.state == State::kLeased && entry.owner == owner)
      losses.push_back(lose(entry, str("worker ", owner.worker_id, " died or was restarted")));
  return losses;
}

void LeaseTable::drop(const std::string& trial_id) {
  if (const auto found = trials_.find(trial_id); found != trials_.end()) found->second.dropped = true;
}

void LeaseTable::requeued(const std::string& trial_id) {
  const auto found = trials_.find(trial_id);
  if (found == trials_.end() || found->second.state != State::kLost) return;
  found->second.state = State::kQueued;
  queue_.push_front(trial_id);  // it has waited longest
}

const LeaseTable::Trial* LeaseTable::find(const std::string& trial_id) const {
  const auto found = trials_.find(trial_id);
  return found == trials_.end() ? nullptr : &found->second.trial;
}

void LeaseTable::forget_job(const std::string& job_id) {
  std::erase_if(trials_, [&](const auto& item) { return item.second.trial.job_id == job_id; });
  std::erase_if(closed_, [&](const auto& item) { return item.second == job_id; });
}

size_t LeaseTable::leases_of(const Owner& owner) const {
  return std::count_if(trials_.begin(), trials_.end(), [&](const auto& item) {
    return item.second.state == State::kLeased && item.second.owner == owner;
  });
}

}  // namespace tuner
