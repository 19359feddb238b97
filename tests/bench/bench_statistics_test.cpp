// Medians, their intervals and ratios: what bench_gpu's figures mean.
#include <gtest/gtest.h>

#include "tests/bench/common/statistics.h"

namespace tuner {
namespace {

constexpr uint64_t kSeed = 7;

TEST(BenchStatistics, MedianOfOddEvenAndNone) {
  EXPECT_EQ(median(std::vector<double>{5, 1, 3}), 3);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{}), 0);
}

TEST(BenchStatistics, EqualSamplesHaveNoWidthAndOneOutlierMovesNothing) {
  const Figure same = median_interval(std::vector<double>(20, 8.0), kSeed);
  EXPECT_EQ(same.low, 8);
  EXPECT_EQ(same.high, 8);
  std::vector<double> samples(20, 8.0);
  samples[3] = 1000;
  EXPECT_EQ(median_interval(samples, kSeed).high, 8);
}

TEST(BenchStatistics, TheIntervalHoldsTheMedianAndIsRepeatable) {
  std::vector<double> samples;
  for (int i = 0; i < 41; ++i) samples.push_back(100 + i);  // median 120
  const Figure once = median_interval(samples, kSeed), again = median_interval(samples, kSeed);
  EXPECT_EQ(once.middle, 120);
  // Order statistics 14 and 26 of 41 bound the median with 95 %: 113 and 127.
  EXPECT_NEAR(once.low, 113, 2);
  EXPECT_NEAR(once.high, 127, 2);
  EXPECT_EQ(once.low, again.low);
  EXPECT_EQ(once.high, again.high);
}

TEST(BenchStatistics, ARatioKeepsTheRoundsOfBothTogether) {
  std::vector<double> ours, peer;
  for (int i = 0; i < 41; ++i) {
    ours.push_back(100 + 5 * i);  // the clock falls during the run: both slow down by the same factor
    peer.push_back(0.8 * ours.back());
  }
  const Figure ratio = ratio_interval(peer, ours, kSeed);
  EXPECT_NEAR(ratio.low, 0.8, 1e-12);
  EXPECT_NEAR(ratio.middle, 0.8, 1e-12);
  EXPECT_NEAR(ratio.high, 0.8, 1e-12);
}

TEST(BenchStatistics, GeometricMean) {
  EXPECT_NEAR(geometric_mean({0.5, 2}), 1, 1e-12);
  EXPECT_EQ(geometric_mean({}), 0);
}

}  // namespace
}  // namespace tuner
