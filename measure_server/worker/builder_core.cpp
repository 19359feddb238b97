#include "measure_server/worker/builder_core.h"

#include <algorithm>
#include <utility>

namespace tuner {
namespace {

constexpr int kMaxBuilt = 64;  // of one Sync

}  // namespace

void BuilderCore::set_session(std::string session) {
  const std::lock_guard lock(mutex_);
  session_ = std::move(session);
}

std::string BuilderCore::session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

v1::SyncRequest BuilderCore::make_request(int wait_ms) {
  const std::lock_guard lock(mutex_);
  v1::SyncRequest request;
  request.set_session(session_);
  request.set_wait_ms(wait_ms);
  request.set_unfit(unfit_);
  const bool takes = !draining_ && !stopped_ && unfit_.empty();
  const auto unmade =
      static_cast<int>(std::ranges::count_if(held_, [](const auto& h) { return !h.second.sends; }));
  request.set_free_builds(takes ? std::max(0, slots_ - unmade) : 0);
  for (const auto& [id, held] : held_) {
    v1::HeldBuild* const h = request.add_builds();
    h->set_id(id);
    h->set_at_work(held.at_work);
  }
  told_phases_ = phases_;
  for (const auto& [id, answer] : owed_) {
    if (request.built_size() == kMaxBuilt) break;
    *request.add_built() = answer;
  }
  for (auto& [id, told] : returned_) {
    request.add_returned_builds(id);
    told = true;
  }
  return request;
}

void BuilderCore::apply(const v1::SyncReply& reply) {
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& id : reply.build_acks()) owed_.erase(id);
    std::erase_if(returned_, [](const auto& entry) { return entry.second; });
    for (const std::string& id : reply.stop_builds()) {
      // One that is being made is finished: the cache has it then.
      const auto it = held_.find(id);
      if (it != held_.end() && !it->second.at_work) held_.erase(it);
    }
    for (const v1::BuildOrder& order : reply.orders())
      if (!stopped_ && !owed_.contains(order.id()))
        held_.try_emplace(order.id(), Held{.order = order, .place = places_++});
    if (reply.drain()) draining_ = true;
    if (draining_) return_waiting_locked();
  }
  changed_.notify_all();
}

bool BuilderCore::phases_told() const {
  const std::lock_guard lock(mutex_);
  return told_phases_ == phases_;
}

bool BuilderCore::idle() const {
  const std::lock_guard lock(mutex_);
  return held_.empty() && owed_.empty() && returned_.empty();
}

bool BuilderCore::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

std::optional<v1::BuildOrder> BuilderCore::next() {
  std::unique_lock lock(mutex_);
  Held* next = nullptr;
  changed_.wait(lock, [&] {
    next = nullptr;
    for (auto& [id, held] : held_)
      if (!held.at_work && (next == nullptr || held.place < next->place)) next = &held;
    return stopped_ || (next != nullptr && unfit_.empty());
  });
  if (stopped_) return std::nullopt;
  next->at_work = true;
  ++phases_;
  v1::BuildOrder order = next->order;
  lock.unlock();
  if (phase_began_) phase_began_();
  return order;
}

void BuilderCore::sends(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = held_.find(id);
    if (it == held_.end()) return;
    it->second.sends = true;
  }
  tell_news();
}

void BuilderCore::done(v1::BuildDone answer) {
  {
    const std::lock_guard lock(mutex_);
    if (held_.erase(answer.id()) == 0) return;
    const std::string id = answer.id();
    owed_[id] = std::move(answer);
  }
  changed_.notify_all();
  tell_news();
}

void BuilderCore::give_back(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    if (held_.erase(id) == 0) return;
    returned_[id] = false;
  }
  changed_.notify_all();
  tell_news();
}

bool BuilderCore::holds(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return held_.contains(id);
}

void BuilderCore::return_waiting_locked() {
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->second.at_work) {
      ++it;
      continue;
    }
    returned_[it->first] = false;
    it = held_.erase(it);
  }
}

void BuilderCore::set_unfit(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    unfit_ = why;
    return_waiting_locked();
  }
  changed_.notify_all();
  tell_news();
}

void BuilderCore::set_fit() {
  {
    const std::lock_guard lock(mutex_);
    unfit_.clear();
  }
  changed_.notify_all();
  tell_news();
}

void BuilderCore::drain() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    return_waiting_locked();
  }
  changed_.notify_all();
  tell_news();
}

void BuilderCore::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace tuner
