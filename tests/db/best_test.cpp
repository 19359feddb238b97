// Which record of a task is the best.
#include <gmock/gmock.h>

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

}  // namespace
}  // namespace tuner
