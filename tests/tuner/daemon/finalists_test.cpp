// Which trials race: chosen from rows, without a store.
#include "tuner/daemon/tables/finalists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// A trial of the config, whose samples lie 1 % around the time.
TrialWithRecord timed(const std::string& id, const std::string& config, double ns, int task_index = 0) {
  TrialWithRecord t;
  t.trial = {.id = id, .task_index = task_index, .template_name = "matmul_cpu", .config = config};
  t.record = MeasureRecord{.trial_id = id};
  for (int i = -4; i <= 4; ++i) t.record->run_ns.push_back(ns * (1 + 0.0025 * i));
  t.record_id = std::stoll(id.substr(1));
  return t;
}

std::vector<std::string> ids(const Finalists& finalists) {
  std::vector<std::string> ids;
  for (const TrialRow& t : finalists.trials) ids.push_back(t.id);
  return ids;
}

TEST(Finalists, ThoseThatCannotBeToldFromTheFastestRaceFastestFirst) {
  const std::vector<TrialWithRecord> job = {timed("t1", "a", 2000), timed("t2", "b", 1000),
                                            timed("t3", "c", 1003), timed("t4", "d", 1001),
                                            timed("t5", "e", 1002), timed("t6", "f", 1500)};
  EXPECT_THAT(ids(choose_finalists(job, 0, job[1], {})), ElementsAre("t2", "t4", "t5", "t3"));
}

TEST(Finalists, AreThreeAtLeastAndTwelveAtMost) {
  std::vector<TrialWithRecord> job = {timed("t1", "a", 1000), timed("t2", "b", 2000), timed("t3", "c", 3000),
                                      timed("t4", "d", 4000)};
  EXPECT_THAT(ids(choose_finalists(job, 0, job[0], {})), ElementsAre("t1", "t2", "t3"));
  for (int i = 5; i < 30; ++i) job.push_back(timed(str("t", i), str("x", i), 1000 + 0.01 * i));
  EXPECT_THAT(ids(choose_finalists(job, 0, job[0], {})), SizeIs(12));
}

TEST(Finalists, AreRightUncutTrialsOfTheTaskOnly) {
  std::vector<TrialWithRecord> job = {timed("t1", "a", 1000), timed("t2", "b", 900), timed("t3", "c", 900),
                                      timed("t4", "d", 900, /*task_index=*/1), timed("t5", "e", 900)};
  job[1].record->outcome = Outcome::kWrongAnswer;
  job[2].record->cut = true;
  job[4].record.reset();
  EXPECT_THAT(ids(choose_finalists(job, 0, job[0], {})), ElementsAre("t1"));
}

TEST(Finalists, AConfigRacesOnceAsATrialOfThisJob) {
  const std::vector<TrialWithRecord> job = {timed("t10", "a", 1000), timed("t11", "a", 1001),
                                            timed("t12", "b", 1002)};
  const TrialWithRecord known = timed("t1", "b", 990);
  EXPECT_THAT(ids(choose_finalists(job, 0, known, {})), ElementsAre("t10", "t12"));
}

TEST(Finalists, TheBestKnownJoinsHoweverSlowItWasHere) {
  std::vector<TrialWithRecord> job;
  for (int i = 10; i < 40; ++i) job.push_back(timed(str("t", i), str("x", i), 1000 + 0.01 * i));
  job.push_back(timed("t40", "best of old", 5000));
  const std::vector<std::string> with_it = ids(choose_finalists(job, 0, timed("t1", "best of old", 800), {}));
  EXPECT_THAT(with_it, SizeIs(13));
  EXPECT_EQ(with_it.back(), "t40") << "the job's own trial of that config";
  const std::vector<std::string> of_another_job =
      ids(choose_finalists(job, 0, timed("t1", "never tried here", 800), {}));
  EXPECT_EQ(of_another_job.front(), "t1") << "the fastest of all";
}

// One that was measured on a disturbed moment is not lost by it.
TEST(Finalists, WhatTheDatabaseAnsweredBeforeJoinsHoweverItsTrialWent) {
  std::vector<TrialWithRecord> job;
  for (int i = 10; i < 40; ++i) job.push_back(timed(str("t", i), str("x", i), 1000 + 0.01 * i));
  job.push_back(timed("t40", "slow here", 5000));
  job.push_back(timed("t41", "cut", 3000));
  job.back().record->cut = true;
  job.push_back(timed("t42", "wrong", 900));
  job.back().record->outcome = Outcome::kWrongAnswer;
  const std::vector<std::string> found = ids(choose_finalists(job, 0, job[0], {}, {"t40", "t41", "t42"}));
  EXPECT_THAT(found, SizeIs(14));
  EXPECT_THAT(found, testing::IsSupersetOf({"t40", "t41"}));
}

TEST(Finalists, AnswersAreTheTrialsThatNoSearchWasAskedFor) {
  std::vector<TrialWithRecord> job = {timed("t1", "plain", 9000), timed("t2", "b", 1000),
                                      timed("t3", "c", 1001), timed("t4", "d", 1002)};
  for (size_t i = 0; i < job.size(); ++i) job[i].trial.seq = static_cast<int64_t>(10 + i);
  const std::vector<ProposalRow> proposals = {
      {.seq = 20, .asked = 1, .count = 1, .first_trial_seq = 10},
      {.seq = 21, .asked = 0, .count = 1, .first_trial_seq = 11},
      {.seq = 22, .asked = 16, .count = 2, .first_trial_seq = 12},
      {.seq = 23, .task_index = 1, .asked = 0, .count = 1, .first_trial_seq = 13}};
  EXPECT_THAT(answers_tried(job, proposals, 0), ElementsAre("t2"));
}

TEST(Finalists, TheDefaultConfigJoinsAndIsNamed) {
  std::vector<TrialWithRecord> job = {timed("t1", "plain", 9000), timed("t2", "b", 1000),
                                      timed("t3", "c", 1001), timed("t4", "d", 1002)};
  const DefaultConfig plain{.template_name = "matmul_cpu", .config = "plain"};
  const Finalists with = choose_finalists(job, 0, job[1], plain);
  EXPECT_THAT(ids(with), ElementsAre("t2", "t3", "t4", "t1"));
  EXPECT_EQ(with.default_trial_id, "t1");
  job[0].record->outcome = Outcome::kCrashed;
  const Finalists without = choose_finalists(job, 0, job[1], plain);
  EXPECT_THAT(ids(without), ElementsAre("t2", "t3", "t4"));
  EXPECT_EQ(without.default_trial_id, "");
}

// The answer so far is a race's winner, if what the job measured was measured as the race was.
TEST(Finalists, TheStoredAnswerIsTheWinnerOfARaceUnderTodaysConditions) {
  std::vector<TrialWithRecord> job = {timed("t10", "a", 1000), timed("t11", "b", 1001)};
  for (TrialWithRecord& t : job) t.record->environment = {.hardware = "zen", .toolchain = "llvm 22"};
  const TrialWithRecord known = timed("t1", "b", 990);
  TunedConfig best{.certified = true, .environment = {.hardware = "zen", .toolchain = "llvm 22"}};
  const std::optional<TrialRow> stored = stored_answer(job, 0, known, best, {});
  ASSERT_TRUE(stored);
  EXPECT_EQ(choose_finalists(job, 0, known, {}, {}, stored).stored_trial_id, "t11")
      << "as a trial of this job";
  for (const Environment& other :
       {Environment{.hardware = "skylake", .toolchain = "llvm 22"},
        Environment{.hardware = "zen", .toolchain = "llvm 23"},
        Environment{.hardware = "zen", .toolchain = "llvm 22", .harness_abi = 9}}) {
    best.environment = other;
    EXPECT_FALSE(stored_answer(job, 0, known, best, {}))
        << other.hardware << other.toolchain << other.harness_abi;
  }
}

TEST(Finalists, WithoutARaceTheStoredAnswerIsWhatTheDatabaseAnsweredBefore) {
  std::vector<TrialWithRecord> job = {timed("t10", "a", 1000), timed("t11", "b", 1001)};
  const TrialWithRecord known = timed("t10", "a", 1000);  // the fastest trial, of this job
  const std::optional<TrialRow> stored = stored_answer(job, 0, known, {.certified = false}, {"t11"});
  ASSERT_TRUE(stored);
  EXPECT_EQ(choose_finalists(job, 0, known, {}, {"t11"}, stored).stored_trial_id, "t11");
  EXPECT_FALSE(stored_answer(job, 0, known, {.certified = false}, {})) << "nothing was known";
  job[1].record->outcome = Outcome::kWrongAnswer;
  EXPECT_FALSE(stored_answer(job, 0, known, {.certified = false}, {"t11"})) << "it is wrong today";
}

TEST(Finalists, KernelsOfCpusAndGpusRace) {
  EXPECT_TRUE(is_raced("llvm -mcpu=haswell -threads=1"));
  EXPECT_TRUE(is_raced("cuda -arch=sm_80"));
  EXPECT_FALSE(is_raced("no target at all"));
}

TEST(Settled, ACertifiedBestThatNothingNewerBeatsNeedsNoRace) {
  TunedConfig best{.time_ns = 1000, .race_id = 50, .certified = true};
  std::vector<TrialWithRecord> job = {timed("t40", "a", 900), timed("t60", "b", 1100)};
  EXPECT_TRUE(is_settled(job, 0, best)) << "t40 took part in that race or came before it";
  job.push_back(timed("t61", "c", 900, /*task_index=*/1));
  EXPECT_TRUE(is_settled(job, 0, best)) << "of another task";
  job.push_back(timed("t62", "d", 990));
  EXPECT_FALSE(is_settled(job, 0, best));
  job.back().record->cut = true;
  EXPECT_TRUE(is_settled(job, 0, best)) << "a bound is no time";
  best.certified = false;
  EXPECT_FALSE(is_settled(job, 0, best));
}

}  // namespace
}  // namespace tuner
