// What judge_estimates makes of the results of a pack: which lines count, what it asks for, what it refuses.
#include "tests/bench/gpu/estimate_judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace tuner {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json line_of(const std::string& picked, double estimated_ns, double measured_ns) {
  return {{"pack", "p"},
          {"task", 0},
          {"round", 0},
          {"workload", "w"},
          {"target", "t"},
          {"picked", picked},
          {"outcome", "ok"},
          {"run_ms", 20.0},
          {"estimated_ns", estimated_ns},
          {"options", {{"min_repeat_ms", 1}}},
          {"run_ns", {measured_ns, measured_ns, measured_ns}}};
}

class EstimateJudgement : public testing::Test {
 protected:
  void add(const json& line) { text_ += line.dump() + "\n"; }
  std::vector<TaskJudgement> judged() const {
    std::istringstream in(text_);
    const Result<std::vector<TaskJudgement>> tasks = judge_estimates(in);
    EXPECT_TRUE(tasks.is_ok()) << tasks.message();
    return tasks.is_ok() ? *tasks : std::vector<TaskJudgement>{};
  }
  std::string text_;
};

TEST_F(EstimateJudgement, TheOrderOfRandomPicksCountsAndNothingElse) {
  // Two neighbours have changed places: 1 - 6 * (1 + 1) / (5 * 24).
  const double times[] = {1000, 2000, 4000, 3000, 5000};
  for (int i = 0; i < 5; ++i) add(line_of("random", 100.0 * (i + 1), times[i]));
  add(line_of("default", 1, 90'000));
  add(line_of("estimate", 2, 80'000));
  json later = line_of("random", 100, 70'000);  // measured again, further on in the plan
  later["round"] = 1;
  add(later);
  add(line_of("random", 0, 60'000));  // has no estimate
  const std::vector<TaskJudgement> tasks = judged();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].workload, "w");
  EXPECT_EQ(tasks[0].random, 5);
  EXPECT_EQ(tasks[0].failed, 0);
  EXPECT_NEAR(tasks[0].correlation, 0.9, 1e-6);
  EXPECT_EQ(tasks[0].trials, 9);
}

TEST_F(EstimateJudgement, AnEstimateThatIsUpsideDownIsSeen) {
  for (int i = 1; i <= 8; ++i) add(line_of("random", 100.0 * i, 9000 - 1000.0 * i));
  EXPECT_NEAR(judged()[0].correlation, -1, 1e-6);
}

TEST_F(EstimateJudgement, FailedPicksAreToldAndFewSayNothing) {
  for (int i = 0; i < kFewestPicks - 1; ++i) add(line_of("random", i + 1, i + 1));
  json wrong = line_of("random", 50, 1);
  wrong["outcome"] = "wrong_answer";
  wrong["run_ns"] = json::array();
  add(wrong);
  const TaskJudgement task = judged()[0];
  EXPECT_EQ(task.random, kFewestPicks - 1);
  EXPECT_EQ(task.failed, 1);
  EXPECT_EQ(task.correlation, 0);
  EXPECT_EQ(task.trials, kFewestPicks - 1);
}

// Three samples of a millisecond where calls are shorter, of a call where it is longer.
TEST_F(EstimateJudgement, ATrialsCostIsWhatItTookBesideItsSamples) {
  add(line_of("random", 1, 5000));
  EXPECT_NEAR(judged()[0].beside_ms, 20 - 3, 1e-9);
  text_.clear();
  add(line_of("random", 1, 4e6));
  EXPECT_NEAR(judged()[0].beside_ms, 20 - 12, 1e-9);
}

TEST_F(EstimateJudgement, TasksAndPacksAreToldApart) {
  json other = line_of("random", 1, 1), pack = line_of("random", 1, 1);
  other["task"] = 1;
  other["workload"] = "x";
  pack["pack"] = "q";
  add(line_of("random", 1, 1));
  add(other);
  add(line_of("random", 2, 2));
  add(pack);
  const std::vector<TaskJudgement> tasks = judged();
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].random, 2);
  EXPECT_EQ(tasks[1].workload, "x");
  EXPECT_EQ(tasks[2].random, 1);
}

TEST_F(EstimateJudgement, WhatAKillLeftIsLeftOutAndOtherLinesAreRefused) {
  add(line_of("random", 1, 1));
  const std::string whole = text_;
  text_ += R"({"artifact":"12)";
  EXPECT_EQ(judged().size(), 1u);
  for (const char* line : {"nonsense\n", "{}\n", "[1]\n"}) {
    std::istringstream in(whole + line);
    const Result<std::vector<TaskJudgement>> tasks = judge_estimates(in);
    ASSERT_FALSE(tasks.is_ok()) << line;
    EXPECT_THAT(tasks.message(), HasSubstr("line 2: not a result of run-pack: ")) << line;
  }
}

}  // namespace
}  // namespace tuner
