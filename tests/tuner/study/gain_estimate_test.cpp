// What tuning would gain, learned from searches whose course is known.
#include "tuner/study/gain_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/search/task_space.h"
#include "tuner/study/task_estimate.h"

namespace tuner::cli {
namespace {

constexpr char kTarget[] = "llvm -mcpu=haswell -threads=1";
JobRow::Task matmul(int64_t m) {
  return {str("v1 matmul b=1 m=", m, " n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=b"), kTarget,
          ""};
}

// The default takes 1000 ns; the best falls to 1000 x `left` within `within` of `trials` trials.
TaskHistory history(const JobRow::Task& task, double left, int64_t within, int64_t trials) {
  TaskHistory h{.task = task, .default_ns = 1000, .seconds_per_trial = 0.25, .race_seconds = 10};
  for (int64_t n = 1; n <= trials; ++n) {
    const double part = std::min(1.0, static_cast<double>(n) / static_cast<double>(within));
    h.best_ns.push_back(1000 * std::exp(std::log(left) * part));
  }
  return h;
}

TEST(GainEstimate, WhatSimilarTasksGainedIsExpectedOfAnUntunedOne) {
  std::vector<TaskHistory> histories;
  for (int i = 0; i < 12; ++i) histories.push_back(history(matmul(32 + 8 * i), 0.5 + 0.01 * i, 40, 128));
  const GainEstimate estimate(std::move(histories));
  const auto gain = estimate.of_tuning(matmul(68), Before::kDefault);
  ASSERT_TRUE(gain);
  EXPECT_NEAR(gain->expected, 0.45, 0.04);
  EXPECT_LT(gain->low, 0.45);
  EXPECT_GT(gain->high, 0.45);
  EXPECT_LE(gain->high, 1);
}

TEST(GainEstimate, OfAnotherKindOfTargetNothingIsLearned) {
  const GainEstimate estimate({history(matmul(64), 0.5, 40, 128)});
  JobRow::Task gpu = matmul(64);
  gpu.target = "cuda -arch=sm_90";
  EXPECT_FALSE(estimate.of_tuning(gpu, Before::kDefault));
  EXPECT_FALSE(estimate.of_more_trials(gpu, 32));
  EXPECT_FALSE(GainEstimate({}).of_tuning(matmul(64), Before::kDefault));
}

TEST(GainEstimate, FewCurvesGiveWideIntervals) {
  std::vector<TaskHistory> few = {history(matmul(64), 0.5, 40, 128)}, many;
  for (int i = 0; i < 20; ++i) many.push_back(history(matmul(64 + i), 0.5, 40, 128));
  const auto wide = GainEstimate(few).of_tuning(matmul(60), Before::kDefault),
             narrow = GainEstimate(many).of_tuning(matmul(60), Before::kDefault);
  EXPECT_DOUBLE_EQ(wide->expected, narrow->expected);
  EXPECT_GT(wide->high - wide->low, 0.5);
  EXPECT_LT(narrow->high - narrow->low, 0.1);
}

TEST(GainEstimate, GoingOnGainsWhatTheCurvesStillFell) {
  std::vector<TaskHistory> histories;
  for (int i = 0; i < 12; ++i) histories.push_back(history(matmul(64 + i), 0.5, 64, 256));
  const GainEstimate estimate(std::move(histories));
  EXPECT_NEAR(estimate.of_more_trials(matmul(60), 32)->expected, 1 - std::sqrt(0.5), 0.02);
  EXPECT_NEAR(estimate.of_more_trials(matmul(60), 64)->expected, 0, 1e-9);
  EXPECT_FALSE(estimate.of_more_trials(matmul(60), 200)) << "no curve is that long";
}

TEST(GainEstimate, TrialsAndTimeAreThoseOfSimilarSearches) {
  std::vector<TaskHistory> histories;
  for (int i = 0; i < 8; ++i) histories.push_back(history(matmul(64 + i), 0.5, 100, 256));
  const GainEstimate estimate(std::move(histories));
  const Cost fresh = estimate.cost(matmul(60), 0);
  EXPECT_TRUE(fresh.known);
  EXPECT_EQ(fresh.trials, 96);  // nine tenths of the way down, in whole batches
  EXPECT_DOUBLE_EQ(fresh.seconds, 96 * 0.25 + 10);
  EXPECT_EQ(estimate.cost(matmul(60), 64).trials, 48);
  EXPECT_FALSE(GainEstimate({}).cost(matmul(60), 0).known);
}

TEST(GainEstimate, TheTimeOfAnUntunedTaskFollowsTheRateOfItsLikes) {
  const GainEstimate estimate({history(matmul(64), 0.5, 40, 128)});
  EXPECT_NEAR(estimate.now_ns(matmul(128), Before::kDefault), 2000, 1);  // twice the work at the same rate
  EXPECT_EQ(estimate.now_ns({"v1 softmax rows=16 columns=64 dtype=float32", kTarget, ""}, Before::kDefault),
            0);
}

// The machine does 100 GFLOP/s, so matmul(m) takes at least 81.92 x m ns; the defaults take 1.25 times as
// long.
TEST(GainEstimate, NoTimeAndNoGainPassesTheRoofline) {
  const Target target = parse_target(kTarget).value();
  RecordedRoofs roofs;
  std::vector<TaskHistory> histories;
  for (int i = 0; i < 12; ++i) {
    const JobRow::Task task = matmul(32 + 8 * i);
    const Workload workload = workload_from_key(task.workload_key).value();
    const double bound = static_cast<double>(workload.flops()) / 100;
    roofs.add(workload, target, 100, 0, 0, true);
    histories.push_back(history(task, 0.5, 40, 128));  // as if it had gained half
    histories.back().default_ns = 1.25 * bound;
    for (double& ns : histories.back().best_ns) ns *= 1.25 * bound / 1000;
  }
  const GainEstimate with(histories, roofs), without(histories);
  const JobRow::Task asked = matmul(68);
  const double bound = 68.0 * 64 * 64 * 2 / 100;
  EXPECT_DOUBLE_EQ(with.bound_ns(asked), bound);
  EXPECT_EQ(without.bound_ns(asked), 0);
  EXPECT_NEAR(with.now_ns(asked, Before::kDefault), 1.25 * bound, 1e-6 * bound);
  const Gain gain = *with.of_tuning(asked, Before::kDefault),
             uncut = *without.of_tuning(asked, Before::kDefault);
  EXPECT_NEAR(uncut.expected, 0.5, 0.02);
  EXPECT_FALSE(uncut.cut);
  EXPECT_TRUE(gain.cut);
  EXPECT_NEAR(gain.expected, 0.2, 1e-6);
  EXPECT_NEAR(gain.high, 0.2, 1e-6);
  EXPECT_LE(gain.low, gain.expected);
  for (TaskHistory& h : histories) h.default_ns *= 0.5;  // as a wrong record might say
  EXPECT_DOUBLE_EQ(GainEstimate(histories, roofs).now_ns(asked, Before::kDefault), bound);
  EXPECT_EQ(GainEstimate(histories, roofs).of_tuning(asked, Before::kDefault)->high, 0);
}

TEST(GainEstimate, ABoundCutsAllOfTheInterval) {
  Gain gain{.expected = 0.3, .low = 0.1, .high = 0.6};
  cut_by_bound(gain, 1000, 0);
  EXPECT_FALSE(gain.cut) << "no bound is known";
  cut_by_bound(gain, 1000, 390);
  EXPECT_FALSE(gain.cut) << "nearly as far";
  cut_by_bound(gain, 1000, 950);
  EXPECT_TRUE(gain.cut);
  for (const double each : {gain.expected, gain.low, gain.high}) EXPECT_NEAR(each, 0.05, 1e-12);
  cut_by_bound(gain, 1000, 950);
  EXPECT_TRUE(gain.cut) << "it stays cut";
  cut_by_bound(gain, 900, 950);
  EXPECT_EQ(gain.high, 0) << "already faster than the bound";
}

TEST(GainEstimate, AnAnswerChosenAmongConfigsLeavesLessThanTheDefault) {
  std::vector<TaskHistory> histories;
  for (int i = 0; i < 12; ++i) {
    histories.push_back(history(matmul(32 + 8 * i), 0.5, 40, 128));
    histories.back().lent_ns = 520;
  }
  const GainEstimate estimate(histories);
  EXPECT_NEAR(estimate.of_tuning(matmul(68), Before::kDefault)->expected, 0.5, 0.01);
  const Gain gain = *estimate.of_tuning(matmul(68), Before::kChosen);
  EXPECT_NEAR(gain.expected, 1 - 500.0 / 520, 0.001);
  EXPECT_EQ(gain.low, 0);
  for (TaskHistory& h : histories) h.lent_ns = 1500;  // the default is chosen then
  EXPECT_NEAR(GainEstimate(histories).of_tuning(matmul(68), Before::kChosen)->expected, 0.5, 0.01);
}

TEST(GainEstimate, ARaceSaysWhatWasGainedAndTheLeastOfManyTrialsDoesNot) {
  TaskHistory h = history(matmul(64), 0.9, 40, 128);
  h.lent_ns = 950;
  EXPECT_NEAR(*gain_of(h, Before::kDefault), 0.1, 1e-9);
  h.raced_default_ns = 1010;
  h.raced_last_ns = 1000;
  EXPECT_NEAR(*gain_of(h, Before::kDefault), 1 - 1000.0 / 1010, 1e-9);
  EXPECT_FALSE(gain_of(h, Before::kChosen)) << "no race tells how fast the lent config is";
  h.raced_lent_ns = 1100;
  EXPECT_NEAR(*gain_of(h, Before::kChosen), 1 - 1000.0 / 1010, 1e-9) << "the default was faster";
  h.raced_lent_ns = 1000;
  EXPECT_EQ(gain_of(h, Before::kChosen), 0);
}

// Five configs are all there are: no search will find more.
TEST(GainEstimate, AnExhaustedSpaceTellsAsMuchAsALongSearch) {
  TaskHistory h = history(matmul(64), 0.8, 3, 5);
  EXPECT_FALSE(gain_of(h, Before::kDefault));
  h.exhausted = true;
  EXPECT_NEAR(*gain_of(h, Before::kDefault), 0.2, 1e-9);
  EXPECT_TRUE(GainEstimate({h}).of_more_trials(matmul(72), 4));
  EXPECT_FALSE(GainEstimate({h}).of_more_trials(matmul(72), 6));
}

TEST(GainEstimate, SkippingNeedsASmallExpectedGainAndNoChanceOfALargeOne) {
  const Gain small{.expected = 0.005, .low = 0, .high = 0.1};
  EXPECT_TRUE(worth_skipping(small, Before::kDefault));
  EXPECT_FALSE(worth_skipping(small, Before::kChosen)) << "that config was never measured";
  EXPECT_FALSE(worth_skipping({.expected = 0.02, .low = 0, .high = 0.1}, Before::kDefault));
  EXPECT_FALSE(worth_skipping({.expected = 0.005, .low = 0, .high = 0.5}, Before::kDefault));
}

// Gains that scatter around what is known of the operator: the intervals hold what they say.
TEST(GainEstimate, HeldOutTasksLieInsideTheIntervalsAboutAsOftenAsTheySay) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0, 0.12);
  std::vector<TaskHistory> histories;
  for (int i = 0; i < 60; ++i)
    histories.push_back(history(matmul(64 + 2 * i), std::min(1.0, 0.6 * std::exp(normal(random))), 40, 128));
  const GainEstimate estimate(std::move(histories));
  const Calibration c = calibrate_tuning(estimate, Before::kDefault);
  EXPECT_EQ(c.tasks, 60);
  EXPECT_GE(c.inside_share(), 0.7);
  EXPECT_LE(c.inside_share(), 0.95);
  EXPECT_LT(c.mean_error, 0.1);
  EXPECT_GT(c.median_width, 0.1);
  EXPECT_LT(c.median_width, 0.3);
  EXPECT_EQ(c.skips, 0);
  EXPECT_EQ(calibrate_more_trials(estimate, 100).tasks, 0) << "128 trials are not twice 100";
  EXPECT_EQ(calibrate_more_trials(estimate, 64).tasks, 60);
}

// From rows: curve, default, rate and race as they were.
TEST(GainEstimate, ReadsHistoriesOutOfADatabase) {
  tuner::TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const JobRow::Task task = matmul(64);
  ASSERT_TRUE(store->add_job({.id = "j1", .request_id = "r", .tasks = {task}, .trials = 40}).is_ok());
  const TaskSpace space = make_task_space(task).value();
  const SearchSpace::Part& part = space.search.parts[0];
  std::vector<TrialRow> trials;
  std::mt19937_64 random(1);
  for (int i = 0; i < 40; ++i)
    trials.push_back(
        {.job_id = "j1",
         .template_name = part.template_name,
         .template_version = space.template_versions[0],
         .config =
             part.space->at(i == 0 ? part.space->default_index() : part.space->sample(random)).to_text()});
  ASSERT_TRUE(store->add_trials(trials).is_ok());
  std::vector<MeasureRecord> records;
  for (size_t i = 0; i < trials.size(); ++i) {
    MeasureRecord r{.trial_id = trials[i].id};
    r.run_ns = {1000.0 - static_cast<double>(i)};
    r.cpu_ns = r.run_ns;
    if (i % 4 == 1) r.outcome = Outcome::kCrashed, r.run_ns = r.cpu_ns = {};
    r.environment = {.hardware = "machine",
                     .toolchain = "llvm 1 codegen 1",
                     .worker_id = "w",
                     .worker_incarnation = "1",
                     .host = "h"};
    r.finished_at_us = 1'000'000 + static_cast<int64_t>(i) * 500'000;
    records.push_back(r);
  }
  ASSERT_TRUE(store->add_records(records).is_ok());
  RaceRow race{.job_id = "j1",
               .winner_trial_id = trials[0].id,
               .finalists = {{trials[0].id, {1}, {1}, {0}}},
               .tie_set = {trials[0].id}};
  race.environment.hardware = "machine";
  race.finished_at_us = records.back().finished_at_us + 7'000'000;
  ASSERT_TRUE(store->add_race(race).is_ok());
  const auto estimate = GainEstimate::read(*store);
  ASSERT_TRUE(estimate.is_ok()) << estimate.message();
  const TaskHistory* h = estimate->history_of(task);
  ASSERT_NE(h, nullptr);
  EXPECT_EQ(h->trials(), 40);
  EXPECT_EQ(h->default_ns, 1000);
  EXPECT_EQ(h->best_ns[1], 1000);  // that one crashed
  EXPECT_EQ(h->last_ns(), 961);
  EXPECT_DOUBLE_EQ(h->seconds_per_trial, 0.5);
  EXPECT_DOUBLE_EQ(h->race_seconds, 7);
}

// Stores a search of `count` configs of the task's first template, the default first; each is 10 ns faster
// than the one before.
std::vector<TrialRow> add_search(Store& store, const std::string& job, const JobRow::Task& task, int count) {
  EXPECT_TRUE(store.add_job({.id = job, .request_id = job, .tasks = {task}, .trials = count}).is_ok());
  const TaskSpace space = make_task_space(task).value();
  const ConfigSpace& configs = *space.search.parts[0].space;
  std::vector<Config> chosen = {configs.at(configs.default_index())};
  for (ConfigIndex i = 0; std::ssize(chosen) < count && i < configs.size(); ++i)
    if (i != configs.default_index()) chosen.push_back(configs.at(i));
  std::vector<TrialRow> trials;
  for (const Config& config : chosen)
    trials.push_back({.job_id = job,
                      .template_name = space.search.parts[0].template_name,
                      .template_version = space.template_versions[0],
                      .config = config.to_text()});
  EXPECT_TRUE(store.add_trials(trials).is_ok());
  std::vector<MeasureRecord> records;
  for (size_t i = 0; i < trials.size(); ++i) {
    MeasureRecord r{.trial_id = trials[i].id};
    r.run_ns = r.cpu_ns = {1000.0 - 10 * static_cast<double>(i)};
    r.peak_gflops = 1e4;
    r.environment = {.hardware = "machine",
                     .toolchain = "llvm 1 codegen 1",
                     .worker_id = "w",
                     .worker_incarnation = "1",
                     .host = "h"};
    r.finished_at_us = 1'000'000;
    records.push_back(r);
  }
  EXPECT_TRUE(store.add_records(records).is_ok());
  return trials;
}

TEST(GainEstimate, ReadsRacesRoofsAndThatASpaceIsUsedUp) {
  tuner::TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const JobRow::Task task{
      "v1 elementwise rows=33 columns=777 scale=0 bias=1 residual=0 act=relu dtype=float32", kTarget, ""};
  const auto all = static_cast<int>(make_task_space(task)->search.size());
  ASSERT_LT(all, 32);
  const std::vector<TrialRow> trials = add_search(*store, "j1", task, all - 1);
  EXPECT_FALSE(GainEstimate::read(*store)->history_of(task)->exhausted);
  add_search(*store, "j2", task, all);
  RaceRow race{.job_id = "j1",
               .winner_trial_id = trials[1].id,
               .finalists = {{trials[0].id, {900, 980, 980}, {1, 1, 1}, {0, 1, 1}},
                             {trials[1].id, {890, 890}, {1, 1}, {0, 1}}},
               .tie_set = {trials[1].id},
               .default_trial_id = trials[0].id};
  race.environment.hardware = "machine";
  race.finished_at_us = 2'000'000;
  ASSERT_TRUE(store->add_race(race).is_ok());
  const auto estimate = GainEstimate::read(*store);
  ASSERT_TRUE(estimate.is_ok()) << estimate.message();
  const TaskHistory* h = estimate->history_of(task);
  EXPECT_TRUE(h->exhausted);
  EXPECT_EQ(h->default_ns, 1000);
  const double raced = std::sqrt(900.0 * 980.0);  // as the race counts its processes
  EXPECT_NEAR(h->raced_default_ns, raced, 1e-9);
  EXPECT_NEAR(h->raced_last_ns, 890, 1e-9);
  EXPECT_EQ(h->lent_ns, 0) << "no other task can lend";
  EXPECT_NEAR(*gain_of(*h, Before::kDefault), 1 - 890 / raced, 1e-9);
}

TEST(GainEstimate, ALostDeviceIsNoTrialOfTheSearch) {
  tuner::TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const JobRow::Task task = matmul(64);
  add_search(*store, "j1", task, 5);
  ASSERT_TRUE(store->add_job({.id = "j2", .request_id = "j2", .tasks = {task}, .trials = 1}).is_ok());
  std::vector<TrialRow> lost = {store->trial("j1.1")->trial};
  lost[0].id.clear();
  lost[0].job_id = "j2";
  ASSERT_TRUE(store->add_trials(lost).is_ok());
  MeasureRecord nothing{.trial_id = lost[0].id, .outcome = Outcome::kDeviceLost};
  nothing.environment = store->trial("j1.1")->record->environment;
  ASSERT_TRUE(store->add_records({nothing}).is_ok());
  const auto estimate = GainEstimate::read(*store);
  ASSERT_TRUE(estimate.is_ok()) << estimate.message();
  EXPECT_EQ(estimate->history_of(task)->trials(), 5);
}

// Of a task whose configs were all measured nothing is left to gain, but what staleness may cost.
TEST(TaskEstimate, AStaleAnswerMayGainWhatItsCausesMayCost) {
  tuner::TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const JobRow::Task row{
      "v1 elementwise rows=33 columns=777 scale=0 bias=1 residual=0 act=relu dtype=float32", kTarget, ""};
  const auto all = static_cast<int>(make_task_space(row)->search.size());
  add_search(*store, "j1", row, all);
  std::vector<TrialRow> lost = {store->trial("j1.1")->trial};  // a lost device says nothing of a config
  ASSERT_TRUE(store->add_trials(lost).is_ok());
  MeasureRecord nothing{.trial_id = lost[0].id, .outcome = Outcome::kDeviceLost};
  nothing.environment = store->trial("j1.1")->record->environment;
  ASSERT_TRUE(store->add_records({nothing}).is_ok());
  const GainEstimate estimate = GainEstimate::read(*store).value();
  const CliTask task = task_from_keys(row.workload_key, row.target).value();
  const auto told = estimate_task(*store, estimate, Resolver(store.get()), task, 3);
  ASSERT_TRUE(told.is_ok()) << told.message();
  EXPECT_EQ(told->uses, 3);
  EXPECT_EQ(told->trials_so_far, all);
  EXPECT_THAT(told->note, ::testing::HasSubstr("stale (compiler: llvm 1 codegen 1 then, "));
  EXPECT_THAT(told->note, ::testing::HasSubstr("tuner revalidate may do"));
  // The compiler may cost 2 %, the harness 1 %, and the device 10 % if this host is the target's machine.
  ASSERT_TRUE(told->gain);
  EXPECT_GE(told->gain->expected, 0.02);
  EXPECT_LE(told->gain->expected, 0.1301);
  EXPECT_DOUBLE_EQ(told->gain->high, 2 * told->gain->expected);
  EXPECT_EQ(told->now_ns, 1000 - 10 * static_cast<double>(told->trials_so_far - 1));
}

TEST(GainEstimate, ReadsWhatTheNearestTaskWouldLend) {
  tuner::TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const JobRow::Task here = matmul(64), near = matmul(72), far = matmul(640);
  add_search(*store, "j1", here, 40);
  add_search(*store, "j2", near, 12);
  add_search(*store, "j3", far, 30);
  const auto estimate = GainEstimate::read(*store);
  ASSERT_TRUE(estimate.is_ok()) << estimate.message();
  // The three fastest of the near one are its last; here the same configs are as late in the order.
  EXPECT_NEAR(estimate->history_of(here)->lent_ns, 1000 - 10 * 10.0, 20);
  EXPECT_EQ(estimate->history_of(here)->raced_lent_ns, 0);
  const double bound = estimate->bound_ns(here);
  EXPECT_NEAR(bound, 64.0 * 64 * 64 * 2 / 1e4, 1e-6);
  EXPECT_GE(estimate->now_ns(here, Before::kDefault), bound);
}

}  // namespace
}  // namespace tuner::cli
