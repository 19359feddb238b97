// A published time against the same kernel measured anew: the interval, what clock and memory explain, and
// what a busy machine can and cannot disprove.
#include "tuner/verify/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::ElementsAre;

constexpr TimeVerdict kInside = TimeVerdict::kInside, kOutside = TimeVerdict::kOutside,
                      kCannotTell = TimeVerdict::kCannotTell;

// Published: 1000 us +- 2 %, pulses of 1000 ns, memory of 60 us. By a factor too fast or too slow, if asked
// for.
TunedConfig published(double wrong = 1) {
  return {.time_ns = wrong * 1e6,
          .time_low_ns = wrong * 0.98e6,
          .time_high_ns = wrong * 1.02e6,
          .ratio = wrong * 1000,
          .ratio_low = wrong * 980,
          .ratio_high = wrong * 1020,
          .memory_ns = 60e3};
}

// Measured anew in three processes: this time, beside such pulses and such memory (0: not timed), on a calm
// machine.
RaceRow again(double time_ns, double pulse_ns = 1000, double memory_ns = 60e3) {
  RaceFinalist f{.trial_id = "t1",
                 .samples_ns = std::vector<double>(3, time_ns),
                 .sentinel_ns = std::vector<double>(3, pulse_ns),
                 .process = {0, 1, 2}};
  if (memory_ns > 0) f.memory_ns.assign(3, memory_ns);
  return {.winner_trial_id = "t1",
          .finalists = {f},
          .time_ns = time_ns,
          .ratio = time_ns / pulse_ns,
          .certified = true,
          .turns = 9,
          .slices = 1000};
}
// These were the times of the three processes.
RaceRow processes(std::vector<double> times_ns, double time_ns) {
  RaceRow now = again(time_ns);
  now.finalists[0].samples_ns = std::move(times_ns);
  return now;
}
// The same beside others: so many of its slices were disturbed and taken anew.
RaceRow busy(RaceRow now, double share = 0.2) {
  now.retaken = static_cast<int>(share * now.slices);
  return now;
}

TimeVerdict verdict(const TunedConfig& p, const RaceRow& now) { return judge(p, now).verdict; }

TEST(Published, ATimeInTheIntervalIsInside) {
  EXPECT_EQ(verdict(published(), again(1.019e6)), kInside);
  EXPECT_EQ(verdict(published(), again(0.981e6)), kInside);
  EXPECT_EQ(verdict(published(), again(1.021e6)), kOutside);
  EXPECT_EQ(verdict(published(), again(0.979e6)), kOutside);
  EXPECT_TRUE(judge(published(), again(1.021e6)).slower);
  EXPECT_FALSE(judge(published(), again(0.979e6)).slower);
}

TEST(Published, AClockExplainsAsMuchAsItChanged) {
  EXPECT_EQ(verdict(published(), again(1.06e6, 1050)), kInside);
  EXPECT_EQ(verdict(published(), again(1.08e6, 1050)), kOutside);
  EXPECT_EQ(verdict(published(), again(0.97e6, 1050)), kOutside) << "a slower clock makes nothing faster";
  EXPECT_EQ(verdict(published(), again(0.94e6, 950)), kInside);
}

// Its pulses were of another kind: what they took says nothing of the clock.
TEST(Published, TheRatioOfAnotherHarnessSaysNothingOfTheClock) {
  TunedConfig before = published();
  before.environment.harness_abi = 5;
  RaceRow now = again(1.06e6, 1050);
  now.environment.harness_abi = 5;
  EXPECT_NEAR(clock_now(before, now), 1000.0 / 1050, 1e-9);
  now.environment.harness_abi = 6;
  EXPECT_EQ(clock_now(before, now), 1);
}

TEST(Published, MemoryExplainsAsMuchAsItChangedAndBeyondThatNothingIsSaid) {
  EXPECT_EQ(verdict(published(), again(1.06e6, 1000, 64e3)), kInside);
  EXPECT_EQ(verdict(published(), again(1.09e6, 1000, 64e3)), kOutside) << "more than the sentinel";
  EXPECT_EQ(verdict(published(), again(0.97e6, 1000, 64e3)), kOutside) << "slow memory makes nothing faster";
  EXPECT_EQ(verdict(published(), again(0.94e6, 1000, 57e3)), kInside);
  EXPECT_EQ(verdict(published(), again(0.92e6, 1000, 57e3)), kOutside);
  EXPECT_EQ(verdict(published(), again(1.03e6, 1000, 61e3)), kOutside) << "two levels of calm memory";
  EXPECT_EQ(verdict(published(), again(1.06e6, 1000, 0)), kOutside) << "not timed: explains nothing";
}

// 8 MB of weights, of which the sentinel reads a half: they may feel other memory three times as much.
TEST(Published, OfLargeOperandsNothingIsSaidBesideOtherMemory) {
  TunedConfig large = published();
  large.workload_key = "v1 matmul b=1 m=1 n=2048 k=1024 ta=0 tb=0 bias=0 act=none dtype=float32 const=b";
  EXPECT_EQ(verdict(large, again(1.28e6, 1000, 64.8e3)), kCannotTell);
  EXPECT_EQ(verdict(published(), again(1.28e6, 1000, 64.8e3)), kOutside);
  EXPECT_EQ(verdict(large, again(1.60e6, 1000, 64.8e3)), kOutside);
  EXPECT_EQ(verdict(large, again(1.16e6, 1000, 62e3)), kOutside) << "memory as it was";
  EXPECT_EQ(verdict(large, again(0.80e6, 1000, 55e3)), kCannotTell) << "a neighbour of then may be gone";
  EXPECT_EQ(verdict(large, again(0.55e6, 1000, 55e3)), kOutside);
  EXPECT_EQ(verdict(published(), again(1.28e6, 1000, 70e3)), kCannotTell) << "17 % are much for anybody";
}

TEST(Published, ClockAndMemoryDoNotExplainTwice) {
  EXPECT_EQ(verdict(published(), again(1.06e6, 1050, 63e3)), kInside);
  EXPECT_EQ(verdict(published(), again(1.09e6, 1050, 63e3)), kCannotTell);
  EXPECT_EQ(verdict(published(), again(1.13e6, 1050, 63e3)), kOutside);
}

TEST(Published, OneProcessInTheIntervalDisprovesNothing) {
  EXPECT_EQ(verdict(published(), processes({1.015e6, 1.05e6, 1.06e6}, 1.04e6)), kCannotTell);
  EXPECT_EQ(verdict(published(), processes({1.03e6, 1.05e6, 1.06e6}, 1.045e6)), kOutside);
  EXPECT_EQ(verdict(published(), processes({0.95e6, 0.94e6, 0.99e6}, 0.96e6)), kCannotTell);
  EXPECT_EQ(verdict(published(), processes({0.95e6, 0.94e6, 0.97e6}, 0.955e6)), kOutside);
}

// What disturbs makes slower: a true time can look too fast there, and never too slow.
TEST(Published, OnABusyMachineATimeIsDisprovedByWhatNobodyHides) {
  EXPECT_EQ(verdict(published(), busy(again(1.019e6))), kInside);
  EXPECT_EQ(verdict(published(), busy(again(1.045e6))), kCannotTell);
  EXPECT_EQ(verdict(published(), busy(again(1.06e6))), kOutside);
  EXPECT_EQ(verdict(published(), busy(again(1.09e6, 1050))), kCannotTell) << "beside a slower clock";
  EXPECT_EQ(verdict(published(), busy(again(1.10e6, 1000, 63e3))), kOutside) << "memory is explained once";
  EXPECT_EQ(verdict(published(), busy(processes({1.045e6, 3e6, 8e6}, 3e6))), kCannotTell)
      << "the fastest process is what counts";
  EXPECT_EQ(verdict(published(0.9), busy(again(1e6))), kOutside) << "10 % too fast";
  EXPECT_EQ(verdict(published(0.5), busy(processes({0.99e6, 3e6, 8e6}, 3e6))), kOutside);
  EXPECT_EQ(verdict(published(1.2), busy(again(1.0e6))), kOutside)
      << "too slow: nobody makes a kernel faster";
  EXPECT_EQ(verdict(published(1.2), busy(processes({1.0e6, 1.0e6, 1.3e6}, 1.1e6))), kCannotTell);
}

// Processes that differ too much for a certificate: whoever made them may have been there in all of them.
TEST(Published, WhereNothingIsCertifiedOnlyAFarTooFastTimeIsDisproved) {
  const auto wild = [](RaceRow now) {
    now.certified = false;
    now.uncertified_why = "the race knows the time of its fastest only to +- 70.5 %";
    return now;
  };
  EXPECT_EQ(verdict(published(), wild(again(1.3e6))), kCannotTell);
  EXPECT_EQ(verdict(published(0.9), wild(again(1e6))), kCannotTell) << "10 % too fast";
  EXPECT_EQ(verdict(published(0.5), wild(again(1e6))), kOutside) << "twice too fast";
  EXPECT_EQ(verdict(published(0.5), wild(processes({0.99e6, 3e6, 8e6}, 3e6))), kOutside);
  EXPECT_EQ(verdict(published(), wild(again(1.01e6))), kInside) << "who is there makes nothing faster";
}

TEST(Published, WhatMakesAMachineBusyIsSaid) {
  EXPECT_EQ(judge(published(), again(1e6)).busy, "");
  EXPECT_EQ(judge(published(), busy(again(1e6), 0.01)).busy, "") << "somebody now and then";
  EXPECT_EQ(judge(published(), busy(again(1e6), 0.2)).busy,
            "20 % of its calls were disturbed and taken anew");
  EXPECT_EQ(judge(published(), again(1e6, 1000, 64.8e3)).busy,
            "the memory that cores share is 8 % slower than then");
  RaceRow now = again(1e6);
  now.certified = false;
  now.uncertified_why = "the race knows the time of its fastest only to +- 70.5 %";
  EXPECT_EQ(judge(published(), now).busy, now.uncertified_why);
  now.turns = 0;
  now.slices = 0;  // a worker that does not count them
  now.certified = true;
  EXPECT_EQ(judge(published(), now).busy, "");
}

// Of several measurements the sentence holds of each that it counts.
TEST(Published, WhatIsOutsideIsSaidOfTheMeasurementsThatFoundIt) {
  const std::vector<Judgement> looks = {
      {.verdict = kCannotTell, .fastest_ns = 1.0e6, .slowest_ns = 1.3e6},
      {.verdict = kOutside, .slower = true, .fastest_ns = 1.2e6, .slowest_ns = 1.4e6},
      {.verdict = kOutside, .slower = true, .fastest_ns = 1.3e6, .slowest_ns = 1.5e6}};
  EXPECT_EQ(verdict_text(kOutside, published(), again(1.3e6), looks).at(0),
            "OUTSIDE: every process of 2 measurements took 1.200 ms or more");
  std::vector<Judgement> faster = looks;
  for (Judgement& look : faster) look.slower = false;
  EXPECT_EQ(verdict_text(kOutside, published(), again(0.5e6), faster).at(0),
            "OUTSIDE: every process of 2 measurements took 1.500 ms or less");
}

TEST(Published, NothingIsInsideWhereMostTurnsWereDisturbed) {
  RaceRow now = again(1e6);
  now.disturbed = 5;
  EXPECT_EQ(verdict(published(), now), kCannotTell);
  EXPECT_EQ(judge(published(), now).busy, "5 of 9 turns were disturbed");
  EXPECT_EQ(verdict(published(), again(1.2e6, 1100)), kCannotTell) << "a neighbour who stays";
  EXPECT_EQ(verdict(published(0.5), again(1.2e6, 1100)), kOutside);
}

// What the issue quotes: 17 of 44 turns discarded, not certified.
TEST(Published, ARightTimeOnALoadedMachineIsNotCalledFalse) {
  RaceRow now = processes({1.10e6, 1.28e6, 1.72e6}, 1.36e6);
  now.turns = 44;
  now.discarded = 17;
  now.certified = false;
  now.uncertified_why = "the race knows the time of its fastest only to +- 36.0 %";
  const Judgement look = judge(published(), now);
  EXPECT_EQ(look.verdict, kCannotTell);
  const std::vector<Judgement> looks(3, look);
  EXPECT_EQ(decided(looks), kCannotTell);
  EXPECT_THAT(verdict_text(kCannotTell, published(), now, looks),
              ElementsAre("cannot tell: the machine is busy", now.uncertified_why,
                          "1.360 ms now, published 1.000 ms (95 %: 0.980 .. 1.020 ms)"));
  const nlohmann::ordered_json j = verdict_json(kCannotTell, published(), now, looks);
  EXPECT_EQ(j["verdict"], "cannot tell");
  EXPECT_EQ(j["inside"], false);
  EXPECT_EQ(j["busy"], now.uncertified_why);
  EXPECT_EQ(j["discarded"], 17);
}

Judgement look(TimeVerdict verdict, bool slower = true) { return {.verdict = verdict, .slower = slower}; }

TEST(Published, OneInsideDecidesAndSoDoTwoOutside) {
  const Judgement in = look(kInside), out = look(kOutside), faster = look(kOutside, false),
                  unknown = look(kCannotTell);
  EXPECT_EQ(decided(std::vector{in}), kInside);
  EXPECT_EQ(decided(std::vector{out}), std::nullopt) << "by chance, one of twenty";
  EXPECT_EQ(decided(std::vector{out, out}), kOutside);
  EXPECT_EQ(decided(std::vector{out, in}), kInside);
  EXPECT_EQ(decided(std::vector{out, faster}), std::nullopt);
  EXPECT_EQ(decided(std::vector{out, faster, unknown}), kCannotTell);
  EXPECT_EQ(decided(std::vector{unknown, out, out}), kOutside);
  EXPECT_EQ(decided(std::vector{unknown, unknown}), std::nullopt);
  EXPECT_EQ(decided(std::vector{unknown, unknown, out}), kCannotTell);
}

TEST(Published, TextAndJsonSayTheSame) {
  const TunedConfig p = published(0.5);
  const RaceRow now = again(1e6);
  const std::vector<Judgement> looks(2, judge(p, now));
  EXPECT_THAT(verdict_text(kOutside, p, now, looks),
              ElementsAre("OUTSIDE: every process of 2 measurements took 1.000 ms or more",
                          "1.000 ms now, published 500.0 us (95 %: 490.0 .. 510.0 us)"));
  nlohmann::ordered_json j = verdict_json(kOutside, p, now, looks);
  EXPECT_EQ(j["verdict"], "OUTSIDE");
  EXPECT_EQ(j["measurements"], 2);
  EXPECT_EQ(j["fastest_process_ns"], 1e6);

  const RaceRow clocked = again(1.06e6, 1050);
  const Judgement inside = judge(published(), clocked);
  EXPECT_THAT(verdict_text(kInside, published(), clocked, {&inside, 1}),
              ElementsAre("inside: 1.060 ms now, published 1.000 ms (95 %: 0.980 .. 1.020 ms)",
                          "the clock is 5 % slower than then: 980.0 us to 1.071 ms is inside"));
  j = verdict_json(kInside, published(), clocked, {&inside, 1});
  EXPECT_EQ(j["verdict"], "inside");
  EXPECT_EQ(j["inside"], true);
  EXPECT_NEAR(j["inside_to_ns"].get<double>(), 1.071e6, 1);
}

}  // namespace
}  // namespace tuner
