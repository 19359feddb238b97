// Which record of a task is the best, and the statistics behind it.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "db/stats.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

class BestTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = folder_.file("t.db");
};

TEST_F(BestTest, BestIsTheFastestRightUncutRecordOfTheTask) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1", {{"v1 work", "cpu one"}, {"v1 other", "cpu one"}})));
  const auto ids = add_trials(*store, "j1", {"slow=1", "fast=1", "cut=1", "wrong=1"});
  const auto other = add_trials(*store, "j1", {"foreign=1"}, /*task_index=*/1);
  MeasureRecord cut = ok_record(ids[2], {1}), wrong = ok_record(ids[3], {});
  cut.cut = true;
  wrong.outcome = Outcome::kWrongAnswer;
  ASSERT_OK(store->add_records({ok_record(ids[0], {30, 31, 32}), ok_record(ids[1], {20, 90, 22}), cut, wrong,
                                ok_record(other[0], {2})}));
  const auto best = store->best("v1 work", "cpu one");
  ASSERT_TRUE(best.is_ok()) << best.message();
  EXPECT_EQ(best->config, "fast=1");
  EXPECT_EQ(best->time_ns, 22);
  EXPECT_GE(best->time_low_ns, 20);
  EXPECT_LE(best->time_low_ns, 22);
  EXPECT_EQ(best->time_high_ns, 90);
  EXPECT_EQ(best->template_name, "toy_x86");
  EXPECT_EQ(best->template_version, 3);
  EXPECT_EQ(best->trial_id, ids[1]);
  EXPECT_EQ(best->trials, 4);
  EXPECT_THAT(best->outcomes,
              testing::UnorderedElementsAre(std::pair(Outcome::kOk, 3), std::pair(Outcome::kWrongAnswer, 1)));
  EXPECT_EQ(best->environment.hardware, "cpu X");
  EXPECT_EQ(store->best("v1 work", "cpu one", {"else_x86", "toy_x86"})->config, "fast=1");
  EXPECT_EQ(store->best("v1 work", "cpu one", {"toy", "else_x86"}).status().code(), StatusCode::kNotFound);
}

TEST_F(BestTest, OfTwoEquallyFastTheOlderIsBest) {
  const auto store = must_open(path_);
  ASSERT_OK(store->add_job(job_row("j1")));
  const auto ids = add_trials(*store, "j1", {"a=1", "a=2"});
  ASSERT_OK(store->add_records({ok_record(ids[1], {5})}));
  ASSERT_OK(store->add_records({ok_record(ids[0], {5})}));
  EXPECT_EQ(store->best("v1 work", "cpu one")->config, "a=2");
}

TEST_F(BestTest, BestOfATaskWithoutARightAnswerIsNotFound) {
  const auto store = must_open(path_);
  EXPECT_EQ(store->best("v1 work", "cpu one").status().code(), StatusCode::kNotFound);
  ASSERT_OK(store->add_job(job_row("j1")));
  const std::string id = add_trials(*store, "j1", {"a=1"})[0];
  MeasureRecord crashed = ok_record(id, {});
  crashed.outcome = Outcome::kCrashed;
  ASSERT_OK(store->add_records({crashed}));
  EXPECT_EQ(store->best("v1 work", "cpu one").status().code(), StatusCode::kNotFound);
}

TEST(Stats, MedianAndItsIntervalOfKnownSamples) {
  EXPECT_EQ(median(std::vector<double>{}), 0);
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  const Interval one = median_interval(std::vector<double>{7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  std::vector<double> samples;
  for (int i = 1; i <= 101; ++i) samples.push_back(i);
  const Interval wide = median_interval(samples);
  // Order statistics give 41..61 as the exact 95 % interval of the median of 101 samples.
  EXPECT_NEAR(wide.low, 41, 3);
  EXPECT_NEAR(wide.high, 61, 3);
  EXPECT_EQ(wide.low, median_interval(samples).low);
}

// Every way to draw n of n samples with repetition, each once.
Interval by_enumeration(const std::vector<double>& samples) {
  const size_t n = samples.size();
  size_t ways = 1;
  for (size_t i = 0; i < n; ++i) ways *= n;
  std::vector<double> medians;
  for (size_t way = 0; way < ways; ++way) {
    std::vector<double> draw;
    for (size_t i = 0, rest = way; i < n; ++i, rest /= n) draw.push_back(samples[rest % n]);
    medians.push_back(median(draw));
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double q) {
    return medians[static_cast<size_t>(std::ceil(q * static_cast<double>(ways))) - 1];
  };
  return {at(0.025), at(0.975)};
}

TEST(Stats, OfFewSamplesTheIntervalIsThatOfAllResamples) {
  for (const std::vector<double>& samples : std::vector<std::vector<double>>{
           {5, 1}, {3, 9, 4}, {10, 2, 30, 7}, {1, 1, 8, 2, 5}, {6, 3, 11, 2, 40, 9}}) {
    const Interval exact = median_interval(samples), all = by_enumeration(samples);
    EXPECT_EQ(exact.low, all.low) << samples.size();
    EXPECT_EQ(exact.high, all.high) << samples.size();
  }
}

}  // namespace
}  // namespace tuner
