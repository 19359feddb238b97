// Which tasks are measured again, and in what order.
#include "tuner/study/revalidate_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/analytic_task.h"

namespace tuner::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kHere[] = "llvm -mcpu=haswell -threads=1", kThere[] = "llvm -mcpu=znver5 -threads=1";

class RevalidatePlanTest : public ::testing::Test {
 protected:
  // A task whose fastest config takes `ns`, found under `toolchain`.
  void tuned(const std::string& name, const std::string& target, double ns, const std::string& toolchain,
             int version = 1, int64_t uses = 1) {
    const std::string id = str("j", ++jobs_);
    ASSERT_TRUE(
        store_
            ->add_job({.id = id, .request_id = id, .tasks = {{"v1 " + name, target, "", uses}}, .trials = 1})
            .is_ok());
    std::vector<TrialRow> trials = {
        {.job_id = id, .template_name = "toy", .template_version = version, .config = "a=1"}};
    ASSERT_TRUE(store_->add_trials(trials).is_ok());
    MeasureRecord r{.trial_id = trials[0].id, .run_ns = {ns}, .cpu_ns = {ns}};
    r.environment = {.hardware = "m",
                     .toolchain = toolchain,
                     .harness_abi = 2,
                     .worker_id = "w",
                     .worker_incarnation = "1",
                     .host = "h"};
    r.finished_at_us = 1;
    ASSERT_TRUE(store_->add_records({r}).is_ok());
  }
  RevalidatePlan plan(bool current_too = false) {
    const auto made =
        plan_revalidation(*store_, store_->tasks().value(),
                          {.current_too = current_too,
                           .present =
                               [](const std::string&) {
                                 return Present{.toolchains = {"llvm 22 codegen 3"},
                                                .harness_abi = 2,
                                                .template_version = [](std::string_view) { return 1; }};
                               },
                           .measurable = [](const std::string& target) { return target == kHere; }});
    EXPECT_TRUE(made.is_ok()) << made.message();
    return made ? *made : RevalidatePlan();
  }
  static std::vector<std::string> names(const RevalidatePlan& plan) {
    std::vector<std::string> out;
    for (const RevalidateItem& item : plan.items) out.push_back(item.task.workload_key.substr(3));
    return out;
  }

  tuner::TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = Store::open(folder_.file("db"), Store::Mode::kWrite).value();
  int jobs_ = 0;
};

TEST_F(RevalidatePlanTest, TheLargestExpectedLossOfAllUsesComesFirst) {
  tuned("short", kHere, 100, "llvm 22 codegen 2");
  tuned("long", kHere, 1000, "llvm 22 codegen 2");
  tuned("often", kHere, 100, "llvm 22 codegen 2", 1, /*uses=*/30);
  tuned("template", kHere, 500, "llvm 22 codegen 3", /*version=*/7);  // 5 % of 500 against 2 % of 1000
  EXPECT_THAT(names(plan()), ElementsAre("often", "template", "long", "short"));
  EXPECT_EQ(plan().items[0].task.uses, 30);
  tuned("often", kHere, 100, "llvm 22 codegen 2", 1, /*uses=*/2);  // a later job that uses it less
  EXPECT_EQ(plan().items[0].task.uses, 30) << "the most of all jobs";
  EXPECT_EQ(plan().items[2].staleness.reason, "compiler: llvm 22 codegen 2 then, llvm 22 codegen 3 now");
}

TEST_F(RevalidatePlanTest, CurrentTasksAndThoseOfOtherMachinesAreCountedAndLeftOut) {
  tuned("current", kHere, 1000, "llvm 22 codegen 3");
  tuned("elsewhere", kThere, 1000, "llvm 22 codegen 2");
  tuned("stale", kHere, 1, "llvm 22 codegen 2");
  EXPECT_THAT(names(plan()), ElementsAre("stale"));
  EXPECT_EQ(plan().current, 1);
  EXPECT_EQ(plan().elsewhere, 1);
  EXPECT_THAT(names(plan(/*current_too=*/true)), ElementsAre("stale", "current")) << "however little is lost";
}

TEST_F(RevalidatePlanTest, ATaskThatNeverGaveARightAnswerIsUntuned) {
  ASSERT_TRUE(
      store_->add_job({.id = "j1", .request_id = "j1", .tasks = {{"v1 none", kHere}}, .trials = 1}).is_ok());
  std::vector<TrialRow> trials = {{.job_id = "j1", .template_name = "toy", .config = "a=1"}};
  ASSERT_TRUE(store_->add_trials(trials).is_ok());
  EXPECT_THAT(names(plan()), IsEmpty());
  EXPECT_EQ(plan().untuned, 1);
}

TEST(ExpectedLoss, GrowsWithEveryCause) {
  Staleness s;
  EXPECT_EQ(expected_loss(s), 0);
  double before = 0;
  for (const StaleCause cause :
       {StaleCause::kHarness, StaleCause::kToolchain, StaleCause::kTemplate, StaleCause::kHardware}) {
    EXPECT_GT(expected_loss({.causes = {cause}}), before);
    before = expected_loss({.causes = {cause}});
  }
  EXPECT_GT(expected_loss({.causes = {StaleCause::kToolchain, StaleCause::kHardware}}), before);
}

}  // namespace
}  // namespace tuner::cli
