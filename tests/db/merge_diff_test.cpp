// Databases put together, and compared: nothing is lost, sources stay as they are, and a change is told from
// noise.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "compiler_core/base/random.h"
#include "db/exchange/diff.h"
#include "db/exchange/merge.h"
#include "tests/db/store_fixture.h"

namespace tuner::exchange {
namespace {

using testing::HasSubstr;

class MergeDiffTest : public testing::Test {
 protected:
  // A job of one task, measured once with these samples.
  void measure(const std::string& db, const std::string& job, const std::string& workload,
               std::vector<double> ns, const std::string& hardware = "cpu X", double sentinel_ns = 100) {
    const auto store = must_open(db);
    ASSERT_OK(store->add_job(job_row(job, {{workload, "cpu one"}})));
    const auto ids = add_trials(*store, job, {"a=1"});
    MeasureRecord record = ok_record(ids[0], std::move(ns));
    record.environment.hardware = hardware;
    record.sentinel_before_ns = record.sentinel_after_ns = sentinel_ns;
    ASSERT_OK(store->add_records({record}));
    ASSERT_OK(store->set_job_state(job, JobState::kFinished, ""));
  }
  static std::vector<double> around(double ns, double spread, uint64_t seed) {
    std::vector<double> samples;
    for (int i = 0; i < 9; ++i)
      samples.push_back(ns * (1 + spread * (static_cast<double>(next_random(seed) % 2001) / 1000 - 1)));
    return samples;
  }
  DiffReport diff(const DiffOptions& options = {}) {
    const auto report =
        diff_databases(*must_open(a_, Store::Mode::kRead), *must_open(b_, Store::Mode::kRead), options);
    CHECK(report.is_ok()) << report.message();
    return *report;
  }
  static std::string bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TemporaryFolder folder_;
  const std::string a_ = folder_.file("a.db"), b_ = folder_.file("b.db"), c_ = folder_.file("c.db");
};

TEST_F(MergeDiffTest, MergedDatabasesHoldTheRowsOfBothOnceAndTheSourcesStay) {
  measure(a_, "j1", "v1 one", {100, 101, 102});
  measure(b_, "j1", "v1 two", {200, 201, 202});
  {
    const auto store = must_open(b_);  // the same id, another job
    ASSERT_TRUE(store->add_event("j1", "{}").is_ok());
    const auto importer = store->exchange().importer({"x.log", "autotvm", ""});
    ASSERT_TRUE(importer
                    ->add({ExchangeRow(
                        ForeignRecord{.format = "autotvm", .task = "c", .time_ns = 1, .document = "{}"})})
                    .is_ok());
  }
  const std::string before_a = bytes(a_), before_b = bytes(b_);
  for (int time = 0; time < 2; ++time) {
    const auto report = merge_databases({a_, b_}, c_);
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_EQ(report->copied, time == 0 ? a_ : "");
    ASSERT_EQ(report->sources.size(), time == 0 ? 1u : 2u);
    EXPECT_EQ(report->sources.back().trials.added, time == 0 ? 1 : 0);
    EXPECT_EQ(report->sources.back().trials.known, time == 0 ? 0 : 1);
    EXPECT_EQ(report->sources.back().foreign.added, time == 0 ? 1 : 0);
    EXPECT_EQ(report->sources.back().skipped, 0);
  }
  EXPECT_EQ(bytes(a_), before_a);
  EXPECT_EQ(bytes(b_), before_b);
  const auto merged = must_open(c_, Store::Mode::kRead);
  EXPECT_EQ(merged->best("v1 one", "cpu one")->time_ns, 101);
  EXPECT_EQ(merged->best("v1 two", "cpu one")->time_ns, 201);
  EXPECT_EQ(merged->jobs()->size(), 2u);
  EXPECT_EQ(merged->trials("j1")->size(), 1u);
}

TEST_F(MergeDiffTest, OneOfTheSourcesMayBeTheOutput) {
  measure(a_, "j1", "v1 one", {100, 101, 102});
  measure(b_, "j2", "v1 one", {90, 91, 92});
  const auto report = merge_databases({a_, b_}, a_);
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_EQ(report->sources.size(), 1u);
  EXPECT_EQ(must_open(a_, Store::Mode::kRead)->best("v1 one", "cpu one")->time_ns, 91);
  EXPECT_EQ(merge_databases({a_, folder_.file("none.db")}, c_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(c_));
}

TEST_F(MergeDiffTest, ASlowerTaskIsARegressionAndNoiseIsNot) {
  for (int i = 0; i < 8; ++i) {
    const std::string job = str("j", i), workload = str("v1 task ", i);
    const auto seed = static_cast<uint64_t>(i);
    measure(a_, job, workload, around(1000, 0.01, seed));
    measure(b_, job, workload, around(i == 3 ? 1100 : i == 5 ? 800 : 1000, 0.01, seed + 100));
  }
  measure(a_, "ja", "v1 only here", {1, 1, 1});
  const DiffReport report = diff();
  EXPECT_EQ(report.compared, 8);
  EXPECT_EQ(report.count(TaskDiff::Verdict::kSlower), 1);
  EXPECT_EQ(report.count(TaskDiff::Verdict::kFaster), 1);
  EXPECT_EQ(report.tasks.front().task.workload_key, "v1 task 3");  // the slowest change first
  EXPECT_EQ(report.tasks.front().verdict, TaskDiff::Verdict::kSlower);
  EXPECT_NEAR(report.tasks.front().ratio, 1.1, 0.02);
  EXPECT_LT(report.tasks.front().low, report.tasks.front().ratio);
  EXPECT_GT(report.tasks.front().high, report.tasks.front().ratio);
  EXPECT_EQ(report.only_a.size(), 1u);
  EXPECT_TRUE(report.regressed({}));
  EXPECT_FALSE(diff({.threshold = 0.15}).regressed({.threshold = 0.15}));
}

// The promise of the confidence: of comparisons of equals, with the threshold at nothing, at most that share
// of whole reports cries wolf.
// One database is a copy of the other, or was merged from it: one measurement cannot differ from itself, however it scatters.
TEST_F(MergeDiffTest, WhatRestsOnOneMeasurementIsTheSame) {
  measure(a_, "j1", "v1 one", {100, 140, 90, 130, 101});
  measure(a_, "j2", "v1 two", {100});  // alone it could not be judged
  ASSERT_TRUE(merge_databases({a_}, b_).is_ok());
  const DiffReport r = diff();
  EXPECT_EQ(r.count(TaskDiff::Verdict::kSame), 2);
  EXPECT_EQ(r.tasks.at(0).note, "the same measurement");
  EXPECT_EQ(r.tasks.at(0).low, 1);
  EXPECT_EQ(r.tasks.at(0).high, 1);
  EXPECT_EQ(diff_databases(*must_open(a_, Store::Mode::kRead), *must_open(a_, Store::Mode::kRead), {})
                ->count(TaskDiff::Verdict::kSame),
            2);
}

TEST_F(MergeDiffTest, NamesOfTrialsStayWhenMoreOfTheirJobComes) {
  measure(a_, "j1", "v1 one", {100, 101, 102});
  ASSERT_TRUE(merge_databases({a_}, b_).is_ok());
  const std::string id = must_open(b_, Store::Mode::kRead)->trial("j1.1")->trial.id;
  {
    const auto store = must_open(a_);
    const auto more = add_trials(*store, "j1", {"a=2"});
    ASSERT_OK(store->add_records({ok_record(more[0], {50})}));
  }
  ASSERT_TRUE(merge_databases({a_}, b_).is_ok());
  const auto merged = must_open(b_, Store::Mode::kRead);
  EXPECT_EQ(merged->trial("j1.1")->trial.id, id);
  EXPECT_EQ(merged->trial("j1.2")->trial.config, "a=2");
  EXPECT_EQ(merged->best("v1 one", "cpu one")->trial_name, "j1.2");
}

TEST_F(MergeDiffTest, EqualsAreCalledDifferentAsRarelyAsTheConfidenceSays) {
  constexpr int kRounds = 400;
  int alarms = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const Figure a = figure_of({{around(1000, 0.03, 3 * round + 1)}}),
                 b = figure_of({{around(1000, 0.03, 7 * round + 5)}});
    const RatioInterval interval = ratio_of(a, b, 0.05);
    alarms += interval.low > 1 || interval.high < 1;
  }
  EXPECT_LE(alarms, kRounds * 8 / 100);  // 5 % and two standard deviations of a count of 400
}

TEST_F(MergeDiffTest, DifferentHardwareIsComparedInSentinelsOrNotAtAll) {
  // The second machine is twice as fast, the sentinel says so, and nothing regressed.
  measure(a_, "j1", "v1 one", around(1000, 0.005, 1), "cpu X", 100);
  measure(b_, "j1", "v1 one", around(500, 0.005, 2), "cpu Y", 50);
  measure(a_, "j2", "v1 two", around(1000, 0.005, 3), "cpu X", 0);
  measure(b_, "j2", "v1 two", around(500, 0.005, 4), "cpu Y", 50);
  const DiffReport report = diff();
  ASSERT_EQ(report.tasks.size(), 2u);
  EXPECT_TRUE(report.tasks[0].by_sentinel);
  EXPECT_NEAR(report.tasks[0].ratio, 1, 0.01);
  EXPECT_EQ(report.tasks[0].verdict, TaskDiff::Verdict::kSame);
  EXPECT_EQ(report.tasks[1].verdict, TaskDiff::Verdict::kRefused);
  EXPECT_EQ(report.tasks[1].note,
            "hardware differs (\"cpu X\", \"cpu Y\") and the first has no times of the sentinel kernel");
  EXPECT_EQ(report.compared, 1);
}

TEST_F(MergeDiffTest, TooFewSamplesAreNoVerdict) {
  measure(a_, "j1", "v1 one", {100, 100.5});
  measure(b_, "j1", "v1 one", {300, 301});
  const DiffReport report = diff();
  EXPECT_EQ(report.tasks.front().verdict, TaskDiff::Verdict::kRefused);
  EXPECT_THAT(report.tasks.front().note, HasSubstr("only 2 sample(s)"));
  EXPECT_FALSE(report.regressed({}));
  EXPECT_EQ(report.compared, 0);
}

TEST_F(MergeDiffTest, RacesAreComparedByTheirProcesses) {
  for (const auto& [db, ns] : {std::pair(a_, 100.0), std::pair(b_, 104.0)}) {
    measure(db, "j1", "v1 one", {ns, ns, ns});
    const auto store = must_open(db);
    const std::string id = store->trials("j1")->front().trial.id;
    RaceRow race{.job_id = "j1", .winner_trial_id = id, .tie_set = {id}};
    RaceFinalist f{.trial_id = id};
    uint64_t seed = 9;
    for (int process = 0; process < 9; ++process) {
      // A process is as fast as its pages; within it, some samples are disturbed.
      const double of_process = ns * (1 + static_cast<double>(next_random(seed) % 1000) * 1e-5);
      for (const double factor : {1.0, 1.001, 1.0, 3.0, 1.002}) {
        f.samples_ns.push_back(of_process * factor);
        f.sentinel_ns.push_back(50);
        f.process.push_back(process);
      }
    }
    race.finalists = {f};
    race.time_ns = race.time_low_ns = race.time_high_ns = ns;
    race.environment = {"cpu X", "llvm 22", 1, "w1", "", "host1"};
    ASSERT_OK(store->add_race(race));
  }
  const DiffReport report = diff();
  ASSERT_EQ(report.tasks.size(), 1u);
  EXPECT_TRUE(report.tasks[0].raced);
  EXPECT_NEAR(report.tasks[0].ratio, 1.04, 0.005);
  EXPECT_EQ(report.tasks[0].verdict, TaskDiff::Verdict::kSlower);
}

// Processes of which one is unlucky: what a race says of these samples is what is compared.
TEST(FigureOf, ProcessesAreSummedUpAsARaceDoesIt) {
  Samples samples;
  for (const double ns : {100, 101, 99, 100, 900}) samples.groups.push_back({ns, 5 * ns, ns});
  const Figure figure = figure_of(samples);
  EXPECT_NEAR(figure.value, std::cbrt(100.0 * 101 * 100), 1e-9)
      << "a fifth off each end, logarithms averaged";
  EXPECT_EQ(figure.degrees, 2);
  EXPECT_LT(figure.log_deviation, 0.01) << "900 is drawn in to 101";
  EXPECT_GT(figure.log_deviation, 0);
}

}  // namespace
}  // namespace tuner::exchange
