// Jobs as the daemon's clients see them: states, versions, figures of progress, on made-up time.
#include "tuner/daemon/tables/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// 2 x 64^3 operations a call.
const std::string kMatmul = "v1 matmul b=1 m=64 n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=none";
constexpr double kFlops = 2.0 * 64 * 64 * 64;

JobRow row(const std::string& id, size_t tasks = 1) {
  JobRow job;
  job.id = id;
  job.tasks.assign(tasks, {kMatmul, "llvm -mcpu=haswell -threads=1"});
  return job;
}

class OneJob : public testing::Test {
 protected:
  // A turn of the search in which so many results came.
  bool turn(size_t results, std::vector<double> best_ns = {0, 0}, SearchCost cost = {}) {
    progress.trials_done += static_cast<int64_t>(results);
    return job.take_progress(progress, cost, best_ns, results, now);
  }
  int64_t now = 100'000;
  Job job{row("j1", 2), /*trials=*/50, now};
  JobProgress progress{.trials_total = 100};
};

TEST_F(OneJob, RunsUntilItHasEnded) {
  EXPECT_EQ(job.state(), JobState::kQueued);
  EXPECT_FALSE(job.ended());
  job.set_state(JobState::kRunning);
  EXPECT_FALSE(job.ended());
  for (const JobState end : {JobState::kFinished, JobState::kCancelled, JobState::kFailed}) {
    job.set_state(end);
    EXPECT_TRUE(job.ended());
  }
}

TEST_F(OneJob, KeepsTheBestTimeOfEachTaskWhileItRuns) {
  EXPECT_THAT(job.best_ns(), IsEmpty());
  turn(4, {0, 900});
  EXPECT_THAT(job.best_ns(), ElementsAre(Pair(1, 900)));
  turn(0, {500, 900});
  turn(1, {500, 800});
  EXPECT_THAT(job.best_ns(), ElementsAre(Pair(0, 500), Pair(1, 800)));
  job.set_state(JobState::kFinished);
  EXPECT_THAT(job.best_ns(), IsEmpty()) << "no lease is cut by a job that has ended";
}

TEST_F(OneJob, ReportsItsFirstTurnAndThenWhenResultsCame) {
  EXPECT_EQ(job.progress_version(), 0);
  EXPECT_TRUE(turn(0)) << "watchers see what is to come";
  EXPECT_FALSE(turn(0));
  EXPECT_EQ(job.progress_version(), 1);
  EXPECT_TRUE(turn(3));
  EXPECT_EQ(job.progress_version(), 2);
  EXPECT_EQ(job.report().search.trials_done, 3);
  job.note_race();
  EXPECT_EQ(job.progress_version(), 3) << "a race is news, too";
  EXPECT_EQ(job.event_version(), 0);
  job.note_event();
  EXPECT_EQ(job.event_version(), 1);
}

TEST_F(OneJob, SpeedIsThatOfTheTaskInTheReport) {
  progress.task_index = 1;
  turn(1);
  EXPECT_EQ(job.report().best_gflops, 0) << "no time yet";
  progress.best_ns = 1024;
  turn(1);
  EXPECT_DOUBLE_EQ(job.report().best_gflops, kFlops / 1024);
}

TEST_F(OneJob, RateIsOverTwentySecondsAndTellsWhenTheRestIsDone) {
  turn(1);
  EXPECT_EQ(job.report().trials_per_second, 0) << "one result tells no rate";
  now += 10'000;
  turn(20);  // 21 results, the first 10 s ago
  EXPECT_DOUBLE_EQ(job.report().trials_per_second, 2);
  EXPECT_DOUBLE_EQ(job.report().eta_s, (100 - 21) / 2.0);
  now += 15'000;
  turn(10);  // the first has left the window: 30 results, the first 15 s ago
  EXPECT_DOUBLE_EQ(job.report().trials_per_second, 29 / 15.0);
  now += 20'001;
  turn(1);
  EXPECT_EQ(job.report().trials_per_second, 0) << "after a long silence it is not known";
  EXPECT_EQ(job.report().eta_s, 0);
}

TEST_F(OneJob, TwoResultsAtOneMomentTellNoRate) {
  turn(2);
  EXPECT_EQ(job.report().trials_per_second, 0);
}

TEST_F(OneJob, TimeGoesToItsPhases) {
  const auto phase = [&](TrialPhase p) { return job.report().phases.at(static_cast<size_t>(p)); };
  turn(0, {}, {.search_ms = 6});                               // learns, and proposes nothing
  turn(0, {}, {.trials = 4, .search_ms = 10, .store_ms = 8});  // 16 ms for 4; each stored in 2 ms
  job.count_lease(0.5);
  job.count_costs({.build_ms = 30, .run_ms = 70}, /*check_ms=*/20, /*store_ms=*/1);
  job.count_costs({.build_ms = 50}, /*check_ms=*/0, /*store_ms=*/1);  // not built: it did not run
  turn(2);
  EXPECT_DOUBLE_EQ(phase(TrialPhase::kPropose).total_ms, 16);
  EXPECT_DOUBLE_EQ(phase(TrialPhase::kPropose).median_ms, 4);
  EXPECT_DOUBLE_EQ(phase(TrialPhase::kBuild).total_ms, 80);
  EXPECT_DOUBLE_EQ(phase(TrialPhase::kRun).total_ms, 70);
  EXPECT_DOUBLE_EQ(phase(TrialPhase::kCheck).median_ms, 20);
  EXPECT_DOUBLE_EQ(phase(TrialPhase::kStore).total_ms, 2 * (1 + 0.5 + 2));
}

TEST_F(OneJob, WaitsInVainOnceAndOnlyWhileSomethingIsOpen) {
  EXPECT_FALSE(job.may_wait_in_vain(8, 5'000, now + 5'000));
  EXPECT_FALSE(job.may_wait_in_vain(0, 5'000, now + 9'000)) << "nothing is open: nobody is missed";
  now += 4'000;
  turn(1);
  EXPECT_FALSE(job.may_wait_in_vain(8, 5'000, now + 5'000)) << "counted from the latest result";
  EXPECT_TRUE(job.may_wait_in_vain(8, 5'000, now + 5'001));
  EXPECT_TRUE(job.may_wait_in_vain(8, 5'000, now + 6'000)) << "as long as there was nothing to tell";
  job.told_that_it_waits();
  EXPECT_FALSE(job.may_wait_in_vain(8, 5'000, now + 60'000)) << "told once";
}

TEST_F(OneJob, ResultsAreTakenOnce) {
  EXPECT_FALSE(job.take_results());
  job.results_came();
  job.results_came();
  EXPECT_TRUE(job.take_results());
  EXPECT_FALSE(job.take_results());
  job.results_came();
  job.set_state(JobState::kCancelled);
  EXPECT_FALSE(job.take_results()) << "nobody searches any more";
}

TEST_F(OneJob, KnowsTheWorkOfATaskUnlessItsWorkloadIsOfAnotherVersion) {
  EXPECT_EQ(static_cast<double>(job.flops(1)), kFlops);
  JobRow strange = row("j2");
  strange.tasks[0].workload_key = "v9 fold n=3";
  EXPECT_EQ(Job(strange, 1, now).flops(0), 0);
}

TEST(JobsOfADaemon, EndedOnesAreFoundAndNotRunning) {
  Jobs jobs;
  EXPECT_EQ(jobs.find("j1"), nullptr);
  jobs.add(row("j1"), 10, 0);
  jobs.add(row("j2"), 10, 0);
  EXPECT_THAT(jobs.running(), SizeIs(2));
  jobs.find("j1")->set_state(JobState::kFinished);
  ASSERT_THAT(jobs.running(), SizeIs(1));
  EXPECT_EQ(jobs.running()[0]->id(), "j2");
  EXPECT_EQ(jobs.find("j1")->state(), JobState::kFinished);
}

TEST(JobsOfADaemon, AJobThatIsContinuedIsAnotherRunAndWhoHoldsTheOldOneSeesItsEnd) {
  Jobs jobs;
  jobs.add(row("j1"), 10, 0);
  const std::shared_ptr<Job> first = jobs.find("j1");
  first->ask_to_cancel();
  first->set_state(JobState::kCancelled);
  jobs.add(row("j1"), 20, 5'000);
  EXPECT_EQ(first->state(), JobState::kCancelled);
  EXPECT_EQ(jobs.find("j1")->state(), JobState::kQueued);
  EXPECT_EQ(jobs.find("j1")->trials(), 20);
  EXPECT_FALSE(jobs.find("j1")->cancel_asked());
  EXPECT_EQ(jobs.find("j1")->progress_version(), 0);
}

}  // namespace
}  // namespace tuner
