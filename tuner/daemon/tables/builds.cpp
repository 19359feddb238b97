#include "tuner/daemon/tables/builds.h"

#include <algorithm>
#include <utility>

#include "compiler_core/artifact/artifact.h"

namespace tuner {
namespace {

constexpr size_t kMostKnown = 65'536;

bool is_final(const Made& made) { return made.outcome != BuildOutcome::kUnable; }

}  // namespace

CompilerNeed BuildNeed::compiler() const {
  // Reference answers are compiled for the builder itself.
  return {data ? "llvm" : target.substr(0, target.find(' ')), wanted, newest_toolkit, source_compiler};
}

std::string order_id(const BuildNeed& need) {
  constexpr size_t kDigits = 24;
  return sha256_hex(str(need.data ? "data" : "artifact", "|", need.workload_key, "|", need.target, "|",
                        need.wanted.name, "|", need.wanted.version, "|", need.config, "|", need.input_seed,
                        "|", need.newest_toolkit))
      .substr(0, kDigits);
}

std::vector<BlobName> Made::blobs() const {
  std::vector<BlobName> all;
  if (!artifact.sha256.empty()) all.push_back(artifact);
  for (const Set& set : data)
    for (const File& file : set.references) all.push_back(file.blob);
  return all;
}

// --- what leases want ---

void Builds::want(const std::string& trial_id, const std::vector<BuildNeed>& needs, double limit_s,
                  int64_t now_ms, const Usable& usable, const Recall& recall) {
  const auto [wanted, is_new] = wanted_by_.try_emplace(trial_id);
  if (!is_new) return;
  for (const BuildNeed& need : needs) {
    const std::string id = order_id(need);
    wanted->second.push_back(id);
    const auto [it, ordered] = entries_.try_emplace(id);
    Entry& entry = it->second;
    entry.limit_s = std::max(entry.limit_s, limit_s);
    entry.trials.insert(trial_id);
    if (ordered) {
      entry.need = need;
      std::optional<Made> known = recall ? recall(id, need) : std::nullopt;
      if (known && is_final(*known) && usable(need, *known))
        finish(id, entry, *std::move(known));
      else
        wait(id, entry, now_ms, /*first=*/false);
    } else if (entry.state == State::kDone) {
      if (is_final(entry.made) && usable(need, entry.made)) {
        known_.splice(known_.end(), known_, *entry.place);
      } else {
        entry.losses = 0;
        entry.could_not.clear();
        wait(id, entry, now_ms, /*first=*/false);
      }
    }
  }
}

std::vector<const Made*> Builds::answers(const std::string& trial_id) const {
  std::vector<const Made*> all;
  const auto wanted = wanted_by_.find(trial_id);
  if (wanted == wanted_by_.end()) return all;
  for (const std::string& id : wanted->second) {
    const Entry& entry = entries_.at(id);
    if (entry.state != State::kDone) return {};
    all.push_back(&entry.made);
  }
  return all;
}

bool Builds::names(const std::string& trial_id, const BlobName& blob) const {
  const std::vector<const Made*> all = answers(trial_id);
  return std::ranges::any_of(all, [&](const Made* made) {
    const std::vector<BlobName> named = made->blobs();
    return std::ranges::find(named, blob) != named.end();
  });
}

void Builds::leave(const std::string& trial_id, const std::string& id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  entry.trials.erase(trial_id);
  if (!entry.trials.empty() || entry.state == State::kDone) return;
  // One that a builder works at ends soon, and is then known; another is not begun.
  if (entry.state == State::kAtBuilder && entry.at_work) return;
  take_place(entry);
  entries_.erase(it);
}

void Builds::forget(const std::string& trial_id) {
  const auto wanted = wanted_by_.find(trial_id);
  if (wanted == wanted_by_.end()) return;
  for (const std::string& id : wanted->second) leave(trial_id, id);
  wanted_by_.erase(wanted);
}

void Builds::forget_if(const std::function<bool(const std::string&)>& ended) {
  std::vector<std::string> over;
  for (const auto& [trial, orders] : wanted_by_)
    if (ended(trial)) over.push_back(trial);
  for (const std::string& trial : over) forget(trial);
}

void Builds::lost_blob(const BlobName& blob, int64_t now_ms) {
  for (auto& [id, entry] : entries_) {
    if (entry.state != State::kDone || entry.trials.empty()) continue;
    const std::vector<BlobName> named = entry.made.blobs();
    if (std::ranges::find(named, blob) != named.end()) wait(id, entry, now_ms, /*first=*/true);
  }
}

// --- where orders are ---

// Takes it out of the list that it is in.
void Builds::take_place(Entry& entry) {
  if (entry.place) (entry.state == State::kDone ? known_ : queue_).erase(*entry.place);
  entry.place.reset();
  if (entry.builder)
    if (const auto owner = by_builder_.find(*entry.builder); owner != by_builder_.end()) {
      owner->second.erase(order_id(entry.need));
      if (owner->second.empty()) by_builder_.erase(owner);
    }
  entry.builder.reset();
  entry.at_work = false;
}

void Builds::wait(const std::string& id, Entry& entry, int64_t now_ms, bool first) {
  take_place(entry);
  entry.state = State::kWaiting;
  entry.since_ms = now_ms;
  entry.made = {};
  entry.place = queue_.insert(first ? queue_.begin() : queue_.end(), id);
}

void Builds::finish(const std::string& id, Entry& entry, Made made) {
  take_place(entry);
  entry.state = State::kDone;
  entry.made = std::move(made);
  entry.place = known_.insert(known_.end(), id);
  drop_oldest();
}

void Builds::drop_oldest() {
  for (auto it = known_.begin(); known_.size() > kMostKnown && it != known_.end();) {
    const auto entry = entries_.find(*it);
    const bool wanted = entry != entries_.end() && !entry->second.trials.empty();
    if (wanted) {
      ++it;
      continue;
    }
    if (entry != entries_.end()) entries_.erase(entry);
    it = known_.erase(it);
  }
}

// --- builders ---

std::vector<Builds::Order> Builds::take(const WorkerLife& builder, size_t n, const Asker& asker,
                                        int64_t now_ms) {
  std::vector<Order> taken;
  for (auto it = queue_.begin(); it != queue_.end() && taken.size() < n;) {
    const std::string id = *it++;
    Entry& entry = entries_.at(id);
    if (!asker.makes(entry.need) ||
        (entry.could_not.contains(builder.worker_id) && asker.others(entry.need, entry.could_not)))
      continue;
    take_place(entry);
    entry.state = State::kAtBuilder;
    entry.builder = builder;
    entry.expires_ms = now_ms + ttl_ms_;
    by_builder_[builder].insert(id);
    taken.push_back({id, entry.need, entry.limit_s});
  }
  return taken;
}

bool Builds::holds(const WorkerLife& builder, const std::string& id) const {
  const auto owner = by_builder_.find(builder);
  return owner != by_builder_.end() && owner->second.contains(id);
}

Builds::Heartbeat Builds::heartbeat(const WorkerLife& builder, const std::vector<Held>& held, bool first,
                                    int64_t now_ms) {
  Heartbeat beat;
  std::set<std::string> named;
  for (const Held& h : held) {
    named.insert(h.id);
    const auto it = entries_.find(h.id);
    if (it == entries_.end() || it->second.state == State::kDone) {
      beat.stop.push_back(h.id);
      continue;
    }
    Entry& entry = it->second;
    if (entry.state == State::kWaiting) {
      // It had it before this daemon began, or before it was silent for too long.
      take_place(entry);
      entry.state = State::kAtBuilder;
      entry.builder = builder;
      by_builder_[builder].insert(h.id);
    } else if (*entry.builder != builder) {
      if (!h.at_work) beat.stop.push_back(h.id);  // one that is being made may come first
      continue;
    }
    entry.at_work = h.at_work;
    entry.expires_ms = now_ms + ttl_ms_;
  }
  const auto own = by_builder_.find(builder);
  if (own == by_builder_.end() || !first) return beat;
  for (const std::string& id : own->second) {
    if (named.contains(id)) continue;
    Entry& entry = entries_.at(id);
    entry.expires_ms = now_ms + ttl_ms_;
    beat.missing.push_back({id, entry.need, entry.limit_s});
  }
  return beat;
}

bool Builds::done(const std::string& id, Made made) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.state == State::kDone) return false;
  finish(id, it->second, std::move(made));
  return true;
}

void Builds::lose(const std::string& id, Entry& entry, const std::string& why, int64_t now_ms) {
  if (++entry.losses >= kMostLosses)
    return finish(id, entry,
                  {.outcome = BuildOutcome::kUnable,
                   .message = str(kMostLosses, " builders could not make it; the last: ", why)});
  wait(id, entry, now_ms, /*first=*/true);
}

void Builds::could_not(const std::string& id, const WorkerLife& builder, const std::string& why,
                       int64_t now_ms) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !holds(builder, id)) return;
  it->second.could_not.insert(builder.worker_id);
  lose(id, it->second, str(builder.worker_id, ": ", why), now_ms);
}

void Builds::give_back(const std::string& id, const WorkerLife& builder) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !holds(builder, id)) return;
  wait(id, it->second, it->second.since_ms, /*first=*/true);
}

void Builds::builder_lost(const WorkerLife& builder, int64_t now_ms) {
  const auto own = by_builder_.find(builder);
  if (own == by_builder_.end()) return;
  for (const std::string& id : std::set<std::string>(own->second)) {
    Entry& entry = entries_.at(id);
    if (entry.trials.empty()) {
      take_place(entry);
      entries_.erase(id);
    } else if (entry.at_work) {
      lose(id, entry, str("builder ", builder.worker_id, " was lost while it made it"), now_ms);
    } else {
      wait(id, entry, now_ms, /*first=*/true);
    }
  }
}

void Builds::expire(int64_t now_ms) {
  std::vector<WorkerLife> silent;
  for (const auto& [builder, orders] : by_builder_)
    if (std::ranges::any_of(orders,
                            [&](const std::string& id) { return entries_.at(id).expires_ms < now_ms; }))
      silent.push_back(builder);
  for (const WorkerLife& builder : silent) builder_lost(builder, now_ms);
}

// --- for people ---

std::optional<BuildNeed> Builds::need_of(const std::string& id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? std::nullopt : std::optional(it->second.need);
}

size_t Builds::at_builders() const {
  size_t n = 0;
  for (const auto& [builder, orders] : by_builder_) n += orders.size();
  return n;
}

size_t Builds::orders_of(const WorkerLife& builder) const {
  const auto own = by_builder_.find(builder);
  return own == by_builder_.end() ? 0 : own->second.size();
}

std::optional<int64_t> Builds::oldest_ms(const std::function<bool(const BuildNeed&)>& of) const {
  std::optional<int64_t> oldest;
  for (const std::string& id : queue_) {
    const Entry& entry = entries_.at(id);
    if (of(entry.need) && (!oldest || entry.since_ms < *oldest)) oldest = entry.since_ms;
  }
  return oldest;
}

std::vector<std::pair<BuildNeed, std::set<std::string>>> Builds::waiting_of(
    const std::function<bool(const BuildNeed&)>& of) const {
  std::vector<std::pair<BuildNeed, std::set<std::string>>> all;
  for (const std::string& id : queue_)
    if (const Entry& entry = entries_.at(id); of(entry.need)) all.emplace_back(entry.need, entry.trials);
  return all;
}

}  // namespace tuner
