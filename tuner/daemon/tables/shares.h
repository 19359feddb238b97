// Shares: which tenant is next, so that devices work for tenants in proportion to their weights.
//
// Every tenant has a clock: the device time it was given, divided by its weight. Of those that wait, the one
// whose clock is earliest is next. A lease is charged at once with what it will probably cost, and settled
// later with what it did cost: many leases at once do not all go to one tenant. Who had nothing to measure
// for a while begins where the tenant stands that was served last: nobody saves up time while he is idle. A
// device is never idle because of a share: who is alone gets all.
//
// Pure: no threads, no clock of the machine. Times are in milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tuner/identity/share.h"

namespace tuner {

class Shares {
 public:
  // Those that are not named have a weight of 1 and no limit.
  void set(ShareByTenant shares) { shares_ = std::move(shares); }
  Share of(std::string_view tenant) const;

  // The tenant has something to measure at this moment.
  void wants(std::string_view tenant, int64_t now_ms);
  // Earlier is served first. Only tenants that have wanted something have one.
  double clock(std::string_view tenant) const;
  // Whether one more lease is within its limit.
  bool has_room(std::string_view tenant) const;

  // A lease begins. Returns what it is charged with: give it back to settle().
  double charge(std::string_view tenant);
  // It has ended, and the device worked for it so long.
  void settle(std::string_view tenant, double charged_ms, double used_ms);

  struct Use {
    double device_ms = 0;  // since the daemon began, of leases that have ended
    int leases = 0;        // now
  };
  const std::map<std::string, Use, std::less<>>& uses() const { return uses_; }

 private:
  struct Account {
    double clock = 0;       // device time / weight
    double usual_ms = 100;  // what a lease of it cost lately
    int64_t wanted_ms = 0;  // when it last had something to measure
  };
  Account& account(std::string_view tenant);

  ShareByTenant shares_;
  std::map<std::string, Account, std::less<>> accounts_;
  std::map<std::string, Use, std::less<>> uses_;
  double served_ = 0;  // clock of the tenant that was served last, before it was charged
};

}  // namespace tuner
