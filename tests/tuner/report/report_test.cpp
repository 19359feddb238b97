// A job's report: the facts in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tuner/report/report_fixture.h"
#include "tuner/report/drawn_trials.h"
#include "tuner/report/report_page.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::kMatmul;
using testing::kSoftmax;
using testing::kTarget;
using ::testing::Not;
using testing::ReportTest;

TEST_F(ReportTest, TellsTheCurveTheFailuresAndWhatItRestsOn) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  const auto ids = measure("j1", 0, 90, 1);
  race("j1", 0, {ids[0], ids[1], ids[2]});
  const ordered_json task = facts("j1")["tasks"][0];
  EXPECT_EQ(task["trials"], 90);
  EXPECT_EQ(task["outcomes"]["ok"], 80);
  ASSERT_EQ(task["convergence"]["points"].size(), 90u);
  EXPECT_EQ(task["convergence"]["points"][0][0], "j1.1");
  EXPECT_EQ(task["convergence"]["points"][8][2], "build_error");
  EXPECT_TRUE(task["convergence"]["points"][8][1].is_null());
  // The race decides, not the fastest median.
  EXPECT_EQ(task["best"]["trial"], "j1.1");
  EXPECT_EQ(task["best"]["time_ns"], 1900);
  EXPECT_EQ(task["best"]["raced"], true);
  EXPECT_EQ(task["best"]["certified"], true);
  EXPECT_EQ(task["best"]["default_ns"], 2400) << "of the same race, not of a trial";
  EXPECT_EQ(task["best"]["n"], 1) << "the first trial of the task";
  EXPECT_NEAR(task["best"]["trial_ns"].get<double>(), task["convergence"]["points"][0][1].get<double>(),
              1e-9);
  EXPECT_EQ(task["race"]["finalists"].size(), 3u);
  EXPECT_EQ(task["race"]["finalists"][0]["time_ns"], 1900) << "of the race, as in the headline";
  EXPECT_EQ(task["race"]["finalists"][0]["low_ns"], 1890);
  EXPECT_NEAR(task["race"]["finalists"][2]["time_ns"].get<double>(), 1980.5, 0.01)
      << "of its processes' lower quartiles: 1980, 1980.75, 1980.75";
  EXPECT_EQ(task["race"]["finalists"][0]["winner"], true);
  EXPECT_EQ(task["race"]["finalists"][2]["tied"], false);
  EXPECT_EQ(task["race"]["finalists"][2]["processes"], 3);
  ASSERT_EQ(task["failures"].size(), 2u);
  EXPECT_EQ(task["failures"][0]["count"].get<int>() + task["failures"][1]["count"].get<int>(), 10);
  EXPECT_EQ(task["failures"][0]["examples"].size(), 1u) << "of each sort of message one";
  EXPECT_EQ(task["phases"]["build_median_ms"], 30);
  EXPECT_DOUBLE_EQ(task["phases"]["wall_ms"], 89 * 50.0);
  EXPECT_GT(task["importance"]["r2"].get<double>(), 0.3);
  EXPECT_FALSE(task["stopping"]["chance"].is_null());
  EXPECT_EQ(task["roofline"]["flops"], 2 * 64 * 64 * 64);
  EXPECT_EQ(task["roofline"]["peak_gflops"], 200);
  EXPECT_EQ(task["roofline"]["peak_name"], "FMA peak");
  EXPECT_EQ(task["best"]["peak_owner"], "vector unit's");
}

TEST_F(ReportTest, ABaselineOfFewRecordedRowsIsRefusedWithTheShare) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  measure("j1", 0, 64, 1);
  const ordered_json baseline = facts("j1")["tasks"][0]["baseline"];
  EXPECT_FALSE(baseline.contains("mean"));
  EXPECT_THAT(baseline["why"].get<std::string>(), HasSubstr("tuner submit FILE --search annealing"));
}

TEST_F(ReportTest, AnotherJobThatSearchedWithoutAModelIsTheBaseline) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  measure("j1", 0, 64, 1);
  add_job("j2", "annealing", {{kSoftmax, kTarget}, {kMatmul, kTarget}});
  measure("j2", 1, 50, 2);
  const ordered_json baseline = facts("j1")["tasks"][0]["baseline"];
  EXPECT_EQ(baseline["source"], "annealing, measured: job j2");
  ASSERT_EQ(baseline["x"].size(), baseline["mean"].size());
  EXPECT_EQ(baseline["x"].back(), 50);
  for (size_t i = 1; i < baseline["mean"].size(); ++i)
    EXPECT_LE(baseline["mean"][i], baseline["mean"][i - 1]);
  // Of itself it is none.
  EXPECT_THAT(facts("j2")["tasks"][1]["baseline"]["why"].get<std::string>(), HasSubstr("without a model"));
}

// Times of another machine do not compare.
TEST_F(ReportTest, AJobOnAnotherMachineIsNoBaseline) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  measure("j1", 0, 64, 1);
  add_job("j2", "annealing", {{kMatmul, kTarget}});
  measure("j2", 0, 64, 2, "another machine");
  EXPECT_FALSE(facts("j1")["tasks"][0]["baseline"].contains("source"));
  // Nor is one that ended long before.
  add_job("j3", "annealing", {{kMatmul, kTarget}});
  measure("j3", 0, 31, 3);
  EXPECT_FALSE(facts("j1")["tasks"][0]["baseline"].contains("source")) << "31 trials beside 64";
  measure("j3", 0, 1, 4);
  EXPECT_EQ(facts("j1")["tasks"][0]["baseline"]["source"], "annealing, measured: job j3");
}

// A job that was interrupted overnight did not take that night.
TEST_F(ReportTest, APauseIsNoTimeOfTheSearch) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  measure("j1", 0, 20, 1);
  measure("j1", 0, 20, 2, "machine", 3'600'000'000);
  EXPECT_DOUBLE_EQ(facts("j1")["tasks"][0]["phases"]["wall_ms"], 2 * 19 * 50.0);
}

TEST_F(ReportTest, ATaskWithoutResultsAndAJobThatIsNotThereAreToldAsSuch) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  const ordered_json task = facts("j1")["tasks"][0];
  EXPECT_TRUE(task["best"].is_null());
  EXPECT_TRUE(task["failures"].empty());
  EXPECT_EQ(report_facts(*store_, "j9", {}).status().code(), StatusCode::kNotFound);
}

// The chart of the finalists and the headline must not name two winners.
TEST_F(ReportTest, AnUncertifiedRaceHasNoWinner) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  const auto ids = measure("j1", 0, 40, 1);
  race("j1", 0, {ids[3], ids[1], ids[2]}, "the machine was disturbed");
  const ordered_json task = facts("j1")["tasks"][0];
  EXPECT_EQ(task["best"]["certified"], false);
  EXPECT_EQ(task["best"]["uncertified_why"], "the machine was disturbed");
  for (const ordered_json& finalist : task["race"]["finalists"]) {
    EXPECT_EQ(finalist["winner"], false);
    EXPECT_EQ(finalist["tied"], false);
  }
  const std::string page = report_page(facts("j1"));
  EXPECT_THAT(page, HasSubstr("This race certified nothing: the machine was disturbed."));
  EXPECT_THAT(page, Not(HasSubstr("</svg>the winner</li>")));
}

TEST_F(ReportTest, FinalistsAreThoseOfTheRaceThatDecided) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  const auto ids = measure("j1", 0, 40, 1);
  race("j1", 0, {ids[0], ids[1], ids[2]});
  race("j1", 0, {ids[3], ids[4]}, "the machine was disturbed");  // later, and of no consequence
  const ordered_json task = facts("j1")["tasks"][0];
  EXPECT_EQ(task["best"]["trial"], "j1.1");
  ASSERT_EQ(task["race"]["finalists"].size(), 3u);
  EXPECT_EQ(task["race"]["finalists"][0]["trial"], "j1.1");
  EXPECT_EQ(task["race"]["finalists"][0]["winner"], true);
}

TEST_F(ReportTest, EveryTrialIsListedWithItsConfig) {
  add_job("j1", "bayesian", {{kMatmul, kTarget}});
  measure("j1", 0, 30, 1);
  const std::vector<TrialWithRecord> trials = store_->trials("j1").value();
  const ordered_json marks = facts("j1")["tasks"][0]["convergence"]["marks"];
  ASSERT_EQ(marks.size(), 30u);
  for (size_t i = 0; i < marks.size(); ++i) {
    EXPECT_EQ(marks[i]["n"], i + 1);
    EXPECT_EQ(marks[i]["trial"], str("j1.", i + 1));
    EXPECT_EQ(marks[i]["template"], trials[i].trial.template_name);
    // As the template describes it, which has each knob's name.
    const Config config = config_from_text(trials[i].trial.config).value();
    for (const auto& [knob, value] : config.values())
      EXPECT_THAT(marks[i]["config"].get<std::string>(), HasSubstr(knob + "="));
    EXPECT_EQ(marks[i]["ns"].is_null(), marks[i]["outcome"] != "ok");
  }
}

// A task with so many results, of which one in 50,000 ran out of memory and every hundredth was ended early.
JobTask task_of(size_t trials, const JobRow& job) {
  JobTask t{.job = &job};
  t.task = task_from_keys(kMatmul, kTarget).value();
  for (size_t i = 0; i < trials; ++i) {
    TrialWithRecord r;
    r.trial = {.id = str("t", i + 1),
               .job_id = "j1",
               .template_name = "matmul_cpu",
               .config = str("tile_m=", i % 16 + 1)};
    r.record = MeasureRecord{.trial_id = r.trial.id};
    r.record->run_ns = {1e9 / static_cast<double>(i + 1000)};  // each is faster than all before
    r.record->cut = i % 100 == 99;
    if (i % 50'000 == 777) r.record->outcome = Outcome::kOutOfMemory;
    r.record->finished_at_us = static_cast<int64_t>(i + 1) * 1000;
    t.trials.push_back(std::move(r));
  }
  return t;
}

TEST_F(ReportTest, APageOfAHundredThousandTrialsIsSmallAndHasEachKindOfResult) {
  const JobRow job{.id = "j1", .tasks = {{kMatmul, kTarget}}};
  JobTask t = task_of(100'000, job);
  RaceRow race{.job_id = "j1", .winner_trial_id = "t4321", .tie_set = {"t4321"}, .time_ns = 9000};
  race.finalists = {{.trial_id = "t4321"}, {.trial_id = "t87654"}};
  t.races.push_back(race);
  const ordered_json convergence = convergence_facts(t, ReportOptions::kMostMarks);
  EXPECT_EQ(convergence["points"].size(), 100'000u) << "the document has all";
  ASSERT_EQ(convergence["marks"].size(), ReportOptions::kMostMarks);
  std::vector<std::string> trials, outcomes;
  for (const ordered_json& mark : convergence["marks"]) {
    trials.push_back(mark["trial"]);
    outcomes.push_back(mark["outcome"]);
  }
  EXPECT_THAT(trials, Contains("t1"));
  EXPECT_THAT(trials, Contains("t4321")) << "the winner";
  EXPECT_THAT(trials, Contains("t87654")) << "a finalist";
  EXPECT_THAT(trials, Contains("t99999")) << "the fastest";
  EXPECT_GE(std::ranges::count(outcomes, "out_of_memory"), 2) << "all there are";
  EXPECT_GE(std::ranges::count(outcomes, "cut"), 8);
  // An even sample: each tenth has its share.
  for (int tenth = 0; tenth < 10; ++tenth)
    EXPECT_GE(std::ranges::count_if(
                  convergence["marks"],
                  [&](const ordered_json& m) { return (m["n"].get<int>() - 1) / 10'000 == tenth; }),
              70)
        << tenth;

  const std::string page = report_page({{"job", "j1"},
                                        {"tasks",
                                         {{{"index", 0},
                                           {"workload", kMatmul},
                                           {"trials", 100'000},
                                           {"best", best_facts(t)},
                                           {"convergence", convergence}}}}});
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_THAT(page, HasSubstr("1,500 of 100,000 trials are drawn"));
}

TEST_F(ReportTest, ATaskIsDrawnWholeIfItsTrialsFit) {
  const JobRow job{.id = "j1", .tasks = {{kMatmul, kTarget}}};
  EXPECT_EQ(drawn_trials(task_of(40, job), 40).size(), 40u);
  EXPECT_EQ(drawn_trials(task_of(41, job), 40).size(), 40u);
  EXPECT_TRUE(drawn_trials(task_of(0, job), 40).empty());
}

}  // namespace
}  // namespace tuner
