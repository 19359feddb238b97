// What a builder-only worker holds and owes while messages are lost, repeated and late.
#include "measure_server/worker/builder_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

v1::SyncReply orders(const std::vector<std::string>& ids) {
  v1::SyncReply reply;
  for (const std::string& id : ids) reply.add_orders()->set_id(id);
  return reply;
}
v1::BuildDone made(const std::string& id) {
  v1::BuildDone done;
  done.set_id(id);
  done.mutable_built()->set_outcome("ok");
  return done;
}
std::vector<std::string> held(const v1::SyncRequest& request) {
  std::vector<std::string> ids;
  for (const v1::HeldBuild& h : request.builds()) ids.push_back(h.id() + (h.at_work() ? "+" : ""));
  return ids;
}

TEST(BuilderCore, OrdersAreMadeInTheirOrderAndOwedUntilAcknowledged) {
  BuilderCore core(3);
  core.set_session("s");
  EXPECT_EQ(core.make_request(10).free_builds(), 3);
  core.apply(orders({"b", "a"}));
  core.apply(orders({"b"}));  // said twice
  EXPECT_EQ(core.make_request(10).free_builds(), 1);
  EXPECT_EQ(core.next()->id(), "b");
  EXPECT_FALSE(core.phases_told());
  EXPECT_THAT(held(core.make_request(10)), ElementsAre("a", "b+"));
  EXPECT_TRUE(core.phases_told());
  core.done(made("b"));
  EXPECT_THAT(core.make_request(10).built(), SizeIs(1));
  EXPECT_THAT(core.make_request(10).built(), SizeIs(1)) << "the reply got lost: said again";
  core.apply(orders({"b"}));  // a late reply
  EXPECT_THAT(held(core.make_request(10)), ElementsAre("a"));
  v1::SyncReply acks;
  acks.add_build_acks("b");
  core.apply(acks);
  EXPECT_THAT(core.make_request(10).built(), IsEmpty());
  EXPECT_EQ(core.next()->id(), "a");
  EXPECT_FALSE(core.idle());
}

TEST(BuilderCore, WhatNobodyWaitsForIsNotBegunAndWhatIsBegunIsFinished) {
  BuilderCore core(3);
  core.apply(orders({"a", "b"}));
  EXPECT_EQ(core.next()->id(), "a");
  v1::SyncReply stop;
  stop.add_stop_builds("a");
  stop.add_stop_builds("b");
  core.apply(stop);
  EXPECT_THAT(held(core.make_request(10)), ElementsAre("a+"));
  core.done(made("a"));
  EXPECT_THAT(core.make_request(10).built(), SizeIs(1));
}

// A slow link does not keep a compiler waiting.
TEST(BuilderCore, WhatIsBeingSentLeavesRoomForAnother) {
  BuilderCore core(2);
  core.apply(orders({"a", "b"}));
  EXPECT_EQ(core.next()->id(), "a");
  EXPECT_EQ(core.make_request(10).free_builds(), 0);
  core.sends("a");
  EXPECT_EQ(core.make_request(10).free_builds(), 1);
  EXPECT_THAT(held(core.make_request(10)), ElementsAre("a+", "b")) << "it is this builder's still";
  core.sends("unknown");
  core.done(made("a"));
  EXPECT_EQ(core.make_request(10).free_builds(), 1);
}

TEST(BuilderCore, UnfitGivesBackWhatWaitsAndTakesNothing) {
  BuilderCore core(3);
  core.apply(orders({"a", "b"}));
  EXPECT_EQ(core.next()->id(), "a");
  core.set_unfit("the disk is full");
  core.give_back("a");
  v1::SyncRequest request = core.make_request(10);
  EXPECT_EQ(request.free_builds(), 0);
  EXPECT_EQ(request.unfit(), "the disk is full");
  EXPECT_THAT(request.returned_builds(), ElementsAre("a", "b"));
  EXPECT_FALSE(core.idle()) << "the daemon has to hear of it";
  core.apply({});
  EXPECT_TRUE(core.idle());
  core.set_fit();
  EXPECT_EQ(core.make_request(10).free_builds(), 3);
}

TEST(BuilderCore, ADrainFinishesWhatIsBegun) {
  BuilderCore core(3);
  core.apply(orders({"a", "b"}));
  EXPECT_EQ(core.next()->id(), "a");
  core.drain();
  EXPECT_TRUE(core.draining());
  EXPECT_THAT(core.make_request(10).returned_builds(), ElementsAre("b"));
  core.apply({});
  EXPECT_FALSE(core.idle());
  core.done(made("a"));
  v1::SyncReply acks;
  acks.add_build_acks("a");
  (void)core.make_request(10);
  core.apply(acks);
  EXPECT_TRUE(core.idle());
}

TEST(BuilderCore, StopWakesWhoWaits) {
  BuilderCore core(1);
  std::thread waits([&] { EXPECT_FALSE(core.next().has_value()); });
  core.stop();
  waits.join();
}

}  // namespace
}  // namespace tuner
