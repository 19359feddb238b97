// Databases put together, and compared: nothing is lost, sources stay as they are, and a change is told from
// noise.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "compiler_core/base/random.h"
#include "db/death.h"
#include "db/exchange/diff.h"
#include "db/exchange/merge.h"
#include "db/quarantine.h"
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
  // A certified race of j1's task, won by the first of `ids`.
  static void raced(Store& store, const std::vector<std::string>& ids, double ns, int task_index = 0) {
    RaceRow race{.job_id = "j1", .task_index = task_index, .winner_trial_id = ids[0], .tie_set = {ids[0]}};
    for (size_t i = 0; i < ids.size(); ++i)
      race.finalists.push_back({ids[i], {ns + static_cast<double>(i)}, {50}, {0}});
    race.time_ns = race.time_low_ns = race.time_high_ns = ns;
    race.environment = {"cpu X", "llvm 22", 1, "w1", "", "host1"};
    race.finished_at_us = 1'700'000'002'000'000;
    const Status added = store.add_race(race);
    CHECK(added.is_ok()) << added.message();
  }
  // Config and time of the task's answer.
  static std::pair<std::string, double> answer(const std::string& db,
                                               const std::string& workload = "v1 one") {
    const auto best = must_open(db, Store::Mode::kRead)->best(workload, "cpu one");
    CHECK(best.is_ok()) << best.message();
    return {best->config, best->time_ns};
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

TEST_F(MergeDiffTest, KernelsComeFromEverySourceAndStayTheirTenants) {
  const auto bring = [](const std::string& path, const std::string& job_id, const std::string& tenant) {
    JobRow job = job_row(job_id, {{"v1 kernel f source=" + std::string(64, 'a'), "cpu one"}});
    job.tenant = tenant;
    const Status added = must_open(path)->add_job(
        job, {{.digest = std::string(64, 'a'), .tenant = tenant, .document = tenant}});
    ASSERT_TRUE(added.is_ok()) << added.message();
  };
  bring(a_, "j1", "red");
  bring(b_, "j1", "blue");
  for (int time = 0; time < 2; ++time) {
    const auto report = merge_databases({a_, b_}, c_);
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_EQ(report->sources.back().kernels.added, time == 0 ? 1 : 0);
    EXPECT_EQ(report->sources.back().kernels.known, time == 0 ? 0 : 1);
  }
  const auto merged = must_open(c_, Store::Mode::kRead);
  for (const std::string tenant : {"red", "blue"})
    EXPECT_EQ(merged->kernel(std::string(64, 'a'), tenant)->document, tenant);
  EXPECT_EQ(merged->kernel(std::string(64, 'a'), "green").status().code(), StatusCode::kNotFound);
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

// One database is a copy of the other, or was merged from it: one measurement cannot differ from itself,
// however it scatters.
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

// Both files have the job; one of them raced its tasks a second time. Whichever is merged into the other,
// that race answers.
TEST_F(MergeDiffTest, ASecondRaceOfAJobThatBothHaveAnswersInBothDirections) {
  std::vector<std::string> ids[2];
  {
    const auto store = must_open(a_);
    ASSERT_OK(store->add_job(job_row("j1", {{"v1 one", "cpu one"}, {"v1 two", "cpu one"}})));
    for (int task = 0; task < 2; ++task) {
      ids[task] = add_trials(*store, "j1", {"a=1", "a=2"}, task);
      for (const std::string& id : ids[task]) ASSERT_OK(store->add_records({ok_record(id, {100})}));
      raced(*store, ids[task], 90, task);
    }
  }
  ASSERT_TRUE(merge_databases({a_}, b_).is_ok());
  {
    const auto store = must_open(b_);
    for (int task = 0; task < 2; ++task) raced(*store, {ids[task][1], ids[task][0]}, 95, task);
  }
  const std::pair<std::string, double> second("a=2", 95);
  EXPECT_EQ(answer(a_), std::pair(std::string("a=1"), 90.0));
  std::filesystem::copy_file(a_, c_);
  const auto into_the_older = merge_databases({b_}, c_), into_the_newer = merge_databases({a_}, b_);
  ASSERT_TRUE(into_the_older.is_ok() && into_the_newer.is_ok());
  EXPECT_EQ(into_the_older->sources.front().races.added, 2);
  EXPECT_EQ(into_the_older->sources.front().races.known, 2);
  EXPECT_EQ(into_the_newer->sources.front().races.added, 0);
  EXPECT_EQ(into_the_newer->sources.front().races.known, 2);
  for (const std::string& db : {b_, c_}) {
    EXPECT_EQ(answer(db, "v1 one"), second) << db;
    EXPECT_EQ(answer(db, "v1 two"), second) << db;
    EXPECT_EQ(must_open(db, Store::Mode::kRead)->races("j1")->size(), 4u) << db;
  }
}

// Copies of a job that both went on give the same number to two trials. A race means that of its own file.
TEST_F(MergeDiffTest, ARaceNamesItsOwnTrialsWhereBothCopiesOfAJobWentOn) {
  measure(a_, "j1", "v1 one", {100});
  ASSERT_TRUE(merge_databases({a_}, b_).is_ok());
  for (const auto& [db, config, ns] : {std::tuple(a_, "a=10", 80.0), std::tuple(b_, "a=20", 70.0)}) {
    const auto store = must_open(db);
    const auto ids = add_trials(*store, "j1", {config});
    ASSERT_OK(store->add_records({ok_record(ids[0], {ns})}));
    raced(*store, {ids[0], store->trials("j1")->front().trial.id}, ns);
  }
  ASSERT_TRUE(merge_databases({a_, b_}, c_).is_ok());
  EXPECT_EQ(answer(c_), std::pair(std::string("a=20"), 70.0));
  const std::string other_way = folder_.file("d.db"), into_a_third = folder_.file("e.db");
  ASSERT_TRUE(merge_databases({b_, a_}, other_way).is_ok());
  EXPECT_EQ(answer(other_way), std::pair(std::string("a=20"), 70.0)) << "the faster of two that did not meet";
  measure(into_a_third, "j9", "v1 other", {5});
  for (int time = 0; time < 2; ++time) {
    const auto report = merge_databases({a_, b_}, into_a_third);
    ASSERT_TRUE(report.is_ok());
    for (const ImportReport& source : report->sources) {
      EXPECT_EQ(source.skipped, 0);
      EXPECT_EQ(source.races.added, time == 0 ? 1 : 0);
    }
    EXPECT_EQ(answer(into_a_third), std::pair(std::string("a=20"), 70.0));
  }
}

// A trial that was open in one file and measured in the other is measured; what was there first stays first.
TEST_F(MergeDiffTest, RecordsOfATrialThatBothHaveAreAddedAndTheFirstStaysItsOwn) {
  {
    const auto store = must_open(a_);
    ASSERT_OK(store->add_job(job_row("j1", {{"v1 one", "cpu one"}})));
    const auto ids = add_trials(*store, "j1", {"a=1", "a=2"});
    ASSERT_OK(store->add_records({ok_record(ids[0], {100})}));
  }
  ASSERT_TRUE(merge_databases({a_}, b_).is_ok());
  {
    const auto store = must_open(b_);
    const auto trials = *store->trials("j1");
    ASSERT_OK(store->add_records({ok_record(trials[0].trial.id, {60}), ok_record(trials[1].trial.id, {90})}));
  }
  std::filesystem::copy_file(a_, c_);
  const auto older = merge_databases({b_}, c_), newer = merge_databases({a_}, b_);
  ASSERT_TRUE(older.is_ok() && newer.is_ok());
  EXPECT_EQ(older->sources.front().trials.added, 2);
  EXPECT_EQ(older->sources.front().trials.known, 1);
  EXPECT_EQ(newer->sources.front().trials.added, 0);
  for (const std::string& db : {b_, c_}) {
    const auto store = must_open(db, Store::Mode::kRead);
    const auto trials = *store->trials("j1");
    ASSERT_EQ(trials.size(), 2u) << db;
    EXPECT_EQ(trials[0].record->run_ns, std::vector<double>{100}) << "the extra sample of 60 decides nothing";
    EXPECT_EQ(store->records(trials[0].trial.id)->size(), 2u) << db;
    ASSERT_TRUE(trials[1].record) << db;
    EXPECT_EQ(trials[1].trial.state, TrialState::kDone) << db;
    EXPECT_EQ(answer(db), std::pair(std::string("a=2"), 90.0)) << db;
  }
}

// A copy has all that its source has; of the other sources, what is not a job, trial, record, race or foreign
// record stays behind.
TEST_F(MergeDiffTest, OnlyTheFirstSourceBringsEventsLessonsQuarantineAndPoison) {
  for (const std::string& db : {a_, b_}) {
    measure(db, "j1", "v1 one", {100});
    const auto store = must_open(db);
    ASSERT_TRUE(store->add_event("j1", "{}").is_ok());
    LearnedRow learned{.kind = "predictor", .op = "conv2d", .target = "cpu one", .document = db};
    ASSERT_OK(store->add_learned(learned));
    QuarantineRow impossible{.lease_id = store->trials("j1")->front().trial.id, .claimed_ns = 1, .why = db};
    ASSERT_OK(store->add_quarantine(impossible));
    std::vector<DeathRow> deaths = {{.workload_key = "v1 one", .target = "cpu one", .config = "a=1"}};
    ASSERT_OK(store->add_deaths(deaths));
  }
  ASSERT_TRUE(merge_databases({a_, b_}, c_).is_ok());
  const auto merged = must_open(c_, Store::Mode::kRead);
  EXPECT_EQ(merged->events("j1", 0, 9)->size(), 1u);
  EXPECT_EQ(merged->learned("predictor", "conv2d", "cpu one")->document, a_);
  ASSERT_EQ(merged->quarantine("")->size(), 1u);
  EXPECT_EQ(merged->quarantine("")->front().why, a_);
  EXPECT_EQ(merged->deaths()->size(), 1u);
}

// The promise of the confidence: of comparisons of equals, with the threshold at nothing, at most that share
// of whole reports cries wolf.
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

// The confidence is that of all verdicts together: a change that alone is one is in doubt among many.
TEST_F(MergeDiffTest, TheConfidenceIsSharedByAllTasks) {
  const auto fill = [&](const std::string& db, double ns, int tasks) {
    const auto store = must_open(db);
    JobRow job = job_row("j1", {});
    for (int i = 0; i < tasks; ++i) job.tasks.push_back({str("v1 task ", i), "cpu one"});
    ASSERT_OK(store->add_job(job));
    std::vector<MeasureRecord> records;
    for (int i = 0; i < tasks; ++i)
      records.push_back(
          ok_record(add_trials(*store, "j1", {"a=1"}, i)[0], around(i == 0 ? ns : 1000, 0.03, 7)));
    ASSERT_OK(store->add_records(records));
  };
  const std::string alone_a = folder_.file("alone_a.db"), alone_b = folder_.file("alone_b.db");
  fill(alone_a, 1000, 1), fill(alone_b, 1070, 1);
  fill(a_, 1000, 40), fill(b_, 1070, 40);
  const auto alone =
      diff_databases(*must_open(alone_a, Store::Mode::kRead), *must_open(alone_b, Store::Mode::kRead), {});
  ASSERT_TRUE(alone.is_ok()) << alone.message();
  EXPECT_EQ(alone->tasks.front().verdict, TaskDiff::Verdict::kSlower) << alone->tasks.front().low;
  const DiffReport many = diff();
  EXPECT_EQ(many.compared, 40);
  EXPECT_EQ(many.tasks.front().verdict, TaskDiff::Verdict::kUnsure) << many.tasks.front().low;
  EXPECT_EQ(many.tasks.front().ratio, alone->tasks.front().ratio);
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
