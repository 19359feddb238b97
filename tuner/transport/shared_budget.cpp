#include "tuner/transport/shared_budget.h"

#include <algorithm>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner::transport {
namespace {

// What a member may do in the last one to two seconds whatever the others do. A young one, which may be the
// next of a thousand connections that one attacker opens, only a handful of resets.
constexpr int64_t kAlways = 20;
constexpr int64_t kAlwaysYoung = 5;
// How long a fair share holds: working it out looks at all members.
constexpr int64_t kShareMs = 100;

}  // namespace

void SharedBudget::Member::Recent::add(int64_t now_ms) {
  const int64_t current = now_ms / 1000;
  if (current != second) {
    before = current == second + 1 ? now : 0;
    now = 0;
    second = current;
  }
  ++now;
}

int64_t SharedBudget::Member::Recent::at(int64_t now_ms) const {
  const int64_t current = now_ms / 1000;
  if (current == second) return now + before;
  return current == second + 1 ? now : 0;
}

SharedBudget::Member::Member(SharedBudget* budget) : budget_(budget) {
  if (budget_ == nullptr) return;
  index_ = budget_->members_.size();
  budget_->members_.push_back(this);
}

SharedBudget::Member::~Member() {
  if (budget_ == nullptr) return;
  if (verdict_.is_ok()) budget_->unfinished_bytes_ -= unfinished_bytes_;
  Member* last = budget_->members_.back();
  budget_->members_[index_] = last;
  last->index_ = index_;
  budget_->members_.pop_back();
}

void SharedBudget::Member::request(int64_t now_ms) {
  if (budget_ == nullptr) return;
  requests_.add(now_ms);
  budget_->requests_.bucket.spend(now_ms);
}

void SharedBudget::Member::reset(int64_t now_ms, bool young) {
  if (budget_ == nullptr) return;
  resets_.add(now_ms);
  budget_->resets_.bucket.spend(now_ms);
  const int64_t count = resets_.at(now_ms);
  if (young && count > kAlwaysYoung && verdict_.is_ok() && budget_->resets_.bucket.wait_ms(now_ms) > 0)
    condemn(Cause::kSharedResets, str("all connections together send more than ", budget_->resets_.rate.per_s,
                                      " RST_STREAM a second, and this new one has sent ", count));
}

void SharedBudget::Member::bytes(int64_t change) {
  unfinished_bytes_ += change;
  if (budget_ == nullptr || !verdict_.is_ok()) return;
  budget_->unfinished_bytes_ += change;
  if (change > 0 && budget_->unfinished_bytes_ > budget_->limits_.unfinished_bytes) budget_->too_many_bytes();
}

int64_t SharedBudget::Member::wait_ms(int64_t now_ms) const {
  if (budget_ == nullptr) return 0;
  return std::max(budget_->wait_ms(budget_->requests_, *this, now_ms),
                  budget_->wait_ms(budget_->resets_, *this, now_ms));
}

void SharedBudget::Member::condemn(Cause cause, std::string reason) {
  budget_->unfinished_bytes_ -= unfinished_bytes_;
  budget_->condemned_ = true;
  verdict_ = {cause, std::move(reason)};
}

SharedBudget::SharedBudget(const SharedLimits& limits, int64_t now_ms)
    : limits_(limits),
      requests_{TokenBucket(limits.requests, now_ms), limits.requests, &Member::requests_},
      resets_{TokenBucket(limits.resets, now_ms), limits.resets, &Member::resets_} {}

bool SharedBudget::take_condemned() { return std::exchange(condemned_, false); }

int64_t SharedBudget::wait_ms(Kind& kind, const Member& member, int64_t now_ms) {
  const int64_t wait = kind.bucket.wait_ms(now_ms);
  const int64_t count = (member.*kind.recent).at(now_ms);
  if (wait == 0 || count <= kAlways) return 0;
  if (now_ms >= kind.share_until_ms) {
    const auto active = std::ranges::count_if(
        members_, [&](const Member* other) { return (other->*kind.recent).at(now_ms) > 0; });
    kind.share = static_cast<int64_t>(2 * kind.rate.per_s) / std::max<int64_t>(active, 1);  // of two seconds
    kind.share_until_ms = now_ms + kShareMs;
  }
  return count > kind.share ? wait : 0;
}

void SharedBudget::too_many_bytes() {
  Member* most = nullptr;
  for (Member* member : members_)
    if (member->verdict_.is_ok() && (most == nullptr || member->unfinished_bytes_ > most->unfinished_bytes_))
      most = member;
  if (most == nullptr) return;
  most->condemn(Cause::kSharedBytes,
                str("unfinished requests of all connections hold more than ", limits_.unfinished_bytes,
                    " bytes; this one's hold ", most->unfinished_bytes_, ", more than any other's"));
}

}  // namespace tuner::transport
