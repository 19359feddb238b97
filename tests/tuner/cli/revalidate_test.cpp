// tuner revalidate as a process: rows of an older compiler are measured again here and now.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "compiler_core/codegen/compile.h"
#include "templates/schedule_template.h"
#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Process;
using testing::RealJob;

constexpr char kOldToolchain[] = "llvm 1.0 codegen 1";

// Matmuls of a few microseconds on this host with ten rows each, made by a compiler of long ago that was
// twice as fast as anything today.
void fill_with_old_rows(const RealJob& job, int tasks) {
  const auto store = Store::open(job.db, Store::Mode::kWrite).value();
  const Target target = host_target();
  JobRow row{.id = "j1", .request_id = "r1", .trials = 10};
  std::vector<Workload> workloads;
  for (int i = 0; i < tasks; ++i) {
    MatmulWorkload w;
    w.m = 16, w.n = 32, w.k = 16 + 8 * i;
    workloads.emplace_back(w);
    row.tasks.push_back({workloads.back().key(), target.name()});
  }
  ASSERT_TRUE(store->add_job(row).is_ok());
  std::mt19937_64 random(1);
  for (int i = 0; i < tasks; ++i) {
    const AnyTemplate& t = *templates_for(workloads[static_cast<size_t>(i)], target).value().front();
    const auto instance = t.apply(workloads[static_cast<size_t>(i)], target).value();
    std::set<std::string> configs;
    while (configs.size() < 10)
      configs.insert(instance->space().at(instance->space().sample(random)).to_text());
    std::vector<TrialRow> trials;
    for (const std::string& config : configs)
      trials.push_back({.job_id = "j1",
                        .task_index = i,
                        .template_name = std::string(t.name()),
                        .template_version = t.version(),
                        .config = config});
    ASSERT_TRUE(store->add_trials(trials).is_ok());
    std::vector<MeasureRecord> records;
    for (const TrialRow& trial : trials) {
      MeasureRecord r{.trial_id = trial.id, .run_ns = {10.0 + static_cast<double>(records.size())}};
      r.cpu_ns = r.run_ns;
      r.environment = {.hardware = "long ago",
                       .toolchain = kOldToolchain,
                       .worker_id = "w",
                       .worker_incarnation = "1",
                       .host = "h"};
      r.finished_at_us = 1;
      records.push_back(r);
    }
    ASSERT_TRUE(store->add_records(records).is_ok());
  }
}

TunedConfig best_of(const RealJob& job, size_t task) {
  const auto store = Store::open(job.db, Store::Mode::kRead).value();
  const JobRow row = store->job("j1").value();
  return store->best(row.tasks[task].workload_key, row.tasks[task].target).value();
}

TEST(Revalidate, OldRowsAreMeasuredAgainRaceAndTheNewAnswerCounts) {
  RealJob job(testing::Races::kInFull);
  fill_with_old_rows(job, 1);
  const TunedConfig before = best_of(job, 0);
  EXPECT_EQ(before.time_ns, 10);

  Process dry(job.tuner({"revalidate", "--dry-run", "--db", job.db}), job.folder.file("dry"));
  ASSERT_EQ(dry.wait(60s), 0) << dry.err();
  EXPECT_THAT(dry.out(), HasSubstr("compiler: llvm 1.0 codegen 1 then, " + toolchain_fingerprint() + " now"));
  EXPECT_EQ(job.recorded().size(), 10u);

  Process run(job.tuner({"revalidate", "--budget", "240s", "--top", "4", "--json", "--db", job.db}),
              job.folder.file("run"));
  ASSERT_EQ(run.wait(280s), 0) << run.err() << run.out();
  const auto json = nlohmann::json::parse(run.out());
  EXPECT_EQ(json["left"], 0);
  ASSERT_EQ(json["tasks"].size(), 1u);
  EXPECT_EQ(json["tasks"][0]["before"]["time_ns"], 10);
  EXPECT_EQ(json["tasks"][0]["stale"], true);
  EXPECT_GT(json["tasks"][0]["old_config_now_ns"], 10);

  const TunedConfig after = best_of(job, 0);
  EXPECT_EQ(after.environment.toolchain, toolchain_fingerprint());
  EXPECT_GT(after.time_ns, 10) << "what was fast long ago counts as it is now";
  {
    const auto store = Store::open(job.db, Store::Mode::kRead).value();
    const std::vector<JobRow> jobs = store->jobs().value();
    const std::vector<RaceRow> races = store->races(jobs.back().id).value();
    ASSERT_EQ(races.size(), 1u);
    // Whether this machine is calm enough to certify anything is its own affair; the answer says which.
    EXPECT_EQ(after.certified, races[0].certified) << races[0].uncertified_why;
    EXPECT_EQ(after.race_id, races[0].certified ? races[0].id : 0);
  }
  const auto all = job.recorded();
  EXPECT_GE(all.size(), 14u) << "four old ones and the default; nothing is deleted";
  for (const auto& [id, t] : all) EXPECT_EQ(t.record->outcome, Outcome::kOk) << id << t.record->message;

  Process again(job.tuner({"revalidate", "--db", job.db}), job.folder.file("again"));
  EXPECT_EQ(again.wait(60s), 0);
  EXPECT_THAT(again.out(), HasSubstr("nothing to measure again"));
  EXPECT_THAT(again.err(), HasSubstr("1 task left out: measured under the present compiler"));
}

TEST(Revalidate, EndsWithItsBudgetAndSaysWhatIsLeft) {
  constexpr int kTasks = 100;  // a race is a dozen processes: no machine ends a hundred in the budget
  RealJob job(testing::Races::kInFull);
  fill_with_old_rows(job, kTasks);
  Process run(job.tuner({"revalidate", "--budget", "10s", "--json", "--db", job.db}), job.folder.file("run"));
  ASSERT_TRUE(run.wait(200s).has_value()) << run.err();
  const auto json = nlohmann::json::parse(run.out());
  const auto finished =
      std::ranges::count_if(json["tasks"], [](const auto& task) { return task["ending"] != "unfinished"; });
  EXPECT_GT(json["left"], 0) << "the budget was over before";
  EXPECT_EQ(json["left"], kTasks - finished);
}

TEST(Revalidate, CtrlCKeepsWhatIsMeasured) {
  RealJob job(testing::Races::kInFull);
  fill_with_old_rows(job, 30);
  Process run(job.tuner({"revalidate", "--budget", "600s", "--db", job.db}), job.folder.file("run"));
  ASSERT_TRUE(eventually(120s, [&] { return job.recorded().size() > 302; })) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(60s), 1) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("left: the same command goes on"));
  EXPECT_GT(job.recorded().size(), 302u);
  const auto store = Store::open(job.db, Store::Mode::kWrite);
  ASSERT_TRUE(store.is_ok()) << store.message();
  const std::vector<JobRow> jobs = (*store)->jobs().value();
  for (const JobRow& row : jobs) EXPECT_NE(row.state, JobState::kRunning) << row.id;
}

}  // namespace
}  // namespace tuner
