// Samples from several processes, and which of these count.
#include "compiler_core/base/process_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tuner {
namespace {

using testing::ElementsAre;

std::vector<int> numbers(const std::vector<ProcessTime>& processes) {
  std::vector<int> out;
  for (const ProcessTime& p : processes) out.push_back(p.process);
  return out;
}

// Processes 0, 1, .. beside memory of these levels.
std::vector<ProcessTime> beside(const std::vector<double>& memory_ns) {
  std::vector<ProcessTime> out;
  for (const double ns : memory_ns)
    out.push_back({.process = static_cast<int>(out.size()), .time_ns = 1, .ratio = 1, .memory_ns = ns});
  return out;
}

TEST(ProcessTimes, AProcessHasTheLowerQuartileOfItsTimesAndTheMedianOfItsMemory) {
  const std::vector<double> times = {7, 100, 5, 110, 6}, pulses = {1, 10, 1, 10, 2},
                            memory = {3, 50, 9, 60, 4};
  const std::vector<int> process = {4, 2, 4, 2, 4};
  const std::vector<ProcessTime> all = process_times({times, pulses, memory, process});
  ASSERT_THAT(numbers(all), ElementsAre(2, 4));
  EXPECT_EQ(all[0].time_ns, 102.5);
  EXPECT_EQ(all[0].ratio, 10.25);
  EXPECT_EQ(all[0].memory_ns, 55);
  EXPECT_EQ(all[1].time_ns, 5.5);
  EXPECT_EQ(all[1].ratio, 4);
  EXPECT_EQ(all[1].memory_ns, 4);
}

TEST(ProcessTimes, WhatWasNotTimedIsZero) {
  const std::vector<double> times = {7, 8};
  const std::vector<int> process = {0, 1};
  const std::vector<ProcessTime> all = process_times({times, {}, {}, process});
  EXPECT_EQ(all[1].ratio, 0);
  EXPECT_EQ(all[1].memory_ns, 0);
  EXPECT_THAT(numbers(beside_calm_memory(all)), ElementsAre(0, 1)) << "and says nothing about calm";
  EXPECT_EQ(memory_level_ns(all), 0);
  EXPECT_EQ(memory_level_ns({}), 0);
}

TEST(ProcessTimes, WhereMostHadCalmMemoryTheOthersDoNotCount) {
  EXPECT_THAT(numbers(beside_calm_memory(beside({57, 62, 58, 63, 59}))), ElementsAre(0, 2, 4));
  EXPECT_THAT(numbers(beside_calm_memory(beside({57, 62, 58, 63, 59, 64}))), ElementsAre(0, 2, 4)) << "half";
  EXPECT_THAT(numbers(beside_calm_memory(beside({57, 62, 58, 63, 59, 64, 64}))),
              ElementsAre(0, 1, 2, 3, 4, 5, 6))
      << "fewer than half";
  EXPECT_THAT(numbers(beside_calm_memory(beside({57, 62, 58}))), ElementsAre(0, 1, 2)) << "fewer than three";
  EXPECT_THAT(numbers(beside_calm_memory(beside({100, 103, 104, 104.1}))), ElementsAre(0, 1, 2)) << "4 %";
  EXPECT_TRUE(beside_calm_memory({}).empty());
  EXPECT_EQ(memory_level_ns(beside_calm_memory(beside({57, 62, 58, 63, 59}))), 58);
}

// Five processes of 100 .. 104 ns beside calm memory, whose trimmed mean leaves out the ends: by hand.
TEST(ProcessTimes, ASpreadIsTheTrimmedMeanOfLogarithmsWithTheRangeOfOneMoreProcess) {
  std::vector<ProcessTime> all;
  for (int i = 0; i < 5; ++i)
    all.push_back({.process = i, .time_ns = 100.0 + i, .ratio = (100.0 + i) / 10, .memory_ns = 50});
  const double mean = (std::log(101) + std::log(102) + std::log(103)) / 3;
  const Spread time = time_spread(all), ratio = ratio_spread(all);
  EXPECT_NEAR(time.value, std::exp(mean), 1e-9);
  EXPECT_NEAR(ratio.value, std::exp(mean) / 10, 1e-9);
  EXPECT_NEAR(time.low * time.high, time.value * time.value, 1e-6) << "as far up as down, by factors";
  // Winsorised logarithms of 101, 101, 102, 103, 103 deviate by 0.009804, over 1 - 2/5 of the samples;
  // Student's t of 2 degrees is 4.3027 in tables; one more process beside five; and 1.7 % of drift.
  const double deviation = 0.00980426 / 0.6, chance = 4.302653 * deviation * std::sqrt(1.2);
  const double half = std::sqrt(chance * chance + 0.017 * 0.017);
  EXPECT_NEAR(std::log(time.high / time.value), half, 1e-6);
  EXPECT_NEAR(std::log(ratio.value / ratio.low), half, 1e-6);
  EXPECT_NEAR(time.half_width(), ratio.half_width(), 1e-12);
  // The clock changed meanwhile: ratios are steadier than times.
  for (ProcessTime& p : all) p.ratio = 10 + 0.001 * p.process;
  EXPECT_NEAR(time_spread(all).half_width(), 0.017, 0.001) << "and only the drift is left";
  for (ProcessTime& p : all) p.time_ns = 100, p.ratio = 10 + p.process;
  EXPECT_NEAR(time_spread(all).half_width(), 0.017, 1e-4) << "nor do ratios widen a steady time";
  EXPECT_EQ(time_spread({}).value, 0);
  EXPECT_EQ(ratio_spread({}).high, 0);
}

// What an exact clock says is known after one process; one that contradicts itself is no exact clock.
TEST(ProcessTimes, AnExactClockLeavesNoRange) {
  const auto spread = [](const std::vector<double>& times, const std::vector<int>& process, bool exact) {
    const std::vector<double> pulses(times.size(), 2);
    const std::vector<ProcessTime> all =
        process_times({.times_ns = times, .pulses_ns = pulses, .process = process, .exact_clock = exact});
    EXPECT_EQ(are_exact(all), time_spread(all).half_width() == 0);
    EXPECT_EQ(are_exact(all), ratio_spread(all).half_width() == 0);
    return time_spread(all);
  };
  const Spread known = spread({123457, 123457}, {0, 0}, true);
  EXPECT_EQ(known.low, 123457) << "not the exponential of a logarithm";
  EXPECT_EQ(known.value, 123457);
  EXPECT_EQ(known.high, 123457);
  EXPECT_GT(spread({123457, 123457}, {0, 0}, false).half_width(), 0.016) << "the same of another clock";
  EXPECT_GT(spread({123457, 123458}, {0, 0}, true).half_width(), 0.016) << "two times in one process";
  EXPECT_GT(spread({123457, 123458}, {0, 1}, true).half_width(), 0.016) << "two processes differ";
  EXPECT_FALSE(are_exact({}));
}

}  // namespace
}  // namespace tuner
