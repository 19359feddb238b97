#include "tuner/search/stopping_estimate.h"

#include <gtest/gtest.h>

#include "tests/tuner/measured_space.h"

namespace tuner {
namespace {

using testing::MeasuredSpace;

// 1000 configs in two knobs.
MeasuredSpace plane() {
  MeasuredSpace m{.name = "plane", .space = ConfigSpace(), .time_ns = {}};
  std::vector<int64_t> x, y;
  for (int64_t i = 1; i <= 40; ++i) x.push_back(i);
  for (int64_t i = 1; i <= 25; ++i) y.push_back(i);
  static_cast<void>(m.space.choice("x", x).try_first(1));
  static_cast<void>(m.space.choice("y", y).try_first(1));
  CHECK(m.space.seal().is_ok());
  return m;
}

Observation right(ConfigIndex config, double time_ns) {
  return {.candidate = {0, config}, .ok = true, .time_ns = time_ns};
}

class StoppingEstimateTest : public ::testing::Test {
 protected:
  const MeasuredSpace plane_ = plane();
  const SearchSpace space_ = plane_.search_space();
  StoppingEstimate estimate_{space_};
  void feed(int n, double time_ns) {
    for (int i = 0; i < n; ++i) {
      const Observation o = right(next_++, time_ns);
      estimate_.observe({&o, 1});
    }
  }
  ConfigIndex next_ = 0;
};

TEST_F(StoppingEstimateTest, SaysNothingBeforeThereIsEnoughToGoBy) {
  feed(63, 1000);
  EXPECT_EQ(estimate_.chance(), std::nullopt);
  feed(1, 1000);
  ASSERT_NE(estimate_.chance(), std::nullopt);
  EXPECT_GT(*estimate_.chance(), 0);
  EXPECT_LT(*estimate_.chance(), 1);
  EXPECT_GE(*estimate_.expected_gain(), 0.01 * *estimate_.chance());
}

TEST_F(StoppingEstimateTest, SaysNothingWhileNothingWorked) {
  for (int i = 0; i < 100; ++i) {
    const Observation failed{.candidate = {0, next_++}};
    estimate_.observe({&failed, 1});
  }
  EXPECT_EQ(estimate_.results(), 100);
  EXPECT_EQ(estimate_.chance(), std::nullopt);
}

TEST_F(StoppingEstimateTest, FactsCountWhatTheySay) {
  feed(100, 2000);
  feed(1, 1000);   // twice as fast at the 101st
  feed(9, 1020);   // within 3 % of it
  feed(40, 1100);  // longer than what counts as recent
  const StoppingFacts f = *estimate_.facts();
  EXPECT_NEAR(f.crowd, std::log(11.0), 1e-9);
  EXPECT_NEAR(f.recent, std::log(1.1), 1e-9);
  EXPECT_NEAR(f.lead, std::sqrt(std::log(1.02)), 1e-9);
  EXPECT_NEAR(f.stall, std::log(1.5), 1e-9);
}

TEST_F(StoppingEstimateTest, ASmallGainDoesNotEndAStall) {
  feed(50, 1000);
  feed(50, 995);
  EXPECT_NEAR(estimate_.facts()->stall, std::log(2.0), 1e-9);
}

TEST_F(StoppingEstimateTest, CutResultsAreTrialsWithoutABest) {
  feed(40, 1000);
  const Observation cut{.candidate = {0, next_++}, .ok = true, .time_ns = 10, .cut = true};
  estimate_.observe({&cut, 1});
  EXPECT_EQ(estimate_.results(), 41);
  EXPECT_EQ(estimate_.best_ns(), 1000);
}

TEST_F(StoppingEstimateTest, TheChanceFallsAsASearchStalls) {
  feed(20, 3000);
  feed(20, 1000);
  double before = 1;
  for (int i = 0; i < 5; ++i) {
    feed(100, 1500);
    EXPECT_LT(*estimate_.chance(), before);
    before = *estimate_.chance();
  }
  EXPECT_LT(before, 0.1);
}

TEST_F(StoppingEstimateTest, NoChanceWhenTheSpaceIsUsedUp) {
  feed(1000, 1000);
  EXPECT_EQ(estimate_.chance(), 0);
  EXPECT_EQ(estimate_.expected_gain(), 0);
}

}  // namespace
}  // namespace tuner
