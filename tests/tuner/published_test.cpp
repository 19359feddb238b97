// A published time against the same kernel measured anew: the interval, and what clock and memory explain.
#include "tuner/verify/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::HasSubstr;

// Published: 1000 us +- 2 %, pulses of 1000 ns, memory of 60 us.
TunedConfig published() {
  return {.time_ns = 1e6,
          .time_low_ns = 0.98e6,
          .time_high_ns = 1.02e6,
          .ratio = 1000,
          .ratio_low = 980,
          .ratio_high = 1020,
          .memory_ns = 60e3};
}

// Measured anew in three processes: this time, beside such pulses and such memory (0: not timed).
RaceRow again(double time_ns, double pulse_ns = 1000, double memory_ns = 60e3) {
  RaceFinalist f{.trial_id = "t1",
                 .samples_ns = std::vector<double>(3, time_ns),
                 .sentinel_ns = std::vector<double>(3, pulse_ns),
                 .process = {0, 1, 2}};
  if (memory_ns > 0) f.memory_ns.assign(3, memory_ns);
  return {
      .winner_trial_id = "t1", .finalists = {f}, .time_ns = time_ns, .ratio = time_ns / pulse_ns, .turns = 9};
}

TEST(Published, ATimeInTheIntervalIsInside) {
  EXPECT_STREQ(verdict(published(), again(1.019e6)), "inside");
  EXPECT_STREQ(verdict(published(), again(0.981e6)), "inside");
  EXPECT_STREQ(verdict(published(), again(1.021e6)), "OUTSIDE");
  EXPECT_STREQ(verdict(published(), again(0.979e6)), "OUTSIDE");
  EXPECT_EQ(judged_by(published(), again(1.019e6)), "");
}

TEST(Published, AClockExplainsAsMuchAsItChanged) {
  EXPECT_STREQ(verdict(published(), again(1.06e6, 1050)), "inside");
  EXPECT_STREQ(verdict(published(), again(1.08e6, 1050)), "OUTSIDE");
  EXPECT_STREQ(verdict(published(), again(0.97e6, 1050)), "OUTSIDE") << "a slower clock makes nothing faster";
  EXPECT_STREQ(verdict(published(), again(0.94e6, 950)), "inside");
  EXPECT_THAT(judged_by(published(), again(1.06e6, 1050)), HasSubstr("clock has changed"));
}

TEST(Published, MemoryExplainsAsMuchAsItChanged) {
  EXPECT_STREQ(verdict(published(), again(1.06e6, 1000, 64e3)), "inside");
  EXPECT_STREQ(verdict(published(), again(1.10e6, 1000, 64e3)), "OUTSIDE") << "more than the sentinel";
  EXPECT_STREQ(verdict(published(), again(0.97e6, 1000, 64e3)), "OUTSIDE")
      << "slow memory makes nothing faster";
  EXPECT_STREQ(verdict(published(), again(0.94e6, 1000, 57e3)), "inside");
  EXPECT_STREQ(verdict(published(), again(1.03e6, 1000, 61e3)), "OUTSIDE") << "two levels of calm memory";
  EXPECT_STREQ(verdict(published(), again(1.06e6, 1000, 0)), "OUTSIDE") << "not timed: explains nothing";
  EXPECT_EQ(judged_by(published(), again(1.06e6, 1000, 64.2e3)),
            ", shared memory is 7 % slower than then: judged by it");
  EXPECT_EQ(remeasured_json(published(), again(1.06e6, 1000, 66e3))["memory"], 1.1);
}

TEST(Published, ClockAndMemoryDoNotExplainTwice) {
  EXPECT_STREQ(verdict(published(), again(1.06e6, 1050, 63e3)), "inside");
  EXPECT_STREQ(verdict(published(), again(1.10e6, 1050, 63e3)), "OUTSIDE");
}

TEST(Published, NothingIsSaidBesideMostlyDisturbedTurns) {
  RaceRow now = again(1e6);
  now.disturbed = 5;
  EXPECT_STREQ(verdict(published(), now), "disturbed");
  EXPECT_STREQ(verdict(published(), again(1.2e6, 1100)), "disturbed") << "a neighbour who stays";
}

}  // namespace
}  // namespace tuner
