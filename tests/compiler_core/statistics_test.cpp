// Figures that samples are summarised by, against tables, worked examples and complete enumeration.
#include "compiler_core/base/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler_core/base/random.h"

namespace tuner {
namespace {

using Values = std::vector<double>;

TEST(Statistics, MedianAndItsIntervalOfKnownSamples) {
  EXPECT_EQ(median(Values{}), 0);
  EXPECT_EQ(median(Values{3, 1, 2}), 2);
  EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
  const Interval one = median_interval(Values{7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  Values samples;
  for (int i = 1; i <= 101; ++i) samples.push_back(i);
  const Interval wide = median_interval(samples);
  // Order statistics give 41..61 as the exact 95 % interval of the median of 101 samples.
  EXPECT_NEAR(wide.low, 41, 1);
  EXPECT_NEAR(wide.high, 61, 1);
  EXPECT_EQ(wide.low, median_interval(samples).low);
}

// Every way to draw n of n samples with repetition, each once.
Interval by_enumeration(const Values& samples) {
  const size_t n = samples.size();
  size_t ways = 1;
  for (size_t i = 0; i < n; ++i) ways *= n;
  Values medians;
  for (size_t way = 0; way < ways; ++way) {
    Values draw;
    for (size_t i = 0, rest = way; i < n; ++i, rest /= n) draw.push_back(samples[rest % n]);
    medians.push_back(median(draw));
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double q) {
    return medians[static_cast<size_t>(std::ceil(q * static_cast<double>(ways))) - 1];
  };
  return {at(0.025), at(0.975)};
}

TEST(Statistics, OfFewSamplesTheIntervalIsThatOfAllResamples) {
  for (const Values& samples :
       std::vector<Values>{{5, 1}, {3, 9, 4}, {10, 2, 30, 7}, {1, 1, 8, 2, 5}, {6, 3, 11, 2, 40, 9}}) {
    const Interval exact = median_interval(samples), all = by_enumeration(samples);
    EXPECT_EQ(exact.low, all.low) << samples.size();
    EXPECT_EQ(exact.high, all.high) << samples.size();
  }
}

// What R and NumPy say of the same values.
TEST(Statistics, QuantilesAreInterpolatedBetweenTheSortedValues) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.9), 7);
  EXPECT_DOUBLE_EQ(quantile({4, 2, 1, 3}, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile({15, 20, 35, 40, 50}, 0.4), 29);
  EXPECT_DOUBLE_EQ(quantile({10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.9), 9.1);
  EXPECT_EQ(quantile({3, 1, 2}, 0), 1);
  EXPECT_EQ(quantile({3, 1, 2}, 1), 3);
  EXPECT_DOUBLE_EQ(lower_quartile({100, 900, 102}), 101);
  EXPECT_DOUBLE_EQ(lower_quartile({4, 2, 1, 3}), 1.75);
}

TEST(Statistics, AWeightedQuantileIsTheValueThatReachesTheShare) {
  EXPECT_EQ(weighted_quantile({}, 0.5), 0);
  EXPECT_EQ(weighted_quantile({{3, 1}, {1, 1}, {2, 1}}, 0.5), 2);
  EXPECT_EQ(weighted_quantile({{1, 1}, {2, 1}, {3, 1}, {4, 1}}, 0.5), 2) << "nothing is interpolated";
  EXPECT_EQ(weighted_quantile({{1, 1}, {10, 9}}, 0.1), 1);
  EXPECT_EQ(weighted_quantile({{1, 1}, {10, 9}}, 0.11), 10);
  EXPECT_EQ(weighted_quantile({{5, 0}, {6, 2}}, 1), 6);
}

TEST(Statistics, MeanAndItsDeviation) {
  const Mean mean = mean_of(Values{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(mean.mean, 5);
  EXPECT_DOUBLE_EQ(mean.deviation, std::sqrt(32.0 / 7));
  EXPECT_DOUBLE_EQ(mean.deviation_of_mean(), std::sqrt(4.0 / 7));
  EXPECT_EQ(mean.n, 8u);
  EXPECT_EQ(mean.degrees, 7u);
  EXPECT_EQ(mean_of(Values{3}).deviation, 0);
  EXPECT_EQ(mean_of(Values{}).deviation_of_mean(), 0);
}

// Dana's self-awareness data, the worked example of Wilcox, "Introduction to Robust Estimation": three of 19
// come off each end, the trimmed mean is 282.7, the winsorised variance 21551.4.
TEST(Statistics, ATrimmedMeanOfAWorkedExample) {
  const Mean mean = trimmed_mean_of(
      {77, 87, 88, 114, 151, 210, 219, 246, 253, 262, 296, 299, 306, 376, 428, 515, 666, 1310, 2611});
  EXPECT_EQ(mean.n, 19u);
  EXPECT_EQ(mean.degrees, 12u);
  EXPECT_NEAR(mean.mean, 282.69, 0.01);
  EXPECT_NEAR(mean.deviation, std::sqrt(21551.4) / (13.0 / 19), 0.01);
  EXPECT_EQ(trimmed_mean_of({4}).mean, 4);
  EXPECT_EQ(trimmed_mean_of({}).n, 0u);
  EXPECT_DOUBLE_EQ(trimmed_mean_of({1, 2, 3, 4, 1e9}).mean, 3) << "one of five is taken off each end";
}

// Percentage points of the t distribution as tables print them.
TEST(Statistics, StudentQuantilesAreWhatTheTablesSay) {
  struct Row {
    double degrees, t95, t975, t995;
  };
  for (const Row& row :
       {Row{1, 6.314, 12.706, 63.657}, Row{2, 2.920, 4.303, 9.925}, Row{3, 2.353, 3.182, 5.841},
        Row{4, 2.132, 2.776, 4.604}, Row{5, 2.015, 2.571, 4.032}, Row{6, 1.943, 2.447, 3.707},
        Row{7, 1.895, 2.365, 3.499}, Row{8, 1.860, 2.306, 3.355}, Row{9, 1.833, 2.262, 3.250},
        Row{10, 1.812, 2.228, 3.169}, Row{15, 1.753, 2.131, 2.947}, Row{20, 1.725, 2.086, 2.845},
        Row{30, 1.697, 2.042, 2.750}, Row{60, 1.671, 2.000, 2.660}, Row{120, 1.658, 1.980, 2.617}}) {
    EXPECT_NEAR(student_quantile(0.95, row.degrees), row.t95, 0.0005) << row.degrees;
    EXPECT_NEAR(student_quantile(0.975, row.degrees), row.t975, 0.0005) << row.degrees;
    EXPECT_NEAR(student_quantile(0.995, row.degrees), row.t995, 0.0005) << row.degrees;
  }
  // Closed forms: of one degree the tangent, of two 2 (p - 1/2) sqrt(2 / (4 p (1 - p))).
  for (const double p : {0.6, 0.95, 0.999, 1 - 1e-9}) {
    const double pi = std::acos(-1);
    EXPECT_NEAR(student_quantile(p, 1) * std::tan(pi * (1 - p)), 1, 1e-6) << p;
    EXPECT_NEAR(student_quantile(p, 2) / (2 * (p - 0.5) * std::sqrt(2 / (4 * p * (1 - p)))), 1, 1e-6) << p;
  }
  EXPECT_NEAR(student_quantile(0.9995, 30), 3.64596, 1e-5);
  EXPECT_NEAR(student_quantile(0.975, 1e6), 1.95996, 1e-4);
  EXPECT_NEAR(student_quantile(0.025, 10), -2.22814, 1e-5);
  EXPECT_NEAR(student_quantile(0.5, 4), 0, 1e-9);
  const double between = student_quantile(0.975, 2.5);
  EXPECT_TRUE(between < 4.303 && between > 3.182) << between << ": degrees need not be whole";
}

// The first numbers of splitmix64 with seed 1234567, as its reference implementation prints them.
TEST(Random, NumbersAreThoseOfSplitmix64) {
  uint64_t state = 1234567;
  EXPECT_EQ(next_random(state), 6457827717110365317u);
  EXPECT_EQ(next_random(state), 3203168211198807973u);
  EXPECT_EQ(next_random(state), 9817491932198370423u);
}

}  // namespace
}  // namespace tuner
