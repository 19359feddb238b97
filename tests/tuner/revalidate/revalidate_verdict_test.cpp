// What a job that measures a stale task again says of the config that was the answer before.
#include "tuner/revalidate/verdict.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

class RevalidateVerdictTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(store_
                    ->add_job({.id = "j1",
                               .request_id = "j1",
                               .tasks = {{"v1 toy", "llvm -mcpu=haswell -threads=1", ""}},
                               .trials = 3})
                    .is_ok());
    for (const char* config : {"a=1", "a=2", "a=3"})
      trials_.push_back({.job_id = "j1", .template_name = "toy", .template_version = 1, .config = config});
    ASSERT_TRUE(store_->add_trials(trials_).is_ok());
    for (const TrialRow& trial : trials_) {
      MeasureRecord r{.trial_id = trial.id, .run_ns = {500}, .cpu_ns = {500}};
      r.environment = {.hardware = "m",
                       .toolchain = "llvm 22 codegen 3",
                       .harness_abi = 2,
                       .worker_id = "w",
                       .worker_incarnation = "1",
                       .host = "h"};
      r.finished_at_us = 1;
      ASSERT_TRUE(store_->add_records({r}).is_ok());
    }
  }
  // A race of all three that a=2 wins; those of `tie_set` cannot be told from it.
  void raced(const std::vector<size_t>& tie_set) {
    RaceRow race{.job_id = "j1", .winner_trial_id = trials_[1].id, .default_trial_id = trials_[0].id};
    race.time_ns = 300;
    for (const TrialRow& trial : trials_)
      race.finalists.push_back({trial.id, {400, 400, 400}, {1, 1, 1}, {0, 1, 2}});
    for (const size_t tied : tie_set) race.tie_set.push_back(trials_[tied].id);
    race.environment.hardware = "m";
    race.finished_at_us = 2;
    ASSERT_TRUE(store_->add_race(race).is_ok());
  }
  RevalidateVerdict verdict(const std::string& before) {
    RevalidateItem item;
    item.before.template_name = "toy";
    item.before.config = before;
    RevalidateVerdict found{.job_id = "j1"};
    const Status status = look_up(*store_, item, found);
    EXPECT_TRUE(status.is_ok()) << status.message();
    return found;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = Store::open(folder_.file("db"), Store::Mode::kWrite).value();
  std::vector<TrialRow> trials_;
};

TEST_F(RevalidateVerdictTest, WithoutARaceItsTrialCounts) {
  EXPECT_EQ(verdict("a=1").old_config_now_ns, 500);
  EXPECT_FALSE(verdict("a=1").tied);
  EXPECT_FALSE(verdict("a=9").old_config_now_ns.has_value()) << "it was not measured again";
}

TEST_F(RevalidateVerdictTest, ATieIsOneWithTheOldConfig) {
  raced({1, 2});
  EXPECT_FALSE(verdict("a=1").tied) << "others tie";
  EXPECT_NEAR(verdict("a=1").old_config_now_ns.value(), 400, 1e-9);
  EXPECT_TRUE(verdict("a=3").tied);
}

TEST_F(RevalidateVerdictTest, TheWinnersTimeIsTheRaces) {
  raced({1});
  EXPECT_EQ(verdict("a=2").old_config_now_ns, 300);
}

}  // namespace
}  // namespace tuner
