// Records and races that cannot be: refused one by one, by every importer and by the store, and read where an
// older program stored them.
#include <gmock/gmock.h>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "db/exchange/export_file.h"
#include "db/exchange/import_file.h"
#include "db/plausible.h"
#include "db/sqlite/row_codec.h"
#include "db/sqlite/sqlite.h"
#include "tests/db/store_fixture.h"

namespace tuner::exchange {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ImplausibleTest : public testing::Test {
 protected:
  // Imports the text and returns the report; each line that was skipped is told.
  ImportReport imported(const std::string& text, std::optional<Format> format = {}) {
    std::ofstream(folder_.file("in"), std::ios::binary) << text;
    const auto report = import_file(folder_.file("in"), *must_open(db_), {.format = format});
    CHECK(report.is_ok()) << report.message();
    return *report;
  }
  void expect_skipped(const ImportReport& report, const std::vector<std::pair<int64_t, std::string>>& why) {
    ASSERT_EQ(report.skipped, std::ssize(why));
    for (size_t i = 0; i < why.size(); ++i) {
      EXPECT_EQ(report.why[i].first, why[i].first);
      EXPECT_THAT(report.why[i].second, HasSubstr(why[i].second));
    }
  }
  // A job with two timed trials and a race that the second one won, exported.
  std::vector<std::string> exported() {
    const std::string home = folder_.file("home.db");
    {
      const auto store = must_open(home);
      CHECK(store->add_job(job_row("j1")).is_ok());
      const auto ids = add_trials(*store, "j1", {"a=1", "a=2"});
      CHECK(store->add_records({ok_record(ids[0], {200}), ok_record(ids[1], {100})}).is_ok());
      RaceRow race{.job_id = "j1", .winner_trial_id = ids[1], .tie_set = {ids[1]}};
      race.finalists = {{ids[0], {200, 210}, {50, 51}, {0, 1}}, {ids[1], {100, 110}, {50, 51}, {0, 1}}};
      race.time_ns = 105, race.time_low_ns = 104, race.time_high_ns = 106;
      CHECK(store->add_race(race).is_ok());
    }
    CHECK(export_file(*must_open(home, Store::Mode::kRead), {.path = folder_.file("out")}).is_ok());
    std::ifstream in(folder_.file("out"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  TemporaryFolder folder_;
  const std::string db_ = folder_.file("away.db");
};

// A thousandth of a nanosecond, and 11.6 days: the bounds themselves can be, and nothing beyond.
TEST(PlausibleCall, BoundsAreThoseThatAreTold) {
  EXPECT_EQ(kPlausibleCall, "0.001 to 1e+15 ns a call");
  for (const double ns : {0.001, 1.0, 1e15}) EXPECT_TRUE(is_plausible_call(ns)) << ns;
  for (const double ns : {0.0, -1.0, 0.00099, 1.001e15, std::nan("")})
    EXPECT_FALSE(is_plausible_call(ns)) << ns;
  EXPECT_TRUE(is_plausible_or_none(0));
  EXPECT_FALSE(is_plausible_or_none(0.00099));
}

TEST_F(ImplausibleTest, TimesOfOtherTunersAreRefusedByFieldAndBounds) {
  const std::string bounds(kPlausibleCall);
  const ImportReport csv = imported("tile,time_ms\n1,0.5\n2,1e-300\n3,1e308\n4,7x\n", Format::kCsv);
  EXPECT_EQ(csv.foreign.added, 1);
  expect_skipped(csv, {{3, "time_ms: found \"1e-300\", expected " + bounds},
                       {4, "time_ms: found \"1e308\", expected " + bounds},
                       {5, "time_ms: found \"7x\", expected " + bounds}});

  const auto autotvm = [](const char* seconds) {
    return str(R"({"input":["cuda","conv2d",[1],{}],"config":{"index":1,"code_hash":null,"entity":[]},)",
               R"("result":[[1e-5,)", seconds, R"(],0,1.5,1700000000],"version":0.2,"tvm_version":"0.7"})",
               "\n");
  };
  const ImportReport log = imported(autotvm("2e-5") + autotvm("1e300") + autotvm("1e-300"), Format::kAutotvm);
  EXPECT_EQ(log.foreign.added, 1);
  expect_skipped(log, {{2, "result: time 1e+300 s of a config without error, expected " + bounds},
                       {3, "result: time 1e-300 s of a config without error, expected " + bounds}});

  const auto t4 = [](const char* ms, const char* measured) {
    return str(R"({"configuration":{},"times":{"runtimes":[)", ms, R"(]},"invalidity":"correct",)",
               R"("measurements":[{"name":"time","unit":"ms","value":)", measured, "}]}");
  };
  const ImportReport document = imported(str(R"({"schema_version":"1.0.0","results":[)", "\n", t4("1,2", "1"),
                                             ",\n", t4("1,1e300,2", "2"), ",\n", t4("", "1e-300"), "\n]}"),
                                         Format::kT4);
  EXPECT_EQ(document.foreign.added, 1);
  expect_skipped(document, {{3, "times.runtimes: found 1e+300 ms, expected " + bounds},
                            {4, "measurements: found a time of 1e-294 ns, expected " + bounds}});
}

TEST_F(ImplausibleTest, TimesInOurOwnLinesAreRefusedAndTheRestIsKept) {
  std::vector<std::string> lines = exported();
  ASSERT_EQ(lines.size(), 4u);
  json trial = json::parse(lines[1]);
  trial["run_ns"] = {1e-300};
  json race = json::parse(lines[3]);
  race["default_time_ns"] = 1e308;
  const std::string foreign =
      R"({"format":2,"kind":"foreign","of":"csv","task":"k","target":"","outcome":"ok","time_ns":1e-300,"when":"",)"
      R"("source":"s","source_format":"csv","source_header":"","imported":"","document":"1"})";
  const ImportReport report =
      imported(str(lines[0], "\n", trial.dump(), "\n", lines[2], "\n", foreign, "\n"));
  EXPECT_EQ(report.trials.added, 1);
  expect_skipped(report, {{4, "time_ns: found 1e-300, expected 0.001 to 1e+15 ns a call"},
                          {2, "run_ns has 1e-300, expected 0.001 to 1e+15 ns a call"}});
  expect_skipped(imported(str(lines[1], "\n", race.dump(), "\n")),
                 {{2, "default_time_ns is 1e+308, expected 0.001 to 1e+15 ns a call, or 0"}});
}

// The only row of the table, with 1e308 ns where it has 7: as a program without these bounds stored it.
void age(const std::string& db, const std::string& table) {
  const auto connection = db::Connection::open(db, db::Connection::Access::kReadWrite).value();
  db::SqlRow row = connection->one(str("SELECT * FROM ", table)).value();
  row.pop_back();  // the checksum
  for (auto& value : row) {
    if (auto* number = std::get_if<double>(&value); number != nullptr && *number == 7) *number = 1e308;
    if (auto* text = std::get_if<std::string>(&value); text != nullptr && *text == "[7.0]")
      *text = "[1e+308]";
  }
  row = db::sealed(std::move(row));
  std::string values;
  for (size_t i = 0; i < row.size(); ++i) values += i == 0 ? "?" : ", ?";
  ASSERT_OK(connection->exec(str("DELETE FROM ", table).c_str()));
  ASSERT_OK(connection->run(str("INSERT INTO ", table, " VALUES (", values, ")"), row));
}

TEST_F(ImplausibleTest, WhatAnOlderProgramStoredIsStillReadAndNothingLikeItIsStored) {
  std::string id;
  {
    const auto store = must_open(db_);
    ASSERT_OK(store->add_job(job_row("j1")));
    id = add_trials(*store, "j1", {"a=1"})[0];
    EXPECT_THAT(store->add_records({ok_record(id, {1e308})}).message(),
                HasSubstr("run_ns has 1e+308, expected 0.001 to 1e+15 ns a call"));
    ASSERT_OK(store->add_records({ok_record(id, {7})}));
  }
  (void)imported("tile,time_ns\n1,7\n", Format::kCsv);
  age(db_, "record");
  age(db_, "foreign_record");

  const auto store = must_open(db_, Store::Mode::kRead);
  const auto trial = store->trial(id);
  ASSERT_TRUE(trial.is_ok()) << trial.message();
  EXPECT_EQ(trial->record.value().run_ns, std::vector<double>{1e308});
  const auto report = export_file(*store, {.path = folder_.file("out")});
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_EQ(report->damaged, 0);
  EXPECT_EQ(report->foreign, 1);
}

TEST_F(ImplausibleTest, ARaceThatContradictsItsOwnSamplesIsRefusedAndTheOtherLinesAreKept) {
  const std::vector<std::string> lines = exported();
  const json race = json::parse(lines[3]);
  const auto refusal = [&](const std::function<void(json&)>& change) {
    json changed = race;
    change(changed);
    std::string text;
    for (int i = 0; i < 3; ++i) text += lines[static_cast<size_t>(i)] + "\n";
    const ImportReport report = imported(str(text, changed.dump(), "\n"));
    EXPECT_EQ(report.trials.added + report.trials.known, 2);
    return report.why.empty() ? "" : str(report.why[0].first, ": ", report.why[0].second);
  };
  const std::string first = race["finalists"][0]["trial"], second = race["finalists"][1]["trial"];
  EXPECT_THAT(refusal([](json& r) { r["time_ns"] = 90, r["time_low_ns"] = 89; }),
              HasSubstr("a time of 90 ns, and its winner's samples are 100 to 110 ns"));
  EXPECT_THAT(refusal([](json& r) { r["time_low_ns"] = 106; }),
              HasSubstr("an interval of 106 to 106 ns around 105"));
  const auto slower_wins = [&](json& r) {
    r["winner"] = first, r["tied"] = {first};
    r["time_ns"] = 205, r["time_low_ns"] = 204, r["time_high_ns"] = 206;
  };
  EXPECT_THAT(refusal(slower_wins), HasSubstr("takes 200 ns and more, and trial"));
  // Nobody won a race that is not certified; who left it early did not lose by its samples.
  EXPECT_EQ(refusal([&](json& r) {
              slower_wins(r);
              r["certified"] = false, r["uncertified_why"] = "disturbed";
            }),
            "");
  EXPECT_EQ(refusal([&](json& r) {
              slower_wins(r);
              r["finalists"][1]["process"] = {0, 0};
            }),
            "");
  EXPECT_EQ(refusal([](json&) {}), "");
}

}  // namespace
}  // namespace tuner::exchange
