// What the values of some tasks say about another's: which tasks are alike, and intervals that hold.
#include "tuner/study/likely_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>

#include "compiler_core/base/status.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

constexpr char kTarget[] = "llvm -mcpu=haswell -threads=1";

TaskLikeness conv(int64_t in, int64_t size, int64_t out, int64_t kernel, int64_t groups = 1,
                  const char* constant = "weight", const char* target = kTarget) {
  return {str("v1 conv2d n=1 ic=", in, " ih=", size, " iw=", size, " oc=", out, " kh=", kernel,
              " kw=", kernel, " stride=1,1 pad=0,0,0,0 dil=1,1 groups=", groups,
              " bias=0 act=none dtype=float32 layout=NCHW const=", constant),
          target};
}
TaskLikeness matmul(int64_t m) {
  return {str("v1 matmul b=1 m=", m, " n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=b"), kTarget};
}

TEST(TaskLikeness, TheKindOfWorkCountsForMoreThanItsSize) {
  const TaskLikeness depthwise = conv(32, 56, 32, 3, 32);
  EXPECT_EQ(depthwise.distance(conv(32, 56, 32, 3, 32)), 0);
  EXPECT_EQ(depthwise.weight(conv(32, 56, 32, 3, 32)), 1);
  EXPECT_LT(depthwise.distance(conv(384, 14, 384, 3, 384)), depthwise.distance(conv(32, 56, 32, 3)));
  const TaskLikeness dense = conv(64, 14, 64, 3);
  EXPECT_LT(dense.distance(conv(128, 7, 128, 3)), dense.distance(conv(64, 14, 64, 1)));
  EXPECT_LT(dense.distance(conv(128, 7, 128, 3)), dense.distance(conv(64, 14, 64, 3, 1, "none")));
}

TEST(TaskLikeness, OfAnotherOperatorALittleIsKnownOfAnotherKindOfTargetNothing) {
  EXPECT_TRUE(std::isinf(matmul(64).distance(conv(64, 14, 64, 3))));
  EXPECT_GT(matmul(64).weight(conv(64, 14, 64, 3)), 0);
  EXPECT_LT(matmul(64).weight(conv(64, 14, 64, 3)), matmul(64).weight(matmul(512)));
  EXPECT_EQ(conv(64, 14, 64, 3).weight(conv(64, 14, 64, 3, 1, "weight", "cuda -arch=sm_90")), 0);
  EXPECT_EQ(matmul(64).weight(TaskLikeness("v9 unheard of", kTarget)), 0);
}

TEST(TaskLikeness, AVariantIsOneKernelsConfigsMeanTheSameFor) {
  EXPECT_TRUE(conv(64, 14, 64, 3).same_variant(conv(128, 7, 64, 1)));
  EXPECT_FALSE(conv(64, 14, 64, 3).same_variant(conv(64, 14, 64, 3, 1, "none")));
  EXPECT_FALSE(conv(64, 14, 64, 3).same_variant(conv(64, 14, 64, 3, 64)));
  EXPECT_FALSE(
      conv(64, 14, 64, 3).same_variant(conv(64, 14, 64, 3, 1, "weight", "llvm -mcpu=znver4 -threads=1")));
}

std::vector<KnownValue> values_of(const std::deque<TaskLikeness>& tasks, const std::vector<double>& values) {
  std::vector<KnownValue> known;
  for (size_t i = 0; i < values.size(); ++i) known.push_back({&tasks[i], values[i]});
  return known;
}

TEST(LikelyValue, EightTasksTellNoIntervalAndNineDo) {
  std::deque<TaskLikeness> tasks;
  std::vector<double> values;
  EXPECT_FALSE(LikelyValue({}).of(matmul(64)));
  for (int i = 0; i < 9; ++i) {
    const auto range = LikelyValue(values_of(tasks, values)).of(matmul(64));
    EXPECT_FALSE(range && range->bounded) << i;
    tasks.push_back(matmul(64));
    values.push_back(0.1 * i);
  }
  const auto range = LikelyValue(values_of(tasks, values)).of(matmul(64));
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->bounded);
  EXPECT_NEAR(range->expected, 0.4, 1e-9);
  EXPECT_NEAR(range->rests_on, 9, 1e-9);
}

// Of two kinds of tasks one scatters: its intervals are wide, and the other's are not.
TEST(LikelyValue, IntervalsAreAsWideAsTheLikesScatter) {
  const RandomSeed seed(7);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::deque<TaskLikeness> tasks;
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) {
    tasks.push_back(matmul(64 + i));
    values.push_back(0.1 + 0.005 * normal(random));
    tasks.push_back(conv(32, 14 + i, 32, 3, 32));
    values.push_back(0.5 + 0.1 * normal(random));
  }
  const LikelyValue known(values_of(tasks, values));
  const auto calm = *known.of(matmul(80)), wild = *known.of(conv(32, 20, 32, 3, 32));
  EXPECT_NEAR(calm.expected, 0.1, 0.02);
  EXPECT_NEAR(wild.expected, 0.5, 0.1);
  EXPECT_LT(calm.high - calm.low, 0.2 * (wild.high - wild.low));
}

// Returns the share of truths inside the interval, over tasks whose values grow with their distance from one
// and scatter to one side.
double share_inside(int known_tasks, int rounds, std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> extent(16, 512);
  std::exponential_distribution<double> gain(8);
  const auto draw = [&](const TaskLikeness& task) {
    return 0.1 + 0.3 * task.distance(matmul(16)) + gain(random);
  };
  int inside = 0;
  for (int round = 0; round < rounds; ++round) {
    std::deque<TaskLikeness> tasks;
    std::vector<double> values;
    for (int i = 0; i < known_tasks; ++i) {
      tasks.push_back(matmul(extent(random)));
      values.push_back(draw(tasks.back()));
    }
    const TaskLikeness asked = matmul(extent(random));
    const double truth = draw(asked);
    const auto range = *LikelyValue(values_of(tasks, values)).of(asked);
    inside += range.low <= truth && truth <= range.high ? 1 : 0;
  }
  return static_cast<double>(inside) / rounds;
}

// Of 300 draws, three standard deviations are 7 points. The standard error of 200 errors adds 4 points to the
// 80 %, that of 20 more, because few errors may be lucky ones.
TEST(LikelyValue, FourOfFiveTruthsLieInsideAndMoreWhereFewAreKnown) {
  const RandomSeed seed(3);
  std::mt19937_64 random(seed);
  const double many = share_inside(200, 300, random), few = share_inside(20, 300, random);
  EXPECT_GE(many, 0.77);
  EXPECT_LE(many, 0.91);
  EXPECT_GE(few, 0.80);
}

}  // namespace
}  // namespace tuner
