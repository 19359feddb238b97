// What a database holds of one task, and that as a recorded space.
#include "tuner/study/space_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "db/exchange/text_output.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/search/recorded_space.h"

namespace tuner::cli {
namespace {

using ::testing::HasSubstr;
using tuner::testing::kAnalyticKey;
using tuner::testing::kAnalyticTarget;

class SpaceExport : public ::testing::Test {
 protected:
  SpaceExport() : store_(Store::open(folder_.file("t.db"), Store::Mode::kWrite).value()) {}

  void add_job(const std::string& id, int tasks = 1) {
    JobRow job{.id = id, .request_id = id, .tasks = {}, .trials = 9, .search = "grid"};
    for (int i = 0; i < tasks; ++i) job.tasks.push_back({kAnalyticKey, i == 0 ? kAnalyticTarget : "other"});
    ASSERT_TRUE(store_->add_job(job).is_ok());
  }
  // A record of a template nobody has, so any version of it counts.
  void add(const std::string& job, const std::string& config, std::vector<double> run_ns,
           Outcome outcome = Outcome::kOk, const std::string& hardware = "m1", bool cut = false,
           const std::string& name = "analytic", int version = 1, int task = 0) {
    std::vector<TrialRow> rows(1);
    rows[0].job_id = job;
    rows[0].task_index = task;
    rows[0].template_name = name;
    rows[0].template_version = version;
    rows[0].config = config;
    ASSERT_TRUE(store_->add_trials(rows).is_ok());
    MeasureRecord record;
    record.trial_id = rows[0].id;
    record.outcome = outcome;
    record.run_ns = std::move(run_ns);
    record.cut = cut;
    record.environment.hardware = hardware;
    const Status added = store_->add_records({record});
    ASSERT_TRUE(added.is_ok()) << added.message();
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(SpaceExport, HasARowAConfigWithEverySampleAndSaysHowAConfigFailed) {
  add_job("j1");
  add("j1", "a=1 b=16", {1000, 3000, 2000});
  add("j1", "a=2 b=16", {}, Outcome::kCrashed);
  add("j1", "a=3 b=16", {9000}, Outcome::kOk, "m1", /*cut=*/true);
  const auto records = records_of_job(*store_, "j1", -1);
  ASSERT_TRUE(records.is_ok()) << records.message();
  EXPECT_EQ(records->hardware, "m1");
  ASSERT_EQ(records->rows.size(), 3u);
  EXPECT_FALSE(records->rows[2].is_timed());
  EXPECT_EQ(records->rows[2].bound_ns, 9000);
  EXPECT_EQ(space_csv(*records),
            "a,b,time_ms,status,samples_ms\n"
            "1,16,0.002,ok,0.001;0.003;0.002\n"
            "2,16,,crashed,\n");
}

TEST_F(SpaceExport, JoinsTheRecordsOfAConfigFromSeveralJobs) {
  add_job("j1");
  add_job("j2");
  add("j1", "a=1", {}, Outcome::kDeviceLost);
  add("j1", "a=2", {5000}, Outcome::kOk, "m1", /*cut=*/true);
  add("j2", "a=1", {}, Outcome::kWrongAnswer);
  add("j2", "a=2", {3000, 3000});
  add("j2", "a=3", {1000});
  const auto records = records_of_task(*store_, {kAnalyticKey, kAnalyticTarget});
  ASSERT_TRUE(records.is_ok()) << records.message();
  EXPECT_EQ(space_csv(*records),
            "a,time_ms,status,samples_ms\n"
            "1,,wrong_answer,\n"
            "2,0.003,ok,0.003;0.003\n"
            "3,0.001,ok,0.001\n");
}

TEST_F(SpaceExport, NamesTheTemplateWhenThereAreSeveralAndLeavesTheirMissingKnobsEmpty) {
  add_job("j1");
  add("j1", "tile=4", {1000});
  add("j1", "tile=4 points=2", {2000}, Outcome::kOk, "m1", false, "other");
  add("j1", "tile=8", {1000}, Outcome::kOk, "m1", false, "matmul_cpu", 1'000'000);
  const auto records = records_of_job(*store_, "j1", -1);
  ASSERT_TRUE(records.is_ok()) << records.message();
  EXPECT_EQ(records->outdated, 1);  // this program has another version of matmul_cpu
  EXPECT_EQ(space_csv(*records),
            "template,points,tile,time_ms,status,samples_ms\n"
            "analytic,,4,0.001,ok,0.001\n"
            "other,2,4,0.002,ok,0.002\n");
}

TEST_F(SpaceExport, RefusesToMixMachinesAndTasks) {
  add_job("j1", 2);
  add_job("j2");
  add("j1", "a=1", {1000});
  add("j1", "a=2", {1000}, Outcome::kOk, "m1", false, "analytic", 1, /*task=*/1);
  add("j2", "a=1", {2000}, Outcome::kOk, "m2");
  const auto both = records_of_task(*store_, {kAnalyticKey, kAnalyticTarget});
  EXPECT_EQ(both.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(both.message(), HasSubstr("2 machines"));
  EXPECT_THAT(both.message(), HasSubstr("choose one with --hardware: \"m1\", \"m2\""));
  EXPECT_EQ(records_of_task(*store_, {kAnalyticKey, kAnalyticTarget}, "m2")->rows.size(), 1u);
  EXPECT_EQ(records_of_job(*store_, "j1", -1).message(), "job j1 has 2 tasks; choose one: --task 0 to 1");
  EXPECT_EQ(records_of_job(*store_, "j1", 2).message(),
            "--task: found 2, expected 0 to 1, the tasks of job j1");
  EXPECT_EQ(records_of_job(*store_, "j1", 1)->rows[0].config.to_text(), "a=2");
}

TEST_F(SpaceExport, IsReadBackByTheSimulator) {
  add_job("j1");
  add("j1", "a=1 b=16", {1000, 3000, 2000});
  add("j1", "a=2 b=16", {}, Outcome::kCrashed);
  add("j1", "a=2 b=32", {4000});
  const auto records = records_of_job(*store_, "j1", -1);
  ASSERT_TRUE(exchange::write_text(folder_.file("s.csv.gz"), space_csv(*records)).is_ok());
  const auto space = read_recorded_space(folder_.file("s.csv.gz"));
  ASSERT_TRUE(space.is_ok()) << space.message();
  EXPECT_EQ(space->size(), 3u);
  EXPECT_DOUBLE_EQ(space->best_ns(), 2000);
}

// tests/tuner/data/matmul_6x48x48.csv: a sweep of this project's own, recorded by
//   tuner submit FILE --trials all; tuner records export --space FILE -o SPACE.csv
// with {"op":"matmul","a":[6,48],"b":[48,48],"constant":["b"],"target":"cpu"}; samples rounded to three
// digits.
TEST(RecordedSweep, OfASmallProductIsWholeAndHasAllItsSamples) {
  const auto space =
      read_recorded_space(std::string(TUNER_SOURCE_DIR) + "/tests/tuner/data/matmul_6x48x48.csv");
  ASSERT_TRUE(space.is_ok()) << space.message();
  ASSERT_EQ(space->size(), 444u);
  ASSERT_EQ(space->parts.size(), 1u);
  for (const std::vector<double>& samples : space->parts[0].samples_ns) EXPECT_EQ(samples.size(), 9u);
  EXPECT_GT(space->median_ns(), 1.5 * space->best_ns());
}

TEST_F(SpaceExport, FindsTheRowOfACandidate) {
  add_job("j1");
  add("j1", "a=2 b=3 c=1 d=4", {1000});
  add("j1", "a=0 b=0 c=0 d=1", {2000});
  add("j1", "a=0 b=0 c=0 d=99", {2000});
  const auto records = records_of_job(*store_, "j1", 0);
  const TaskSpace space = tuner::testing::analytic_space(5).value();
  const RowIndex index = index_rows(*records, space.search);
  EXPECT_EQ(index.unknown, 1);
  const ConfigSpace& configs = *space.search.parts[0].space;
  EXPECT_EQ(index.find({0, configs.default_index()}), 1);
  EXPECT_EQ(index.find({0, *configs.index_of(*config_from_text("a=2 b=3 c=1 d=4"))}), 0);
  EXPECT_EQ(index.find({0, *configs.index_of(*config_from_text("a=2 b=3 c=1 d=3"))}), -1);
}

TEST_F(SpaceExport, WritesCompressedFilesByName) {
  const std::string text = "a,time_ms,status\n1,2,ok\n";
  ASSERT_TRUE(exchange::write_text(folder_.file("s.csv.gz"), text).is_ok());
  const gzFile file = gzopen(folder_.file("s.csv.gz").c_str(), "rb");
  ASSERT_NE(file, nullptr);
  char buffer[100] = {};
  EXPECT_EQ(gzread(file, buffer, sizeof buffer), static_cast<int>(text.size()));
  EXPECT_EQ(gzdirect(file), 0) << "not compressed";
  gzclose(file);
  EXPECT_EQ(buffer, text);
  EXPECT_THAT(exchange::write_text(folder_.file("no/such"), text).message(), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace tuner::cli
