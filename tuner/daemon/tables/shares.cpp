#include "tuner/daemon/tables/shares.h"

#include <algorithm>
#include <utility>

namespace tuner {
namespace {

// A search that thinks between two batches has not gone: what it missed meanwhile is still its due.
constexpr int64_t kAway_ms = 10'000;
// How much of what a lease usually costs comes from the latest one.
constexpr double kWeightOfLatest = 0.1;

}  // namespace

Share Shares::of(std::string_view tenant) const {
  const auto found = shares_.find(tenant);
  return found == shares_.end() ? Share{} : found->second;
}

Shares::Account& Shares::account(std::string_view tenant) {
  const auto found = accounts_.find(tenant);
  return found != accounts_.end() ? found->second : accounts_[std::string(tenant)];
}

void Shares::wants(std::string_view tenant, int64_t now_ms) {
  const auto found = accounts_.find(tenant);
  Account& a = found != accounts_.end() ? found->second : accounts_[std::string(tenant)];
  if (found == accounts_.end() || now_ms - a.wanted_ms > kAway_ms) a.clock = std::max(a.clock, served_);
  a.wanted_ms = now_ms;
}

double Shares::clock(std::string_view tenant) const {
  const auto found = accounts_.find(tenant);
  return found == accounts_.end() ? served_ : found->second.clock;
}

bool Shares::has_room(std::string_view tenant) const {
  const int most = of(tenant).most_leases;
  const auto use = uses_.find(tenant);
  return most == 0 || use == uses_.end() || use->second.leases < most;
}

double Shares::charge(std::string_view tenant) {
  Account& a = account(tenant);
  served_ = std::max(served_, a.clock);
  a.clock += a.usual_ms / of(tenant).weight;
  ++uses_[std::string(tenant)].leases;
  return a.usual_ms;
}

void Shares::settle(std::string_view tenant, double charged_ms, double used_ms) {
  Account& a = account(tenant);
  a.clock += (used_ms - charged_ms) / of(tenant).weight;
  if (used_ms > 0) a.usual_ms += kWeightOfLatest * (used_ms - a.usual_ms);
  Use& use = uses_[std::string(tenant)];
  use.device_ms += used_ms;
  --use.leases;
}

}  // namespace tuner
