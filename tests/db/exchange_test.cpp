// Records out of one database and into another, in every format: what comes back, what is recognised when it
// comes again, and what a damaged file costs.
#include <gmock/gmock.h>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "db/exchange/export_file.h"
#include "db/exchange/identity.h"
#include "db/exchange/import_file.h"
#include "db/sqlite/sqlite.h"
#include "tests/db/store_fixture.h"

namespace tuner::exchange {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class ExchangeTest : public testing::Test {
 protected:
  // Two jobs; of the first: two timed trials (one measured twice), a failed one, a cancelled one, a race.
  void SetUp() override {
    const auto store = must_open(home_);
    JobRow job = job_row("j1", {{"v1 work", "cpu one"}, {"v1 other", "cpu one", "direct", 7}});
    job.options.precision = 0.125;
    job.stop = {0.01, 60};
    ASSERT_OK(store->add_job(job));
    ASSERT_OK(store->add_job(job_row("j2")));
    ids_ = add_trials(*store, "j1", {"a=1 b=2", "a=2 b=-3", "a=3"});
    other_ = add_trials(*store, "j1", {"odd text, \"quoted\"", ""}, 1);
    MeasureRecord failed = ok_record(ids_[2], {});
    failed.outcome = Outcome::kWrongAnswer;
    failed.message = "out[0, 3] is 1.25, reference \"1.5\"";
    MeasureRecord gpu = ok_record(other_[0], {7.25, 7.5});
    gpu.device_state = "1980 MHz, 55 C";
    gpu.cut = true;
    ASSERT_OK(store->add_records(
        {ok_record(ids_[0], {1000.5, 0.1 + 0.2, 999}), ok_record(ids_[1], {2000}), failed, gpu}));
    ASSERT_OK(store->add_records({ok_record(ids_[0], {1001})}));  // an extra sample
    ASSERT_OK(store->cancel_open_trials("j1"));
    RaceRow race{.job_id = "j1", .winner_trial_id = ids_[1], .tie_set = {ids_[1], ids_[0]}};
    for (const std::string& id : {ids_[0], ids_[1]})
      race.finalists.push_back({id, {100, 101.5}, {50, 51}, {0, 1}});
    race.time_ns = 100, race.time_low_ns = 98, race.time_high_ns = 102;
    race.environment = {"cpu X", "llvm 22", 1, "w1", "", "host1"};
    race.finished_at_us = 1'700'000'002'000'000;
    ASSERT_OK(store->add_race(race));
    ASSERT_OK(store->set_job_state("j1", JobState::kFinished, "done"));
  }
  std::string exported(const std::string& db, Format format, const std::string& name = "out") {
    const auto report =
        export_file(*must_open(db, Store::Mode::kRead), {.format = format, .path = folder_.file(name)});
    CHECK(report.is_ok()) << report.message();
    return contents(folder_.file(name));
  }
  ImportReport imported(const std::string& file, const std::string& db, std::optional<Format> format = {}) {
    const auto store = must_open(db);
    const auto report = import_file(file, *store, {.format = format});
    CHECK(report.is_ok()) << report.message();
    EXPECT_EQ(report->accounted(), report->lines) << file;
    return *report;
  }
  // Every row that means something elsewhere, as lines; numbers that only count inside a file left out.
  static std::vector<std::string> meaning(const std::string& jsonl) {
    std::vector<std::string> out;
    for (const std::string& line : lines_of(jsonl)) {
      json j = json::parse(line);
      j.erase("trial");
      out.push_back(j.dump());
    }
    return out;
  }

  TemporaryFolder folder_;
  const std::string home_ = folder_.file("home.db"), away_ = folder_.file("away.db");
  std::vector<std::string> ids_, other_;
};

// Each damaged row is told once and costs itself and what cannot be without it; all others are written.
TEST_F(ExchangeTest, ADamagedRowCostsOnlyWhatNeedsIt) {
  const size_t whole = lines_of(exported(home_, Format::kJsonLines)).size();
  const auto damage = [&](const std::string& sql) {
    ASSERT_OK((*db::Connection::open(home_, db::Connection::Access::kReadWrite))->exec(sql.c_str()));
  };
  const auto report_of = [&] {
    const auto report = export_file(*must_open(home_, Store::Mode::kRead), {.path = folder_.file("out")});
    CHECK(report.is_ok()) << report.message();
    return *report;
  };
  damage("UPDATE record SET time_ns = 1 WHERE outcome = 'wrong_answer'");
  const ExportReport one = report_of();
  EXPECT_EQ(one.damaged, 1);
  EXPECT_EQ(one.lines, static_cast<int64_t>(whole) - 1);
  ASSERT_EQ(one.why.size(), 1u);
  EXPECT_THAT(one.why[0], HasSubstr("of table record is damaged: checksum"));

  // Two records of the second task, which are whole, cannot be told without it.
  damage("UPDATE task SET workload_key = 'v1 moved' WHERE workload_key = 'v1 other'");
  const ExportReport two = report_of();
  EXPECT_EQ(two.lines + two.damaged, static_cast<int64_t>(whole));
  EXPECT_GT(two.damaged, one.damaged);
  ASSERT_EQ(two.why.size(), 2u);
  EXPECT_THAT(two.why[0] + two.why[1], HasSubstr("of table task is damaged"));

  // Trials do without the row of their job: elsewhere they make one that knows what they tell.
  damage("UPDATE job SET trials = 1 WHERE id = 'j1'");
  const ExportReport three = report_of();
  EXPECT_EQ(three.trials, two.trials);
  EXPECT_EQ(three.lines, two.lines - 1);
  const ImportReport taken = imported(folder_.file("out"), away_);
  EXPECT_EQ(taken.skipped, 0);
  EXPECT_EQ(taken.trials.added, three.trials);
  EXPECT_EQ(imported(folder_.file("out"), away_).trials.added, 0);
}

// Cold times are lines of version 3: who knows only version 2 refuses them and takes no cold time for a warm
// one.
TEST_F(ExchangeTest, ColdTimesStayColdOnTheirWay) {
  {
    const auto store = must_open(home_);
    JobRow job = job_row("j3");
    job.tasks[0].constants = job.options.constants = Constants::kCold;
    ASSERT_OK(store->add_job(job));
    const auto ids = add_trials(*store, "j3", {"a=7", "a=8"});
    MeasureRecord r = ok_record(ids[0], {500});
    r.options.constants = Constants::kCold;
    r.memory_sentinel_before_ns = 300, r.memory_sentinel_after_ns = 301;
    r.discarded = 2;
    r.read_gbps = 21.5;
    ASSERT_OK(store->add_records({r, ok_record(ids[1], {900})}));
    RaceRow race{.job_id = "j3", .winner_trial_id = ids[0]};
    for (const std::string& id : ids)
      race.finalists.push_back({id, {510}, {50}, {0}, {300}, {400, 401}, {0, 0}});
    race.time_ns = 510, race.time_low_ns = 505, race.time_high_ns = 515;
    race.default_trial_id = ids[1], race.default_time_ns = 900;
    race.stored_trial_id = ids[1], race.won_by = WonBy::kSmallest;
    race.other_time_ns = 400;
    race.turns = 9, race.discarded = 4, race.disturbed = 1, race.slices = 30, race.retaken = 2;
    race.options.constants = Constants::kCold;
    race.environment = {"cpu X", "llvm 22", 1, "w1", "", "host1"};
    ASSERT_OK(store->add_race(race));
  }
  for (const std::string& line : lines_of(exported(home_, Format::kJsonLines))) {
    const json j = json::parse(line);
    EXPECT_EQ(j.at("format"), j.at("job") == "j3" ? 3 : 2) << line;
  }
  imported(folder_.file("out"), away_);
  const auto away = must_open(away_, Store::Mode::kRead);
  const auto best = away->best("v1 work", "cpu one", {}, true, Constants::kCold);
  ASSERT_TRUE(best.is_ok()) << best.message();
  EXPECT_EQ(best->config, "a=7");
  EXPECT_EQ(best->time_ns, 510);
  EXPECT_EQ(best->other_time_ns, 400);
  EXPECT_EQ(best->default_time_ns, 900);
  EXPECT_EQ(away->trial(best->default_trial_id)->trial.config, "a=8") << "by its number here";
  EXPECT_EQ(best->won_by, WonBy::kSmallest);
  const auto races = away->races(away->trial(best->trial_id)->trial.job_id);
  ASSERT_TRUE(races.is_ok() && races->size() == 1) << races.message();
  const RaceRow& race = races->front();
  EXPECT_EQ(away->trial(race.stored_trial_id)->trial.config, "a=8") << "by its number here";
  EXPECT_EQ(best->discarded, 4);
  EXPECT_EQ(best->read_gbps, 21.5);
  EXPECT_EQ(race.slices, 30);
  EXPECT_EQ(race.retaken, 2);
  const MeasureRecord record = *away->trial(best->trial_id)->record;
  EXPECT_EQ(record.options.constants, Constants::kCold);
  EXPECT_EQ(record.memory_sentinel_after_ns, 301);
  EXPECT_EQ(record.discarded, 2);
  EXPECT_EQ(away->best("v1 work", "cpu one")->config, "a=2 b=-3");
  // And as a table.
  const std::string table_db = folder_.file("table.db");
  exported(home_, Format::kCsv, "table.csv");
  imported(folder_.file("table.csv"), table_db);
  const auto by_table =
      must_open(table_db, Store::Mode::kRead)->best("v1 work", "cpu one", {}, true, Constants::kCold);
  ASSERT_TRUE(by_table.is_ok()) << by_table.message();
  EXPECT_EQ(by_table->config, "a=7");
  EXPECT_EQ(by_table->read_gbps, 21.5);
}

TEST_F(ExchangeTest, JsonLinesRebuildEveryRowInAnotherDatabaseAndTheSecondTimeChangeNothing) {
  const std::string text = exported(home_, Format::kJsonLines);
  const ImportReport first = imported(folder_.file("out"), away_);
  EXPECT_EQ(first.jobs.added, 2);
  EXPECT_EQ(first.trials.added, 6);  // five trials, one of them with two records
  EXPECT_EQ(first.races.added, 1);
  EXPECT_EQ(first.skipped, 0);
  {
    const auto home = must_open(home_, Store::Mode::kRead), away = must_open(away_, Store::Mode::kRead);
    const JobRow a = *home->job("j1"), b = *away->job("j1");
    EXPECT_EQ(b.tasks.size(), 2u);
    EXPECT_EQ(b.tasks[1].algorithms, "direct");
    EXPECT_EQ(b.tasks[1].uses, 7);
    EXPECT_EQ(b.seed, a.seed);
    EXPECT_EQ(b.request_id, a.request_id);
    EXPECT_EQ(b.options.precision, 0.125);
    EXPECT_EQ(b.stop, a.stop);
    EXPECT_EQ(b.state, JobState::kFinished);
    EXPECT_EQ(b.message, "done");
    EXPECT_EQ(away->job("j2")->state, JobState::kCancelled);  // was queued: nobody works on it here
    const auto of_a = *home->trials("j1"), of_b = *away->trials("j1");
    ASSERT_EQ(of_b.size(), 5u);
    for (size_t i = 0; i < of_a.size(); ++i) {
      EXPECT_EQ(of_b[i].trial.config, of_a[i].trial.config);
      EXPECT_EQ(of_b[i].trial.rng_counter, of_a[i].trial.rng_counter);
      EXPECT_EQ(of_b[i].trial.state, of_a[i].trial.state);
      ASSERT_EQ(of_b[i].record.has_value(), of_a[i].record.has_value());
      if (!of_a[i].record) continue;
      EXPECT_EQ(of_b[i].record->run_ns, of_a[i].record->run_ns);  // bit for bit
      EXPECT_EQ(of_b[i].record->message, of_a[i].record->message);
      EXPECT_EQ(of_b[i].record->device_state, of_a[i].record->device_state);
      EXPECT_EQ(of_b[i].record->finished_at_us, of_a[i].record->finished_at_us);
    }
    EXPECT_EQ(away->records(of_b[0].trial.id)->size(), 2u);
    EXPECT_EQ(away->best("v1 work", "cpu one")->config, "a=2 b=-3");  // by the race
    EXPECT_EQ(away->best("v1 work", "cpu one")->tied, 2);
    // What `submit` continues is never somebody else's job.
    EXPECT_TRUE(home->find_job(a.tasks, a.search, a.seed).is_ok());
    EXPECT_EQ(away->find_job(a.tasks, a.search, a.seed).status().code(), StatusCode::kNotFound);
  }
  const ImportReport second = imported(folder_.file("out"), away_);
  EXPECT_EQ(second.jobs.added + second.trials.added + second.races.added, 0);
  EXPECT_EQ(second.trials.known, 6);
  // And on to a third, and back home: the same rows are the same wherever they have been. The queued job was
  // cancelled on the way.
  exported(away_, Format::kJsonLines, "away.jsonl.gz");
  imported(folder_.file("away.jsonl.gz"), folder_.file("third.db"));
  EXPECT_EQ(meaning(exported(folder_.file("third.db"), Format::kJsonLines)),
            meaning(exported(away_, Format::kJsonLines, "b")));
  const ImportReport back = imported(folder_.file("away.jsonl.gz"), home_);
  EXPECT_EQ(back.jobs.added + back.trials.added + back.races.added + back.skipped, 0);
  EXPECT_EQ(exported(home_, Format::kJsonLines), text);
}

TEST_F(ExchangeTest, AJobThatWentOnAtHomeBringsWhatIsNew) {
  exported(home_, Format::kJsonLines);
  imported(folder_.file("out"), away_);
  {
    const auto store = must_open(home_);
    ASSERT_OK(store->extend_job("j1", 128, {}));
    const auto ids = add_trials(*store, "j1", {"a=4"});
    ASSERT_OK(store->add_records({ok_record(ids[0], {500})}));
    ASSERT_OK(store->set_job_state("j1", JobState::kFinished, "again"));
  }
  exported(home_, Format::kJsonLines);
  const ImportReport more = imported(folder_.file("out"), away_);
  EXPECT_EQ(more.jobs.added, 0);
  EXPECT_EQ(more.trials.added, 1);
  const auto away = must_open(away_, Store::Mode::kRead);
  EXPECT_EQ(away->job("j1")->trials, 128);
  EXPECT_EQ(away->job("j1")->message, "again");
  EXPECT_EQ(away->trials("j1")->size(), 6u);
}

TEST_F(ExchangeTest, AnIdThatIsTakenHereIsAnotherJob) {
  {
    const auto store = must_open(away_);
    JobRow job = job_row("j1");
    job.request_id = "another";
    job.submitted_at_us = 5;
    ASSERT_OK(store->add_job(job));
    const auto ids = add_trials(*store, "j1", {"a=9"});
    ASSERT_OK(store->add_records({ok_record(ids[0], {9000})}));
  }
  exported(home_, Format::kJsonLines);
  EXPECT_EQ(imported(folder_.file("out"), away_).trials.added, 6);
  EXPECT_EQ(imported(folder_.file("out"), away_).trials.added, 0);
  const auto away = must_open(away_, Store::Mode::kRead);
  EXPECT_EQ(away->trials("j1")->size(), 1u);
  const auto jobs = *away->jobs();
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_THAT(jobs[1].id, testing::StartsWith("j1-"));
  EXPECT_EQ(away->trials(jobs[1].id)->size(), 5u);
}

TEST_F(ExchangeTest, TwoCopiesOfAFileThatBothWentOnLoseNothing) {
  std::filesystem::copy_file(home_, away_);
  for (const auto& [path, config] : {std::pair(home_, "a=100"), std::pair(away_, "a=200")}) {
    const auto store = must_open(path);  // the same job, and the same next number
    const auto ids = add_trials(*store, "j1", {config});
    ASSERT_OK(store->add_records({ok_record(ids[0], {700})}));
  }
  exported(away_, Format::kJsonLines);
  EXPECT_EQ(imported(folder_.file("out"), home_).trials.added, 1);
  EXPECT_EQ(imported(folder_.file("out"), home_).trials.added, 0);
  const auto home = must_open(home_, Store::Mode::kRead);
  EXPECT_EQ(home->trials("j1")->size(), 7u);
}

TEST_F(ExchangeTest, ABrokenLineLosesNothingElseNotEvenWhenItIsTheJobs) {
  std::vector<std::string> lines = lines_of(exported(home_, Format::kJsonLines));
  const json job = json::parse(lines[0]);
  ASSERT_EQ(job.at("kind"), "job");
  std::string text = "{\"format\":2,\"kind\":\"job\",oops\n\n";
  for (size_t i = 1; i < lines.size(); ++i) text += lines[i] + "\n";
  write(folder_.file("broken.jsonl"), text);
  const ImportReport report = imported(folder_.file("broken.jsonl"), away_);
  EXPECT_EQ(report.skipped, 1);
  ASSERT_EQ(report.why.size(), 1u);
  EXPECT_EQ(report.why[0].first, 1);
  EXPECT_THAT(report.why[0].second, HasSubstr("no JSON: "));
  EXPECT_EQ(report.blank, 1);
  EXPECT_EQ(report.trials.added, 6);
  EXPECT_EQ(report.races.added, 1);
  // The whole file mends what was missing.
  imported(folder_.file("out"), away_);
  const JobRow mended = *must_open(away_, Store::Mode::kRead)->job("j1");
  EXPECT_EQ(mended.search, "random");
  EXPECT_EQ(mended.tasks.size(), 2u);
  EXPECT_EQ(mended.tasks[1].uses, 7);
}

TEST_F(ExchangeTest, AFileCutAtAnyByteImportsTheLinesBeforeAndNamesTheOneThatIsCut) {
  const std::string text = exported(home_, Format::kJsonLines);
  const auto whole = [&](size_t bytes) {
    return std::count(text.begin(), text.begin() + static_cast<long>(bytes), '\n');
  };
  int cuts = 0;
  for (size_t at = 50; at < text.size(); at += 397, ++cuts) {
    const std::string db = folder_.file(str("cut", at, ".db"));
    write(folder_.file("cut.jsonl"), text.substr(0, at));
    const ImportReport report = imported(folder_.file("cut.jsonl"), db, Format::kJsonLines);
    const bool between = text[at - 1] == '\n' || text[at] == '\n';
    EXPECT_EQ(report.jobs.all() + report.trials.all() + report.races.all(), whole(at) + (text[at] == '\n'))
        << at;
    ASSERT_EQ(report.why.size(), between ? 0u : 1u) << at;
    if (between) continue;
    EXPECT_EQ(report.why[0].first, whole(at) + 1);
    EXPECT_THAT(report.why[0].second, HasSubstr("is cut off"));
  }
  EXPECT_GT(cuts, 10);
}

TEST_F(ExchangeTest, ACompressedFileThatIsCutOffGivesWhatCanBeReadAndSaysSo) {
  exported(home_, Format::kJsonLines, "whole.jsonl.gz");
  const std::string bytes = contents(folder_.file("whole.jsonl.gz"));
  write(folder_.file("cut.jsonl.gz"), bytes.substr(0, bytes.size() - 20));
  const ImportReport report = imported(folder_.file("cut.jsonl.gz"), away_, Format::kJsonLines);
  ASSERT_FALSE(report.why.empty());
  EXPECT_THAT(report.why.back().second, HasSubstr("the compressed file is cut off"));
}

TEST_F(ExchangeTest, LinesOfVersion1AreRead) {
  write(
      folder_.file("one.jsonl"),
      R"({"format":1,"trial":"t3","seq":3,"job":"j1","workload":"v1 work","target":"cpu one","template":"toy_x86","template_version":3,"config":{"b":2,"a":1},"rng_counter":17293822569102704641,"model_digest":"m1","attempt":1,"outcome":"ok","cut":false,"message":"","time_ns":1000.5,"run_ns":[1000.5],"cpu_ns":[1000.5],"sentinel_before_ns":100.25,"sentinel_after_ns":101.5,"queue_ms":0.125,"build_ms":12.5,"run_ms":30.0,"max_error":0.1,"peak_gflops":83.2,"artifact":"d1g35t","hardware":"cpu X","toolchain":"llvm 22","harness_abi":1,"worker":"w1","worker_incarnation":"inc1","host":"host1","options":{"min_repeat_ms":1.0,"repeats":5,"build_timeout_s":10.0,"run_timeout_s":10.0,"memory_limit_bytes":4294967296,"cut_factor":2.0,"precision":0.125},"when":"2023-11-14T22:13:21.000000Z"})"
      "\n");
  EXPECT_EQ(imported(folder_.file("one.jsonl"), away_).trials.added, 1);
  EXPECT_EQ(imported(folder_.file("one.jsonl"), away_).trials.added, 0);
  const auto best = must_open(away_, Store::Mode::kRead)->best("v1 work", "cpu one");
  ASSERT_TRUE(best.is_ok()) << best.message();
  EXPECT_EQ(best->config, "a=1 b=2");
  EXPECT_EQ(best->finished_at_us, 1'700'000'001'000'000);
}

TEST_F(ExchangeTest, WhatAFilterAsksForIsWhatIsWritten) {
  const auto store = must_open(home_, Store::Mode::kRead);
  const auto count = [&](ExchangeFilter filter) {
    int64_t trials = 0;
    const Status read = store->exchange().for_each_row(filter, [&](const ExchangeRow& row) {
      trials += std::holds_alternative<ExchangedTrial>(row);
      return true;
    });
    CHECK(read.is_ok()) << read.message();
    return trials;
  };
  EXPECT_EQ(count({}), 6);
  EXPECT_EQ(count({.job = "j2"}), 0);
  EXPECT_EQ(count({.task = [](const JobRow::Task& t) { return t.workload_key == "v1 other"; }}), 2);
  EXPECT_EQ(count({.since_us = 1'700'000'001'000'000}), 5);  // the cancelled one has no record
  EXPECT_EQ(count({.since_us = 1'700'000'001'000'001}), 0);
  EXPECT_EQ(store->exchange().for_each_row({.job = "j9"}, [](const ExchangeRow&) { return true; }).code(),
            StatusCode::kNotFound);
}

TEST_F(ExchangeTest, CsvHasEveryFieldOfARecordAndComesBack) {
  const std::string table = exported(home_, Format::kCsv, "t.csv");
  EXPECT_EQ(lines_of(table).size(), 1u + 5u);  // header; records, not the trial without one
  const ImportReport report = imported(folder_.file("t.csv"), away_);
  EXPECT_EQ(report.format, Format::kCsv);
  EXPECT_EQ(report.trials.added, 5);
  EXPECT_EQ(report.skipped, 0);
  EXPECT_EQ(exported(away_, Format::kCsv, "u.csv"), table);
}

// Its key ends with a digest, and every byte of its document counts.
class KernelExchangeTest : public ExchangeTest {
 protected:
  void SetUp() override {
    ExchangeTest::SetUp();
    for (int i = 0; i < 256; ++i) document_ += static_cast<char>(i);
    const auto store = must_open(home_);
    JobRow job = job_row("j3", {{"v1 kernel f source=" + std::string(64, 'a'), "cpu one"}});
    job.tenant = "red";
    ASSERT_OK(
        store->add_job(job, {{.digest = std::string(64, 'a'), .tenant = "red", .document = document_},
                             {.digest = std::string(64, 'b'), .tenant = "red", .document = "unnamed"}}));
  }
  std::string document_;
};

TEST_F(KernelExchangeTest, KernelsThatTasksNameTravelWithThem) {
  const std::string lines = exported(home_, Format::kJsonLines);
  EXPECT_EQ(json::parse(lines_of(lines).front()).at("kind"), "source") << "before the job that names it";
  EXPECT_THAT(lines, testing::Not(HasSubstr(std::string(64, 'b')))) << "no task names it";
  ImportReport report = imported(folder_.file("out"), away_);
  EXPECT_EQ(report.kernels.added, 1);
  EXPECT_EQ(report.lines, report.accounted());
  {
    const auto store = must_open(away_, Store::Mode::kRead);
    EXPECT_EQ(store->kernel(std::string(64, 'a'))->document, document_);
    EXPECT_EQ(store->kernel(std::string(64, 'a'), "red").status().code(), StatusCode::kNotFound)
        << "a line says nothing of tenants";
  }
  EXPECT_EQ(imported(folder_.file("out"), away_).kernels.known, 1);
}

TEST_F(KernelExchangeTest, AFilterChoosesKernelsByTheirTasks) {
  const auto store = must_open(home_, Store::Mode::kRead);
  const auto digests = [&](const ExchangeFilter& filter) {
    std::vector<std::string> digests;
    const Status walked = store->exchange().for_each_row(filter, [&](const ExchangeRow& row) {
      if (const auto* kernel = std::get_if<KernelRow>(&row)) digests.push_back(kernel->digest.substr(0, 1));
      return true;
    });
    EXPECT_TRUE(walked.is_ok()) << walked.message();
    return digests;
  };
  EXPECT_EQ(digests({}), std::vector<std::string>{"a"});
  EXPECT_EQ(digests({.job = "j3"}), std::vector<std::string>{"a"});
  EXPECT_TRUE(digests({.job = "j1"}).empty());
  EXPECT_TRUE(
      digests({.task = [](const JobRow::Task& task) { return task.workload_key == "v1 work"; }}).empty());
  EXPECT_TRUE(digests({.own = false}).empty());
}

TEST_F(KernelExchangeTest, WhatIsNoKernelIsSkippedWithItsReason) {
  const json good = json::parse(lines_of(exported(home_, Format::kJsonLines)).front());
  const auto why = [&](const char* key, const json& value) {
    json line = good;
    line[key] = value;
    write(folder_.file("one.jsonl"), line.dump() + "\n");
    const ImportReport report = imported(folder_.file("one.jsonl"), away_);
    EXPECT_EQ(report.kernels.all(), 0);
    return report.why.empty() ? "" : report.why.front().second;
  };
  for (const char* text : {"abc", "ab=c", "YW Jj", "YR==", "YWJj\n"})
    EXPECT_EQ(why("document", text), "document: expected base64") << text;
  EXPECT_THAT(why("document", ""), HasSubstr("its document is empty"));
  EXPECT_THAT(why("digest", "../../x"), HasSubstr("64 hexadecimal digits"));
  const auto store = must_open(away_);
  write(folder_.file("one.jsonl"), good.dump() + "\n");
  const auto report = import_file(folder_.file("one.jsonl"), *store,
                                  {.check_kernel = [](const KernelRow&) { return failed("forged"); }});
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_EQ(report->why.front().second, "forged");
  EXPECT_EQ(store->kernel(std::string(64, 'a')).status().code(), StatusCode::kNotFound);
}

TEST_F(KernelExchangeTest, ADamagedKernelCostsNothingElse) {
  ASSERT_OK((*db::Connection::open(home_, db::Connection::Access::kReadWrite))
                ->exec("UPDATE kernel SET document = 'forged' WHERE digest LIKE 'a%'"));
  const auto store = must_open(home_, Store::Mode::kRead);
  EXPECT_THAT(store->kernel(std::string(64, 'a')).message(), HasSubstr("of table kernel is damaged"));
  std::vector<std::string> damage;
  int64_t trials = 0, kernels = 0;
  ExchangeFilter filter;
  filter.damaged = [&](const std::string& why) { damage.push_back(why); };
  ASSERT_OK(store->exchange().for_each_row(filter, [&](const ExchangeRow& row) {
    trials += std::holds_alternative<ExchangedTrial>(row);
    kernels += std::holds_alternative<KernelRow>(row);
    return true;
  }));
  EXPECT_EQ(kernels, 0);
  EXPECT_GT(trials, 0);
  EXPECT_THAT(damage, testing::ElementsAre(HasSubstr("of table kernel is damaged")));
  EXPECT_FALSE(store->exchange().for_each_row({}, [](const ExchangeRow&) { return true; }).is_ok());
}

TEST_F(KernelExchangeTest, TheSchemaDescribesEveryLineThatIsWritten) {
  const json schema = json::parse(contents(TUNER_SOURCE_DIR "/db/records.schema.json"));
  {
    const auto store = must_open(home_);
    const auto importer = store->exchange().importer({"some.log", "autotvm", ""});
    ForeignRecord foreign{
        .format = "autotvm", .task = "conv2d [1]", .target = "llvm", .time_ns = 5, .document = "{}"};
    ASSERT_TRUE(importer->add({ExchangeRow(foreign)}).is_ok());
  }
  std::set<std::string> kinds;
  for (const std::string& line : lines_of(exported(home_, Format::kJsonLines))) {
    const json j = json::parse(line);
    const std::string kind = j.at("kind");
    kinds.insert(kind);
    const json& rule = schema.at("$defs").at(kind);
    for (const json& name : rule.at("required")) EXPECT_TRUE(j.contains(name)) << kind << " " << name;
    for (const auto& [name, value] : j.items()) {
      ASSERT_TRUE(rule.at("properties").contains(name)) << kind << ": " << name << " is not in the schema";
      json types = rule["properties"][name].value("type", json());
      if (types.is_null()) continue;
      if (types.is_string()) types = json::array({types});
      const std::string type = value.is_object()           ? "object"
                               : value.is_array()          ? "array"
                               : value.is_boolean()        ? "boolean"
                               : value.is_number_integer() ? "integer"
                               : value.is_number()         ? "number"
                                                           : "string";
      EXPECT_TRUE(std::ranges::find(types, json(type)) != types.end() ||
                  (type == "integer" && std::ranges::find(types, json("number")) != types.end()))
          << kind << ": " << name << " is " << type << ", the schema says " << types;
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"job", "trial", "race", "foreign", "source"}));
}

// Lines from before there were certificates: a winner's interval of 5 % to either side is one.
TEST_F(ExchangeTest, ARaceOfALineWithoutACertificateIsJudgedByItsInterval) {
  exported(home_, Format::kJsonLines);
  const std::vector<std::string> lines = lines_of(contents(folder_.file("out")));
  for (const auto& [low, high, certified] : {std::tuple(95.5, 105.0, true), std::tuple(94.0, 106.0, false)}) {
    std::string text;
    for (const std::string& line : lines) {
      json j = json::parse(line);
      if (j.at("kind") == "race") {
        j.erase("certified"), j.erase("uncertified_why");
        j["time_low_ns"] = low, j["time_high_ns"] = high;
      }
      text += j.dump() + "\n";
    }
    write(folder_.file("old.jsonl"), text);
    const std::string db = folder_.file(str(low, ".db"));
    ASSERT_EQ(imported(folder_.file("old.jsonl"), db).races.added, 1);
    const auto races = must_open(db, Store::Mode::kRead)->races("j1");
    ASSERT_TRUE(races.is_ok() && races->size() == 1) << races.message();
    EXPECT_EQ(races->front().certified, certified) << low << " to " << high;
    EXPECT_EQ(races->front().uncertified_why.empty(), certified);
  }
}

TEST_F(ExchangeTest, EveryTaskOfAJobIsCheckedAndARefusedOneCostsItsRowsOnly) {
  exported(home_, Format::kJsonLines);
  const auto store = must_open(away_);
  const auto report = import_file(
      folder_.file("out"), *store, {.check_task = [](const JobRow::Task& task) {
        return task.workload_key == "v1 other" ? invalid_argument("no such operator") : Status::ok();
      }});
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_EQ(report->jobs.added, 1) << "j2 alone: the second task of j1 is none";
  EXPECT_EQ(report->trials.added, 4) << "two trials of that task are left out";
  EXPECT_EQ(report->skipped, 3);
  for (const auto& [line, why] : report->why) EXPECT_THAT(why, HasSubstr("no such operator"));
}

// The position in the file is a hint: parts of it may be missing.
TEST(Identity, ATaskIsFoundByItsAlgorithmsToo) {
  const JobRow job =
      job_row("j1", {{"v1 w", "cpu", "direct"}, {"v1 w", "cpu", "winograd"}, {"v1 w", "gpu", ""}});
  EXPECT_EQ(index_of(job, {"v1 w", "cpu", "winograd"}, 0), 1);
  EXPECT_EQ(index_of(job, {"v1 w", "cpu", "direct"}, 2), 0);
  EXPECT_EQ(index_of(job, {"v1 w", "gpu", ""}, 9), 2);
  EXPECT_EQ(index_of(job, {"v1 w", "cpu", ""}, -1), 0) << "a file need not tell the algorithms";
  EXPECT_EQ(index_of(job, {"v1 x", "cpu", ""}, 0), -1);
}

TEST_F(ExchangeTest, WhatAFormatHasNoPlaceForIsCountedAsLeftOut) {
  {
    const auto store = must_open(home_);
    ForeignRecord foreign{.format = "t4", .task = "c", .time_ns = 5, .document = "{}"};
    ASSERT_TRUE(store->exchange().importer({"x", "t4", ""})->add({ExchangeRow(foreign)}).is_ok());
  }
  const auto report = export_file(*must_open(home_, Store::Mode::kRead),
                                  {.format = Format::kAutotvm, .path = folder_.file("a.log")});
  ASSERT_TRUE(report.is_ok()) << report.message();
  // A cancelled trial and one that was cut have no line there; nor has the record of T4.
  EXPECT_EQ(report->lines + report->left_out, 7)
      << "six of our own, with those that have no record, and one of T4";
  EXPECT_EQ(report->foreign, 0);
  EXPECT_EQ(report->trials, report->lines);
}

// --- AutoTVM ---

std::string autotvm_line_of(int i) {
  std::ostringstream out;
  out.precision(17);
  const int error = i % 11 == 3 ? 6 : i % 17 == 5 ? 5 : 0;
  out << R"({"input": ["llvm -keys=cpu -mcpu=znver5", "toy_conv.x86", [["TENSOR", [1, )" << 8 * (i % 5 + 1)
      << R"(, 7, 7], "float32"], [1, 1], null, "NCHW"], {}], "config": {"index": )" << i
      << R"(, "code_hash": null, "entity": [["tile_ic", "sp", [-1, )" << (1 << i % 6)
      << R"(]], ["unroll", "ot", )" << (i % 2 ? "true" : "false")
      << R"(], ["order", "re", [0, 2, 1]], ["ann", "an", ["vec", "unroll"]]]}, "result": [[)";
  if (error != 0)
    out << "1000000000.0";
  else
    out << 1e-6 * (i + 1) / 3 << ", " << 1e-6 * (i + 1) / 3.1;
  out << "], " << error << ", " << 0.25 + i / 7.0 << ", " << 1795202171.8142662 + i
      << R"(], "version": 0.2, "tvm_version": "0.19.0"})";
  return out.str();
}

TEST_F(ExchangeTest, TenThousandAutotvmLinesRoundTripFieldForField) {
  constexpr int kLines = 10'000;
  std::string text;
  for (int i = 0; i < kLines; ++i) text += autotvm_line_of(i) + "\n";
  write(folder_.file("big.log"), text);
  const ImportReport first = imported(folder_.file("big.log"), away_);
  EXPECT_EQ(first.format, Format::kAutotvm);
  EXPECT_EQ(first.foreign.added, kLines);
  EXPECT_EQ(imported(folder_.file("big.log"), away_).foreign.known, kLines);
  // By way of our own lines to another database, and out again as a log.
  exported(away_, Format::kJsonLines, "big.jsonl");
  EXPECT_EQ(imported(folder_.file("big.jsonl"), folder_.file("b.db")).foreign.added, kLines);
  for (const std::string& db : {away_, folder_.file("b.db")}) {
    const std::vector<std::string> out = lines_of(exported(db, Format::kAutotvm, "again.log"));
    ASSERT_EQ(out.size(), size_t{kLines});
    for (int i = 0; i < kLines; ++i)
      ASSERT_EQ(json::parse(out[static_cast<size_t>(i)]), json::parse(autotvm_line_of(i))) << i;
  }
}

TEST(Autotvm, OutcomesTimesAndTaskAreUnderstood) {
  const auto ok = parse_autotvm_line(autotvm_line_of(0));
  ASSERT_TRUE(ok.is_ok()) << ok.message();
  EXPECT_EQ(ok->outcome, Outcome::kOk);
  EXPECT_NEAR(ok->time_ns, (1e3 / 3 + 1e3 / 3.1) / 2, 1e-9);
  EXPECT_EQ(ok->target, "llvm -keys=cpu -mcpu=znver5");
  EXPECT_EQ(ok->task, R"(toy_conv.x86 [["TENSOR",[1,8,7,7],"float32"],[1,1],null,"NCHW"])");
  EXPECT_EQ(ok->finished_at_us, 1795202171814266);
  EXPECT_EQ(parse_autotvm_line(autotvm_line_of(3))->outcome, Outcome::kBuildTimeout);
  EXPECT_EQ(parse_autotvm_line(autotvm_line_of(3))->time_ns, 0);
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string line = autotvm_line_of(0);
    line.replace(line.find(from), from.size(), to);
    return parse_autotvm_line(line).message();
  };
  EXPECT_EQ(
      refused(R"("version": 0.2)", R"("version": 0.1)"),
      "version: found 0.1, expected 0.2; AutoTVM logs of version 0.2 are read, as TVM writes them since 0.7. "
      "Tune again there, or write the times as a CSV table with a column time_ms");
  EXPECT_THAT(refused(R"("result")", R"("results")"), HasSubstr("result: expected a value, found nothing."));
  EXPECT_THAT(refused("], 0, ", "], 9, "), HasSubstr("error number 9, expected 0 to 8"));
  EXPECT_THAT(refused("[[3.33", "[[-3.33"), HasSubstr("expected 0.001 to 1e+15 ns a call"));
  EXPECT_THAT(refused(R"(["unroll", "ot", false])", R"(["unroll"])"),
              HasSubstr("config: entity: found [\"unroll\"]"));
  EXPECT_THAT(refused("[[3.33", "[[NaN, 3.33"), HasSubstr("no JSON: "));
}

TEST_F(ExchangeTest, OurRecordsAreWrittenInAutotvmsForm) {
  const std::vector<std::string> log = lines_of(exported(home_, Format::kAutotvm));
  ASSERT_EQ(log.size(), 5u);
  const json line = json::parse(log[0]);
  EXPECT_EQ(line.at("input"), json::parse(R"(["cpu one", "toy_x86", ["v1 work"], {}])"));
  EXPECT_EQ(line.at("config").at("entity"), json::parse(R"([["a", "ot", 1], ["b", "ot", 2]])"));
  EXPECT_NEAR(line.at("result").at(0).at(0).get<double>(), 1000.5e-9, 1e-20);
  EXPECT_EQ(line.at("result").at(1), 0);
  EXPECT_EQ(json::parse(log[3]).at("result").at(1), 5);  // the wrong answer
  for (const std::string& text : log) EXPECT_TRUE(parse_autotvm_line(text).is_ok()) << text;
}

// --- T4 ---

constexpr char kT4[] = R"({
  "schema_version": "1.0.0",
  "metadata": {"kernel_name": "blur", "device_name": "GPU Y"},
  "results": [
    {"timestamp": "2023-12-21 10:44:42.236642+00:00", "configuration": {"block": 16, "mode": "a]}"},
     "times": {"compilation_time": 661.5, "runtimes": [12.5, 12.25, 13.0], "framework": 1, "search_algorithm": 0, "validation": 0},
     "invalidity": "correct", "correctness": 1, "measurements": [{"name": "time", "value": 12.5, "unit": "ms"}], "objectives": ["time"]},
    {"configuration": {"block": 32}, "times": {"compilation_time": 3}, "invalidity": "compile", "correctness": 0},
    {"configuration": {"block": 64}, "times": {"runtimes": []}, "invalidity": "correct", "correctness": 1,
     "measurements": [{"name": "time", "value": 250, "unit": "us"}]},
    {"configuration": {"block": 99}, "times": {}, "invalidity": "unlucky", "correctness": 0}
  ],
  "note": "after"
}
)";

TEST_F(ExchangeTest, T4DocumentsAreReadElementByElementAndComeBack) {
  write(folder_.file("k.json"), kT4);
  const ImportReport report = imported(folder_.file("k.json"), away_);
  EXPECT_EQ(report.format, Format::kT4);
  EXPECT_EQ(report.foreign.added, 3);
  ASSERT_EQ(report.why.size(), 1u);
  EXPECT_EQ(report.why[0].first, 11);  // the line the element begins on
  EXPECT_THAT(report.why[0].second, HasSubstr("invalidity: found \"unlucky\""));
  EXPECT_EQ(imported(folder_.file("k.json"), away_).foreign.added, 0);
  json expected = json::parse(kT4);
  expected["results"].erase(3);
  EXPECT_EQ(json::parse(exported(away_, Format::kT4)), expected);

  std::vector<ForeignRecord> records;
  ASSERT_OK(must_open(away_, Store::Mode::kRead)->exchange().for_each_row({}, [&](const ExchangeRow& row) {
    records.push_back(std::get<ForeignRecord>(row));
    return true;
  }));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].time_ns, 12.5e6);
  EXPECT_EQ(records[0].finished_at_us, 1703155482236642);
  EXPECT_EQ(records[0].task, "blur");
  EXPECT_EQ(records[0].target, "GPU Y");
  EXPECT_EQ(records[1].outcome, Outcome::kBuildError);
  EXPECT_EQ(records[2].time_ns, 250e3);
}

TEST_F(ExchangeTest, AT4DocumentCutAnywhereGivesTheResultsBefore) {
  const std::string text = kT4;
  const size_t begin = text.find("\"results\": [") + 12;
  for (size_t at = begin; at < text.size() - 2; ++at) {
    const auto document = split_t4(std::string_view(text).substr(0, at));
    ASSERT_TRUE(document.is_ok()) << at << document.message();
    EXPECT_THAT(document->broken, HasSubstr("cut off")) << at;
    EXPECT_LE(document->elements.size(), 4u);
    for (const T4Document::Element& element : document->elements)
      EXPECT_TRUE(json::accept(element.text)) << at << ": " << element.text;
  }
  EXPECT_EQ(split_t4(text)->elements.size(), 4u);
  EXPECT_EQ(split_t4(text)->broken, "");
}

TEST_F(ExchangeTest, OurRecordsOfOneTaskAreAT4DocumentAndThoseOfSeveralAreRefused) {
  const auto store = must_open(home_, Store::Mode::kRead);
  ExportOptions options{.format = Format::kT4, .path = folder_.file("t4.json")};
  EXPECT_THAT(export_file(*store, options).message(), HasSubstr("a document is of one task"));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("t4.json")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("t4.json.part")));
  options.filter.task = [](const JobRow::Task& t) { return t.workload_key == "v1 work"; };
  ASSERT_TRUE(export_file(*store, options).is_ok());
  const json document = json::parse(contents(folder_.file("t4.json")));
  ASSERT_EQ(document.at("results").size(), 4u);
  EXPECT_EQ(document["results"][0].at("configuration"),
            json::parse(R"({"template":"toy_x86","template_version":3,"a":1,"b":2})"));
  EXPECT_EQ(document["results"][3].at("invalidity"), "correctness");
  EXPECT_EQ(imported(folder_.file("t4.json"), away_).foreign.added, 4);
}

// --- tables of other programs ---

TEST_F(ExchangeTest, ATableWithATimeColumnIsRead) {
  write(folder_.file("space.csv"),
        "tile,unroll,time_ms,status\n4,1,0.5,ok\r\n8,0,,build_error\n\"16\",\"1\",\"0.25\",\"ok\"\n1,2,3\n1,"
        "1,x,ok\n2,2,\"1,ok\n");
  const ImportReport report = imported(folder_.file("space.csv"), away_);
  EXPECT_EQ(report.foreign.added, 3);
  EXPECT_EQ(report.blank, 1);  // the header
  ASSERT_EQ(report.skipped, 3);
  EXPECT_THAT(report.why[0].second, HasSubstr("found 3 fields, expected 4"));
  EXPECT_THAT(report.why[1].second, HasSubstr("time_ms: found \"x\", expected 0.001 to 1e+15 ns a call"));
  EXPECT_THAT(report.why[2].second, HasSubstr("its quote is not closed on this line"));
  EXPECT_THAT(CsvTable::from_header("a,time,status").message(),
              HasSubstr("no column time_ns, time_us, time_ms or time_s"));
}

TEST_F(ExchangeTest, WhatIsNoneOfTheFormatsIsRefusedWithItsFirstLine) {
  for (const char* text : {"hello", "", "[1, 2, 3]\n", "{\"a\": 1}\n", "\x1f\x8b garbage"}) {
    write(folder_.file("x"), text);
    const auto detected = detect_format(folder_.file("x"));
    ASSERT_FALSE(detected.is_ok()) << text;
    EXPECT_FALSE(detected.message().empty());
  }
  EXPECT_EQ(detect_format(folder_.file("none")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(detect_format(folder_.path()).message(), HasSubstr("is a folder"));
}

// As AutoTVM's own reader has it: also before the first record, and beside a mark and Windows' line ends.
TEST_F(ExchangeTest, CommentsOfAnAutotvmLogCountAsBlank) {
  write(folder_.file("a.log"), str("\xef\xbb\xbf# tuned on Tuesday\r\n", autotvm_line_of(0), "\r\n#",
                                   autotvm_line_of(1), "\r\n\r\n", autotvm_line_of(2), "\r\n"));
  const ImportReport report = imported(folder_.file("a.log"), away_);
  EXPECT_EQ(report.format, Format::kAutotvm);
  EXPECT_EQ(report.lines, 5);
  EXPECT_EQ(report.blank, 3);
  EXPECT_EQ(report.foreign.added, 2);
  EXPECT_EQ(report.skipped, 0);
  write(folder_.file("b.log"), "# nothing came of it\n");
  EXPECT_THAT(detect_format(folder_.file("b.log")).message(), HasSubstr("has only comments"));
}

// Told or not, a log of TVM's other tuners is named in one line, and nothing of it is stored.
TEST_F(ExchangeTest, LogsOfTvmsOtherTunersAreNamed) {
  const std::pair<std::string, std::string> logs[] = {
      {R"({"i": ["cuda", "dense", [["TENSOR", [8, 9], "float32"]], {}, null, {"i": 1}], "r": [[1.0], 0, 2, 3], "v": 0.1})",
       "is an AutoTVM log of version 0.1, which is not read; AutoTVM logs of version 0.2 are read"},
      {R"({"i": [["[\"k\"]", "cuda"], [[], []]], "r": [[0.1], 0, 1, 2], "v": "v0.6"})",
       "is a log of auto_scheduler (Ansor), version \"v0.6\", of which nothing is read"},
      {R"([7, [[[], []], [0.25], {"kind": "llvm"}, []]])", "is a database of MetaSchedule"},
  };
  for (const auto& [line, says] : logs) {
    write(folder_.file("other.log"), str("# first\n", line, "\n", line, "\n"));
    EXPECT_THAT(detect_format(folder_.file("other.log")).message(), HasSubstr(says));
    const auto store = must_open(away_, Store::Mode::kWrite);
    for (const std::optional<Format> format : {std::optional<Format>(), std::optional(Format::kAutotvm)}) {
      const auto report = import_file(folder_.file("other.log"), *store, {.format = format});
      EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(report.message(), HasSubstr(says));
      EXPECT_THAT(report.message(), HasSubstr("Tune again there, or write the times as a CSV table"));
    }
  }
}

// Killed while it wrote its first line, or copied in part.
TEST_F(ExchangeTest, AFileCutInsideItsFirstRecordIsCutOffAndNoUnknownFormat) {
  const std::string line = autotvm_line_of(0), ours = lines_of(exported(home_, Format::kJsonLines))[0];
  for (const std::string& whole : {line, ours})
    for (const size_t at : {size_t{2}, whole.size() / 3, whole.size() - 1}) {
      write(folder_.file("cut.log"), whole.substr(0, at));
      const auto store = must_open(away_, Store::Mode::kWrite);
      const auto report = import_file(folder_.file("cut.log"), *store, {});
      // Where enough is there to know the format, the line is skipped for that reason.
      const std::string said = report ? report->why.at(0).second : report.message();
      EXPECT_THAT(said, HasSubstr("is cut off")) << whole.substr(0, at);
    }
  write(folder_.file("whole.log"), "{\"a\": 1}");
  EXPECT_THAT(detect_format(folder_.file("whole.log")).message(), HasSubstr("none of the formats"))
      << "a whole record without an end of line";
  write(folder_.file("wide.log"), std::string("\xff\xfe{\0\"\0", 6));
  EXPECT_THAT(detect_format(folder_.file("wide.log")).message(),
              HasSubstr("is text in UTF-16, expected UTF-8"));
}

TEST(TimeText, ComesBackAndReadsOtherForms) {
  for (const int64_t us : {int64_t{1}, int64_t{1'700'000'001'000'000}, int64_t{4'102'444'799'999'999}})
    EXPECT_EQ(time_from_text(time_text(us)), us);
  EXPECT_EQ(time_text(0), "");
  EXPECT_EQ(time_from_text(""), 0);
  EXPECT_EQ(time_from_text("2023-12-21 10:44:42.5+01:00"), 1703151882500000);
  EXPECT_EQ(time_from_text("2023-12-21T10:44:42Z"), 1703155482000000);
  for (const char* wrong :
       {"2023", "2023-13-01T00:00:00Z", "2023-12-21T10:44:42.Z", "yesterday", "2023-12-21T10:44:42Zx"})
    EXPECT_FALSE(time_from_text(wrong)) << wrong;
}

}  // namespace
}  // namespace tuner::exchange
