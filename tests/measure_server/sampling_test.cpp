// When enough samples have been taken: the stated precision, the candidate that is clearly too slow, neither.
#include "measure_server/runner/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "measure_server/runner/calm_gate.h"

namespace tuner {
namespace {

// Samples as scripted, the last one for ever. Each fills the time asked for, so every call is a sample.
struct Script {
  std::vector<double> run_ns, cpu_ns;

  Samples sampled(SamplingOptions options) const {
    options.fill_ns = 1;
    options.stop_at_ns = monotonic_ns() + 60e9;
    size_t next = 0;
    bool warm = false;
    Samples out;
    EXPECT_TRUE(take_samples(
        options,
        [&](int64_t calls, Sample& s) {
          EXPECT_EQ(calls, 1);
          if (!std::exchange(warm, true)) return s = {1e9, 1e9}, true;  // warms up, longer than it may
          const size_t i = std::min(next++, run_ns.size() - 1);
          s = {run_ns[i], cpu_ns.empty() ? run_ns[i] : cpu_ns[std::min(i, cpu_ns.size() - 1)]};
          return true;
        },
        out));
    return out;
  }
  size_t taken(const SamplingOptions& options) const { return sampled(options).run_ns.size(); }
};

TEST(Sampling, SteadySamplesEndAtThree) {
  EXPECT_EQ((Script{{100, 100.1, 100.2}}.taken({.repeats = 9})), 3u);
}

TEST(Sampling, PrecisionZeroTakesAllThatWereAskedForHoweverSlow) {
  EXPECT_EQ((Script{{100}}.taken({.repeats = 9, .precision = 0})), 9u);
  EXPECT_EQ((Script{{100}}.taken({.repeats = 9, .precision = 0, .slow_above_ns = 10})), 9u);
}

TEST(Sampling, TheStatedPrecisionDecidesHowManyAreTaken) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(100, 2);  // 2 %
  Script noisy;
  for (int i = 0; i < 2000; ++i) noisy.run_ns.push_back(noise(random));
  size_t before = 0;
  for (const double precision : {0.1, 0.01, 0.002}) {
    const Samples s = noisy.sampled({.repeats = 2000, .precision = precision});
    EXPECT_LT(s.run_ns.size(), 2000u) << precision;
    EXPECT_GT(s.run_ns.size(), before);
    const MedianEstimate e = estimate_median(s.run_ns);
    EXPECT_LT(e.half_width, precision * e.median);
    EXPECT_NEAR(e.median, 100, 2 * precision * 100);
    before = s.run_ns.size();
  }
}

TEST(Sampling, OnePreemptedSampleWidensNothing) {
  const MedianEstimate calm = estimate_median({100, 101, 99, 100.5, 99.5, 100.2, 99.8});
  const MedianEstimate preempted = estimate_median({100, 101, 99, 100.5, 99.5, 100.2, 3484});
  EXPECT_LT(preempted.half_width, 1.7 * calm.half_width);
  EXPECT_NEAR(preempted.median, 100.2, 1e-9);
}

TEST(Sampling, TheIntervalHoldsTheMedianOfNormalNoiseIn95PercentOfManySamples) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(100, 1);
  constexpr int kDraws = 20'000;
  for (const int n : {9, 31, 100}) {
    int inside = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<double> v(static_cast<size_t>(n));
      for (double& x : v) x = noise(random);
      const MedianEstimate e = estimate_median(v);
      inside += std::fabs(e.median - 100) <= e.half_width ? 1 : 0;
    }
    const double share = static_cast<double>(inside) / kDraws;
    EXPECT_GT(share, n == 9 ? 0.80 : 0.91) << n << " samples";
    EXPECT_LT(share, 0.97) << n << " samples";
  }
}

TEST(Sampling, AClearlySlowerCandidateEndsAtTwo) {
  const Samples s = Script{{150, 152, 149}}.sampled({.repeats = 9, .precision = 1e-6, .slow_above_ns = 120});
  EXPECT_EQ(s.run_ns.size(), 2u);
  EXPECT_FALSE(s.cut) << "its time is a time, not a bound";
}

TEST(Sampling, OneThatMayBeAsFastGoesOn) {
  // Slower than 120 in the median, but not certainly.
  EXPECT_EQ((Script{{150, 100, 140, 110, 160, 105, 130}}.taken(
                {.repeats = 7, .precision = 1e-6, .slow_above_ns = 120})),
            7u);
}

TEST(Sampling, APreemptedOneThreadCandidateIsNotTakenForASlowOne) {
  const Script preempted{{150, 152, 149, 151}, {99, 102, 98, 101}};
  const SamplingOptions by_clock{.repeats = 4, .precision = 1e-6, .slow_above_ns = 120};
  SamplingOptions by_cpu = by_clock;
  by_cpu.slow_by_cpu_time = true;
  EXPECT_EQ(preempted.taken(by_clock), 2u);
  EXPECT_EQ(preempted.taken(by_cpu), 4u);
}

// Warms up on calls whose times are given, the last one again and again; returns how many steps it took.
size_t steps_until_warm(const std::vector<double>& us, double limit_us = 1e6, double known_us = 0) {
  size_t steps = 0;
  const auto take = [&](int64_t calls, Sample& sample) {
    EXPECT_EQ(calls, 1);
    sample.run_ns = 1e3 * us[std::min(steps, us.size() - 1)];
    ++steps;
    return true;
  };
  EXPECT_TRUE(warm_up(/*step_ns=*/1, limit_us * 1e3, /*hopeless_ns=*/0, take, nullptr, known_us * 1e3));
  return steps;
}

TEST(WarmUp, EndsWhenThreeStepsBringNothing) {
  EXPECT_EQ(steps_until_warm({580}), 4u);
  EXPECT_EQ(steps_until_warm({1162, 942, 620, 580}), 7u);
  EXPECT_EQ(steps_until_warm({600, 599, 598, 597}), 4u);  // less than 1 %
  // A slow step between them is no reason to go on; a faster one is.
  EXPECT_EQ(steps_until_warm({600, 900, 600, 900}), 4u);
  EXPECT_EQ(steps_until_warm({600, 900, 900, 590, 900}), 7u);
  EXPECT_EQ(steps_until_warm({800, 700, 600, 500, 400}, /*limit_us=*/2000), 3u);
}

TEST(WarmUp, EndsAtATimeThatIsKnownToBeWarm) {
  const auto steps = [](const std::vector<double>& us) {
    return steps_until_warm(us, 1e6, /*known_us=*/580);
  };
  EXPECT_EQ(steps({580}), 1u);
  EXPECT_EQ(steps({1162, 942, 620, 585, 580}), 4u);  // within 1 %
  EXPECT_EQ(steps({600}), 4u) << "it is slower now: three steps have to bring nothing";
}

TEST(WarmUp, StepsFillTheirTime) {
  std::vector<int64_t> calls;
  EXPECT_TRUE(warm_up(/*step_ns=*/1000, /*limit_ns=*/1e6, /*hopeless_ns=*/0, [&](int64_t n, Sample& sample) {
    calls.push_back(n);
    sample.run_ns = 10.0 * static_cast<double>(n);
    return true;
  }));
  EXPECT_EQ(calls, (std::vector<int64_t>{1, 100, 100, 100}));
  EXPECT_FALSE(warm_up(1000, 1e6, 0, [](int64_t, Sample&) { return false; }));
}

TEST(WarmUp, AHopelessCandidateIsNotWarmedUpToTheEnd) {
  size_t steps = 0;
  EXPECT_TRUE(warm_up(/*step_ns=*/1, /*limit_ns=*/1e9, /*hopeless_ns=*/1000, [&](int64_t, Sample& sample) {
    sample.run_ns = 5000.0 - 500 * static_cast<double>(steps++);
    return true;
  }));
  EXPECT_EQ(steps, 2u);
}

// Its third call says that it will be cut: two steps, and the sample that is the bound. One that may not be
// is warmed up.
TEST(WarmUp, WhatWillBeCutIsNotWarmedUpToTheEnd) {
  const auto calls_until_known = [](double ns) {
    int taken = 0;
    Samples out;
    EXPECT_TRUE(take_samples(
        {.fill_ns = 1, .stop_at_ns = monotonic_ns() + 60e9, .cut_above_ns = 200},
        [&](int64_t, Sample& s) {
          return s = {ns, ns}, ++taken, true;
        },
        out));
    EXPECT_EQ(out.cut, ns > 200);
    return taken;
  };
  EXPECT_EQ(calls_until_known(260), 3);
  EXPECT_EQ(calls_until_known(240), 4 + 1);
  EXPECT_EQ(calls_until_known(190), 4 + 3);
}

// A machine whose neighbour is there during the first `disturbed` calls, the warm-up among them.
Samples beside_a_neighbour(int disturbed, SamplingOptions options) {
  int calls = 0;
  CalmGate gate(100, [&] {
    const double ns = calls < disturbed ? 200 : 100;
    return Pulse{.ns = ns, .even_ns = ns};
  });
  options.fill_ns = 1;
  options.stop_at_ns = monotonic_ns() + 60e9;
  options.gate = &gate;
  Samples out;
  EXPECT_TRUE(take_samples(
      options,
      [&](int64_t n, Sample& s) {
        EXPECT_EQ(n, 1);
        if (calls == 0) return s = {1e9, 1e9}, ++calls, true;  // warms up, longer than it may
        s = calls < disturbed ? Sample{200, 200} : Sample{100, 100};
        ++calls;
        return true;
      },
      out));
  return out;
}

TEST(Sampling, DisturbedSamplesAreLeftOutWhereThreeCalmOnesStay) {
  const Samples few = beside_a_neighbour(3, {.repeats = 9, .precision = 0});
  EXPECT_EQ(few.disturbed, 0);
  EXPECT_EQ(few.run_ns, std::vector<double>(7, 100.0));
  const Samples most = beside_a_neighbour(8, {.repeats = 9, .precision = 0});
  EXPECT_EQ(most.run_ns.size(), 9u);
  EXPECT_EQ(most.disturbed, 7) << "the last two were calm: too few to do without the others";
}

TEST(Sampling, ADisturbedSampleIsCutOnlyIfNoNeighbourExplainsIt) {
  EXPECT_FALSE(beside_a_neighbour(100, {.repeats = 3, .cut_above_ns = 150}).cut) << "he may have doubled it";
  EXPECT_TRUE(beside_a_neighbour(100, {.repeats = 3, .cut_above_ns = 50}).cut);
  EXPECT_TRUE(beside_a_neighbour(0, {.repeats = 3, .cut_above_ns = 99}).cut) << "this one is its own time";
}

}  // namespace
}  // namespace tuner
