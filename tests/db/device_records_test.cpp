// Which records answer where a target names a class of devices, and where it leaves it open.
#include "db/device_records.h"

#include <gmock/gmock.h>

#include "db/prune.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

constexpr char kAny[] = "cuda -arch=sm_90a", kH100[] = "cuda -arch=sm_90a -device=h100",
               kH200[] = "cuda -arch=sm_90a -device=h200";
constexpr char kOnH100[] =
    "NVIDIA H100 80GB HBM3 sm_90 | 132 multiprocessors | 79.1 GiB L2 50.0 MiB | driver CUDA 13.0",
               kOnH200[] =
                   "NVIDIA H200 sm_90 | 132 multiprocessors | 139.8 GiB L2 50.0 MiB | driver CUDA 13.0",
               kOnH200Before[] =
                   "NVIDIA H200 sm_90 | 132 multiprocessors | 139.8 GiB L2 50.0 MiB | driver CUDA 12.4";

class DeviceRecords : public testing::Test {
 protected:
  MeasureRecord record(const std::string& trial, double ns, const char* hardware) const {
    MeasureRecord r = ok_record(trial, {ns, ns, ns});
    r.environment.hardware = hardware;
    r.environment.toolchain = "nvrtc 13.0 cuda codegen 1";
    r.finished_at_us = now_us_;
    return r;
  }
  // A job with one right trial a row: config, time, hardware. Returns the ids.
  struct Row {
    const char* config;
    double ns;
    const char* hardware;
  };
  std::vector<std::string> measured(const char* target, const std::vector<Row>& rows) {
    const std::string job = str("j", ++jobs_);
    CHECK(store_->add_job(job_row(job, {{"v1 work", target}})).is_ok());
    std::vector<std::string> configs;
    for (const Row& row : rows) configs.emplace_back(row.config);
    std::vector<std::string> ids = add_trials(*store_, job, configs);
    std::vector<MeasureRecord> records;
    for (size_t i = 0; i < rows.size(); ++i) records.push_back(record(ids[i], rows[i].ns, rows[i].hardware));
    CHECK(store_->add_records(records).is_ok());
    return ids;
  }
  // A race of the latest job, which the first of the trials won.
  void raced(const std::vector<std::string>& trials, double ns, const char* hardware, bool certified) {
    RaceRow race{
        .job_id = str("j", jobs_), .winner_trial_id = trials[0], .time_ns = ns, .certified = certified};
    race.time_low_ns = ns - 1, race.time_high_ns = ns + 1;
    race.environment = record("", 1, hardware).environment;
    for (const std::string& id : trials)
      race.finalists.push_back(
          {.trial_id = id, .samples_ns = {ns, ns}, .sentinel_ns = {1, 1}, .process = {0, 1}});
    ASSERT_OK(store_->add_race(race));
  }
  std::string best(const char* target) {
    const Result<TunedConfig> found = best_on_device(*store_, {"v1 work", target});
    if (!found) return found.status().code() == StatusCode::kNotFound ? "none" : found.message();
    return str(found->config, " of \"", found->target, "\"");
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = must_open(folder_.file("t.db"));
  int jobs_ = 0;
  int64_t now_us_ = 1'700'000'001'000'000;
};

// Before there were classes, all stood under the architecture.
TEST_F(DeviceRecords, OldRowsTakeTheirDeviceFromTheirFingerprint) {
  measured(kAny,
           {{"a=1", 30, kOnH100}, {"a=2", 20, kOnH200}, {"a=3", 25, kOnH200Before}, {"a=4", 10, kOnH100}});
  EXPECT_EQ(best(kAny), "a=4 of \"cuda -arch=sm_90a\"") << "as before";
  EXPECT_EQ(best(kH100), "a=4 of \"cuda -arch=sm_90a\"");
  EXPECT_EQ(best(kH200), "a=2 of \"cuda -arch=sm_90a\"");
  EXPECT_EQ(best("cuda -arch=sm_90a -device=gh200"), "none");
  EXPECT_EQ(best("cuda -arch=sm_90 -device=h200"), "none") << "another architecture";
  EXPECT_EQ(best("cuda -arch=sm_90a -device=h200 -emulated"), "none");
}

TEST_F(DeviceRecords, TheFasterOfOldAndNewRowsAnswers) {
  measured(kAny, {{"a=1", 20, kOnH200}, {"a=2", 10, kOnH100}});
  measured(kH200, {{"a=3", 25, kOnH200}});
  EXPECT_EQ(best(kH200), "a=1 of \"cuda -arch=sm_90a\"");
  measured(kH200, {{"a=4", 15, kOnH200}});
  EXPECT_EQ(best(kH200), "a=4 of \"cuda -arch=sm_90a -device=h200\"");
  EXPECT_EQ(best(kAny), "a=2 of \"cuda -arch=sm_90a\"") << "its own rows answer first";
}

// As within one task: what was measured again under other conditions is over.
TEST_F(DeviceRecords, ALaterMeasurementOfTheSameConfigSupersedesTheOldRow) {
  measured(kAny, {{"a=1", 20, kOnH200Before}});
  now_us_ += 1000;
  measured(kH200, {{"a=2", 25, kOnH200}});
  EXPECT_EQ(best(kH200), "a=1 of \"cuda -arch=sm_90a\"") << "nobody has measured it again";
  measured(kH200, {{"a=1", 26, kOnH200}});
  EXPECT_EQ(best(kH200), "a=2 of \"cuda -arch=sm_90a -device=h200\"");
  EXPECT_EQ(best(kAny), "a=1 of \"cuda -arch=sm_90a\"");
}

TEST_F(DeviceRecords, ALaterMeasurementUnderTheOpenNameSupersedesToo) {
  measured(kH200, {{"a=1", 20, kOnH200Before}});
  now_us_ += 1000;
  measured(kAny, {{"a=2", 25, kOnH200}});
  EXPECT_EQ(best(kH200), "a=1 of \"cuda -arch=sm_90a -device=h200\"") << "nobody has measured it again";
  measured(kAny, {{"a=1", 26, kOnH200}});
  EXPECT_EQ(best(kH200), "a=2 of \"cuda -arch=sm_90a\"");
}

TEST_F(DeviceRecords, AStoreKeepsToOneName) {
  measured(kAny, {{"a=1", 20, kOnH200}});
  EXPECT_EQ(store_->best("v1 work", kH200).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->best("v1 work", kAny)->config, "a=1");
}

TEST_F(DeviceRecords, WhereTheDeviceIsOpenAnyClassAnswers) {
  measured(kH200, {{"a=1", 20, kOnH200}});
  EXPECT_EQ(best(kAny), "a=1 of \"cuda -arch=sm_90a -device=h200\"");
  measured(kH100, {{"a=2", 18, kOnH100}});
  EXPECT_EQ(best(kAny), "a=2 of \"cuda -arch=sm_90a -device=h100\"");
  EXPECT_EQ(best(kH200), "a=1 of \"cuda -arch=sm_90a -device=h200\"") << "no class answers for another";
  EXPECT_EQ(best("cuda -arch=sm_90"), "none");
}

TEST_F(DeviceRecords, ARaceDecidesForItsDeviceAlone) {
  const auto h100 = measured(kAny, {{"a=1", 30, kOnH100}, {"a=2", 28, kOnH100}});
  raced(h100, 31, kOnH100, /*certified=*/true);
  measured(kAny, {{"a=3", 20, kOnH200}});
  EXPECT_EQ(best(kAny), "a=1 of \"cuda -arch=sm_90a\"") << "a certified race outranks trials, as before";
  EXPECT_EQ(best(kH100), "a=1 of \"cuda -arch=sm_90a\"");
  EXPECT_EQ(best(kH200), "a=3 of \"cuda -arch=sm_90a\"") << "nobody raced there";
  EXPECT_FALSE(best_on_device(*store_, {"v1 work", kH200})->certified);
  // A certified answer under one name goes before a faster trial under the other.
  const auto h200 = measured(kH200, {{"a=4", 26, kOnH200}});
  raced(h200, 26, kOnH200, /*certified=*/true);
  EXPECT_EQ(best(kH200), "a=4 of \"cuda -arch=sm_90a -device=h200\"");
}

TEST_F(DeviceRecords, OnlyTrialsOfTheDeviceAreCounted) {
  measured(kAny, {{"a=1", 30, kOnH100}, {"a=2", 20, kOnH200}, {"a=3", 25, kOnH200Before}});
  ASSERT_OK(store_->add_job(job_row("j9", {{"v1 work", kAny}})));
  const auto ids = add_trials(*store_, "j9", {"a=4", "a=5"});
  MeasureRecord unbuilt = record(ids[0], 1, ""), wrong = record(ids[1], 1, kOnH100);
  unbuilt.outcome = Outcome::kBuildError, unbuilt.run_ns.clear(), unbuilt.cpu_ns.clear();
  wrong.outcome = Outcome::kWrongAnswer, wrong.run_ns.clear(), wrong.cpu_ns.clear();
  ASSERT_OK(store_->add_records({unbuilt, wrong}));
  EXPECT_THAT(best_on_device(*store_, {"v1 work", kH200})->outcomes,
              testing::UnorderedElementsAre(std::pair(Outcome::kOk, 2), std::pair(Outcome::kBuildError, 1)));
  EXPECT_EQ(best_on_device(*store_, {"v1 work", kH200})->trials, 3);
  EXPECT_EQ(best_on_device(*store_, {"v1 work", kAny})->trials, 5);
}

TEST_F(DeviceRecords, PruningKeepsTheBestOfEachDevice) {
  std::vector<Row> rows;
  for (int i = 0; i < 40; ++i) rows.push_back({i % 2 == 0 ? "b=1" : "b=2", 100.0 + i, kOnH100});
  rows.push_back({"a=1", 500, kOnH200});
  measured(kAny, rows);
  ASSERT_OK(store_->set_job_state("j1", JobState::kFinished, ""));
  const auto pruned = store_->prune({"v1 work", kAny}, {.keep = 2, .until_record_id = INT64_MAX}, 1000);
  ASSERT_TRUE(pruned) << pruned.message();
  EXPECT_GT(pruned->records, 30);
  EXPECT_EQ(best(kH200), "a=1 of \"cuda -arch=sm_90a\"");
}

// Names of programs that this one does not know stand for themselves, and CPUs have no classes.
TEST_F(DeviceRecords, OtherTargetsHaveNoRecordsElsewhere) {
  measured(kAny, {{"a=1", 30, kOnH100}});
  for (const char* target :
       {"cpu one", "llvm -mcpu=haswell -threads=1", "cuda -arch=sm_90a -knows=nothing", ""}) {
    const auto found = records_elsewhere(*store_, {"v1 work", target}, /*has_own=*/false);
    ASSERT_TRUE(found) << found.message();
    EXPECT_TRUE(found->empty()) << target;
    EXPECT_EQ(best(target), "none");
  }
}

}  // namespace
}  // namespace tuner
