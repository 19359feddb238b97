// Shares of tenants: who is next, what idle tenants are due, and what is charged.
#include "tuner/daemon/tables/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tuner {
namespace {

// Serves `leases` leases one after the other to whoever of the tenants is next; each takes what `cost` says.
struct Farm {
  Shares shares;
  int64_t now_ms = 0;

  const std::string& next(const std::vector<std::string>& tenants) const {
    return *std::min_element(tenants.begin(), tenants.end(), [&](const std::string& a, const std::string& b) {
      return shares.clock(a) < shares.clock(b);
    });
  }
  template <class Cost>
  void serve(const std::vector<std::string>& tenants, int leases, const Cost& cost) {
    for (int i = 0; i < leases; ++i) {
      for (const std::string& t : tenants) shares.wants(t, now_ms);
      const std::string tenant = next(tenants);
      const double charged = shares.charge(tenant);
      const double used = cost(tenant);
      now_ms += static_cast<int64_t>(used);
      shares.settle(tenant, charged, used);
    }
  }
  double used(const std::string& tenant) const {
    const auto found = shares.uses().find(tenant);
    return found == shares.uses().end() ? 0 : found->second.device_ms;
  }
};

TEST(Shares, DeviceTimeFollowsTheWeights) {
  Farm farm;
  farm.shares.set({{"a", {.weight = 3}}});
  farm.serve({"a", "b"}, 4000, [](const std::string&) { return 10.0; });
  EXPECT_NEAR(farm.used("a") / farm.used("b"), 3, 0.03);
}

TEST(Shares, WhoseTrialsTakeLongerGetsFewerOfThem) {
  Farm farm;
  int slow = 0;
  farm.serve({"slow", "quick"}, 4000, [&](const std::string& t) {
    slow += t == "slow" ? 1 : 0;
    return t == "slow" ? 90.0 : 10.0;
  });
  EXPECT_NEAR(farm.used("slow") / farm.used("quick"), 1, 0.05);
  EXPECT_NEAR(slow, 400, 40);
}

TEST(Shares, WhoIsAloneGetsAll) {
  Farm farm;
  farm.shares.set({{"small", {.weight = 0.001}}});
  farm.serve({"small"}, 100, [](const std::string&) { return 10.0; });
  EXPECT_EQ(farm.used("small"), 1000);
}

TEST(Shares, NobodySavesUpTimeWhileIdle) {
  Farm farm;
  farm.serve({"a", "b"}, 100, [](const std::string&) { return 10.0; });
  farm.serve({"a"}, 10'000, [](const std::string&) { return 10.0; });  // b is away for 100 s
  const double a = farm.used("a"), b = farm.used("b");
  farm.serve({"a", "b"}, 1000, [](const std::string&) { return 10.0; });
  EXPECT_NEAR(farm.used("b") - b, farm.used("a") - a, 200) << "b begins where a stands";
}

TEST(Shares, AShortPauseCostsNothing) {
  Farm farm;
  farm.serve({"a", "b"}, 100, [](const std::string&) { return 10.0; });
  farm.serve({"a"}, 500, [](const std::string&) { return 10.0; });  // b's search thinks for 5 s
  farm.serve({"a", "b"}, 1500, [](const std::string&) { return 10.0; });
  EXPECT_NEAR(farm.used("a"), farm.used("b"), 100);
}

TEST(Shares, LeasesThatAreOutCountAtOnce) {
  Farm farm;
  farm.shares.wants("a", 0);
  farm.shares.wants("b", 0);
  std::string order;
  for (int i = 0; i < 6; ++i) {
    const std::string tenant = farm.next({"a", "b"});
    farm.shares.charge(tenant);
    order += tenant;
  }
  EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), 3) << order;
}

TEST(Shares, ALimitOfLeasesIsKept) {
  Shares shares;
  shares.set({{"a", {.most_leases = 2}}});
  EXPECT_TRUE(shares.has_room("a"));
  const double first = shares.charge("a");
  shares.charge("a");
  EXPECT_FALSE(shares.has_room("a"));
  EXPECT_TRUE(shares.has_room("b"));
  shares.settle("a", first, 10);
  EXPECT_TRUE(shares.has_room("a"));
  shares.set({{"a", {.most_leases = 1}}});
  EXPECT_FALSE(shares.has_room("a"));
}

TEST(Shares, WhatWasChargedAndNotUsedIsGivenBack) {
  Shares shares;
  shares.wants("a", 0);
  const double before = shares.clock("a");
  shares.settle("a", shares.charge("a"), 0);
  EXPECT_EQ(shares.clock("a"), before);
  EXPECT_EQ(shares.uses().at("a").device_ms, 0);
  EXPECT_EQ(shares.uses().at("a").leases, 0);
}

}  // namespace
}  // namespace tuner
