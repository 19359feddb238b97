// Reruns: which result is the one that somebody waits for.
#include "tuner/daemon/tables/reruns.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(Reruns, EndWithTheirOwnResultAndNotWithALateOneOfTheJob) {
  Reruns reruns;
  const int attempt = Reruns::attempt_at(1'700'000'000'000'000) + 1;  // as it is leased
  EXPECT_EQ(reruns.find("t1"), nullptr);
  reruns.begin("t1");
  ASSERT_NE(reruns.find("t1"), nullptr);
  EXPECT_FALSE(reruns.take({.trial_id = "t1", .attempt = 2}));
  EXPECT_FALSE(reruns.take({.trial_id = "t2", .attempt = attempt})) << "nobody asked for that trial";
  EXPECT_FALSE(reruns.find("t1")->ended());
  EXPECT_TRUE(reruns.take({.trial_id = "t1", .attempt = attempt}));
  EXPECT_TRUE(reruns.find("t1")->ended());
  EXPECT_EQ(reruns.find("t1")->record->attempt, attempt);
  reruns.end("t1");
  EXPECT_EQ(reruns.find("t1"), nullptr);
}

TEST(Reruns, EndWithTheReasonWhenTheirWorkerIsLost) {
  Reruns reruns;
  reruns.begin("t1");
  reruns.fail("t1", "worker w1 died");
  reruns.fail("t2", "worker w1 died");
  EXPECT_TRUE(reruns.find("t1")->ended());
  EXPECT_EQ(reruns.find("t1")->error, "worker w1 died");
  EXPECT_EQ(reruns.find("t2"), nullptr);
}

// A trial has at most a few attempts of its job, and a rerun a second at the most: each sample is told apart.
TEST(Reruns, AttemptsOfAnotherSecondAreOthers) {
  EXPECT_EQ(Reruns::attempt_at(1'700'000'000'000'000), Reruns::attempt_at(1'700'000'000'999'999));
  EXPECT_EQ(Reruns::attempt_at(1'700'000'001'000'000), Reruns::attempt_at(1'700'000'000'000'000) + 1);
  EXPECT_GE(Reruns::attempt_at(0), 1'000'000);
}

}  // namespace
}  // namespace tuner
