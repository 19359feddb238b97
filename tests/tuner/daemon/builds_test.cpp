// What runners need made and who makes it, as a table: nothing is made twice, nothing is lost, nobody is
// blamed.
#include "tuner/daemon/tables/builds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/random_seed.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const WorkerLife kOne{"b1", "1"}, kTwo{"b2", "1"};

BuildNeed need(const std::string& config) {
  return {.workload_key = "w", .target = "llvm -mcpu=cortex-a72", .wanted = {"t", 1}, .config = config};
}
Made ok(char digit) {
  return {.outcome = BuildOutcome::kOk, .toolchain = "llvm 22", .artifact = {std::string(64, digit), 10}};
}
const Builds::Asker any{.makes = [](const BuildNeed&) { return true; },
                        .others = [](const BuildNeed&, const std::set<std::string>&) { return true; }};
bool usable(const BuildNeed&, const Made&) { return true; }

class BuildsTest : public testing::Test {
 protected:
  void want(const std::string& trial, const std::vector<BuildNeed>& needs) {
    builds_.want(trial, needs, 10, now_, usable);
  }
  std::vector<std::string> take(const WorkerLife& builder, size_t n = 9) {
    std::vector<std::string> configs;
    for (const Builds::Order& order : builds_.take(builder, n, any, now_))
      configs.push_back(order.need.config);
    return configs;
  }
  void beat(const WorkerLife& builder, const std::vector<Builds::Held>& held) {
    (void)builds_.heartbeat(builder, held, /*first=*/true, now_);
  }

  int64_t now_ = 1'000;
  Builds builds_;
};

TEST_F(BuildsTest, OneOrderServesEverybodyWhoAsks) {
  want("t1", {need("a"), need("b")});
  want("t2", {need("b")});
  EXPECT_THAT(take(kOne, 1), ElementsAre("a"));
  EXPECT_THAT(take(kTwo), ElementsAre("b"));
  EXPECT_THAT(take(kTwo), IsEmpty());
  EXPECT_TRUE(builds_.done(order_id(need("b")), ok('b')));
  EXPECT_THAT(builds_.answers("t1"), IsEmpty()) << "one of its two is still being made";
  EXPECT_THAT(builds_.answers("t2"), SizeIs(1));
  EXPECT_TRUE(builds_.done(order_id(need("a")), ok('a')));
  ASSERT_THAT(builds_.answers("t1"), SizeIs(2));
  EXPECT_EQ(builds_.answers("t1")[0]->artifact.sha256[0], 'a');
  EXPECT_EQ(builds_.answers("t1")[1]->artifact.sha256[0], 'b');
  EXPECT_FALSE(builds_.done(order_id(need("a")), ok('c'))) << "known already";
  want("t3", {need("a")});
  EXPECT_THAT(builds_.answers("t3"), SizeIs(1)) << "not made again";
  EXPECT_EQ(builds_.waiting(), 0u);
}

TEST_F(BuildsTest, ALeaseNamesItsOwnBlobsOnly) {
  want("t1", {need("a")});
  want("t2", {need("b")});
  take(kOne);
  builds_.done(order_id(need("a")), ok('a'));
  builds_.done(order_id(need("b")), ok('b'));
  EXPECT_TRUE(builds_.names("t1", ok('a').artifact));
  EXPECT_FALSE(builds_.names("t1", ok('b').artifact));
  EXPECT_FALSE(builds_.names("t9", ok('a').artifact));
  builds_.forget("t1");
  EXPECT_FALSE(builds_.names("t1", ok('a').artifact)) << "its lease has ended";
}

TEST_F(BuildsTest, WhatIsNotUsableIsMadeAgain) {
  want("t1", {need("a")});
  take(kOne);
  builds_.done(order_id(need("a")), ok('a'));
  builds_.want("t2", {need("a")}, 10, now_, [](const BuildNeed&, const Made&) { return false; });
  EXPECT_THAT(builds_.answers("t2"), IsEmpty());
  EXPECT_THAT(take(kTwo), ElementsAre("a"));
  builds_.done(order_id(need("a")), ok('c'));
  EXPECT_EQ(builds_.answers("t2")[0]->artifact.sha256[0], 'c');
  builds_.lost_blob(ok('c').artifact, now_);
  EXPECT_THAT(builds_.answers("t2"), IsEmpty());
  EXPECT_THAT(take(kOne), ElementsAre("a"));
}

TEST_F(BuildsTest, ABuilderThatFallsSilentLosesItsOrdersAndBlamesNobody) {
  want("t1", {need("a")});
  EXPECT_THAT(take(kOne), ElementsAre("a"));
  beat(kOne, {{order_id(need("a")), true}});
  now_ += 7'000;
  builds_.expire(now_);
  EXPECT_EQ(builds_.waiting(), 0u);
  now_ += 2'000;
  builds_.expire(now_);
  EXPECT_EQ(builds_.waiting(), 1u);
  EXPECT_THAT(take(kTwo), ElementsAre("a"));
  // The first one comes back with it, made: that is as good as any.
  EXPECT_TRUE(builds_.done(order_id(need("a")), ok('a')));
  EXPECT_FALSE(builds_.done(order_id(need("a")), ok('b')));
  EXPECT_EQ(builds_.answers("t1")[0]->artifact.sha256[0], 'a');
}

TEST_F(BuildsTest, ABuilderTakesUpWhatItHasAfterARestartOfTheDaemon) {
  want("t1", {need("a")});  // of the new daemon, whose runner has said what it needs
  const auto beat =
      builds_.heartbeat(kOne, {{order_id(need("a")), true}, {order_id(need("b")), false}}, true, now_);
  EXPECT_THAT(beat.stop, ElementsAre(order_id(need("b")))) << "nobody wants it";
  EXPECT_TRUE(builds_.holds(kOne, order_id(need("a"))));
  EXPECT_THAT(take(kTwo), IsEmpty());
}

TEST_F(BuildsTest, AReplyThatGotLostIsRepeated) {
  want("t1", {need("a")});
  take(kOne);
  const auto beat = builds_.heartbeat(kOne, {}, /*first=*/true, now_);
  ASSERT_THAT(beat.missing, SizeIs(1));
  EXPECT_EQ(beat.missing[0].need.config, "a");
  EXPECT_THAT(builds_.heartbeat(kOne, {}, /*first=*/false, now_).missing, IsEmpty());
}

TEST_F(BuildsTest, OrdersThatNobodyWantsAreDropped) {
  want("t1", {need("a"), need("b"), need("c")});
  EXPECT_THAT(take(kOne, 2), ElementsAre("a", "b"));
  beat(kOne, {{order_id(need("a")), true}, {order_id(need("b")), false}});
  builds_.forget("t1");
  EXPECT_EQ(builds_.waiting(), 0u);
  const auto after =
      builds_.heartbeat(kOne, {{order_id(need("a")), true}, {order_id(need("b")), false}}, true, now_);
  EXPECT_THAT(after.stop, ElementsAre(order_id(need("b")))) << "what is being made is finished, and known";
  EXPECT_TRUE(builds_.done(order_id(need("a")), ok('a')));
  want("t2", {need("a")});
  EXPECT_THAT(builds_.answers("t2"), SizeIs(1));
}

TEST_F(BuildsTest, WhoCouldNotMakeItIsNotAskedAgain) {
  want("t1", {need("a")});
  take(kOne);
  builds_.could_not(order_id(need("a")), kOne, "the disk is full", now_);
  EXPECT_THAT(take(kOne), IsEmpty());
  EXPECT_THAT(take(kTwo), ElementsAre("a"));
  builds_.give_back(order_id(need("a")), kTwo);
  EXPECT_THAT(take(kTwo), ElementsAre("a")) << "given back is no failure";
}

TEST_F(BuildsTest, TheOnlyBuilderIsAskedAgain) {
  want("t1", {need("a")});
  take(kOne);
  builds_.could_not(order_id(need("a")), kOne, "its answer did not arrive", now_);
  const Builds::Asker alone{.makes = [](const BuildNeed&) { return true; },
                            .others =
                                [](const BuildNeed&, const std::set<std::string>& except) {
                                  EXPECT_THAT(except, ElementsAre("b1"));
                                  return false;
                                }};
  EXPECT_THAT(builds_.take(kOne, 9, alone, now_), SizeIs(1));
}

TEST_F(BuildsTest, FiveLossesGiveAnOrderUpAndTheNextLeaseTriesAnew) {
  want("t1", {need("a")});
  for (int i = 0; i < Builds::kMostLosses; ++i) {
    const WorkerLife builder{str("b", i), "1"};
    ASSERT_THAT(take(builder), ElementsAre("a")) << i;
    beat(builder, {{order_id(need("a")), true}});
    builds_.builder_lost(builder, now_);
  }
  ASSERT_THAT(builds_.answers("t1"), SizeIs(1));
  EXPECT_EQ(builds_.answers("t1")[0]->outcome, BuildOutcome::kUnable);
  EXPECT_THAT(builds_.answers("t1")[0]->message, HasSubstr("5 builders"));
  want("t2", {need("a")});
  EXPECT_THAT(take({"b0", "2"}), ElementsAre("a"));
}

// A random history against what must hold whatever happens.
TEST_F(BuildsTest, RandomHistoriesLoseNothing) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/200)) {
    std::mt19937_64 rng(seed);
    const auto below = [&](size_t n) { return static_cast<size_t>(rng() % n); };
    Builds builds;
    int64_t now = 0;
    std::map<std::string, BuildNeed> wanted;
    std::map<WorkerLife, std::set<std::string>> held;
    for (int step = 0; step < 400; ++step) {
      now += static_cast<int64_t>(below(2'000));
      const WorkerLife builder{str("b", below(3)), "1"};
      const std::string trial = str("t", below(20));
      switch (below(7)) {
        case 0:
          wanted[trial] = need(str("c", below(8)));
          builds.forget(trial);
          builds.want(trial, {wanted[trial]}, 10, now, usable);
          break;
        case 1:
          builds.forget(trial);
          wanted.erase(trial);
          break;
        case 2:
          for (const Builds::Order& order : builds.take(builder, 1 + below(3), any, now)) {
            for (const auto& [other, ids] : held)
              EXPECT_FALSE(other != builder && builds.holds(other, order.id))
                  << "one builder has it at a time";
            held[builder].insert(order.id);
          }
          break;
        case 3:
          if (!held[builder].empty()) {
            const std::string id = *held[builder].begin();
            held[builder].erase(id);
            builds.done(id, ok('a'));
          }
          break;
        case 4: {
          std::vector<Builds::Held> names;
          for (const std::string& id : held[builder]) names.push_back({id, below(2) == 0});
          const auto beat = builds.heartbeat(builder, names, true, now);
          for (const std::string& id : beat.stop) held[builder].erase(id);
          for (const Builds::Order& order : beat.missing) held[builder].insert(order.id);
          break;
        }
        case 5:
          builds.builder_lost(builder, now);
          held[builder].clear();
          break;
        case 6:
          builds.expire(now);
          break;
      }
      for (const auto& [id, of] : wanted) ASSERT_TRUE(builds.wants(id));
    }
    // In peace everything that is wanted is made.
    for (int i = 0; i < 3; ++i) builds.builder_lost({str("b", i), "1"}, now);
    for (const Builds::Order& order : builds.take({"last", "1"}, 100, any, now))
      builds.done(order.id, ok('a'));
    for (const auto& [id, of] : wanted) EXPECT_THAT(builds.answers(id), SizeIs(1)) << id;
    EXPECT_EQ(builds.waiting(), 0u);
    EXPECT_EQ(builds.at_builders(), 0u);
  }
}

}  // namespace
}  // namespace tuner
