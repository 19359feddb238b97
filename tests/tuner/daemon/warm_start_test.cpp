// What a job begins with: rows of similar tasks from the database, the same ones when it is played again.
#include "tuner/daemon/search/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/search/job_runner.h"

namespace tuner {
namespace {

using testing::analytic_record;
using testing::analytic_space;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string matmul(int m, int n, int k, const std::string& dtype = "float32") {
  return str("v1 matmul b=1 m=", m, " n=", n, " k=", k, " ta=0 tb=0 bias=0 act=none dtype=", dtype,
             " const=none");
}
const char* const kTarget = "llvm -mcpu=haswell -threads=1";

JobRow job_of(const std::string& id, const std::string& key, int trials,
              const std::string& search = "random") {
  JobRow job;
  job.id = job.request_id = id;
  job.tasks = {{key, kTarget}};
  job.trials = trials;
  job.search = search;
  job.seed = 1;
  return job;
}

// Runs a job to its end, or for `steps` batches; returns its configs in the order they were proposed.
std::vector<std::string> run_job(Store& store, const JobRow& job, int steps = 1000) {
  EXPECT_TRUE(store.add_job(job).is_ok());
  JobRunner runner(
      store, store.job(job.id).value(), job.trials, [](const JobRow::Task&) { return analytic_space(6); },
      make_strategy);
  EXPECT_TRUE(runner.start().is_ok());
  std::vector<TrialRow> open = runner.open_trials();
  for (int step = 0; step < steps && !runner.finished(); ++step) {
    const std::vector<TrialRow> fresh = runner.propose(0).value();
    open.insert(open.end(), fresh.begin(), fresh.end());
    std::vector<MeasureRecord> records;
    for (const TrialRow& t : open) {
      if (t.state == TrialState::kLeased) {
        EXPECT_TRUE(store.requeue_trial(t.id, t.attempt).is_ok());
      }
      const TrialRow leased = store.lease_trials({t.id}, "w").value().at(0);
      records.push_back(analytic_record(t.id, leased.attempt, t.config));
    }
    open.clear();
    EXPECT_TRUE(store.add_records(records).is_ok());
    EXPECT_TRUE(runner.observe().is_ok());
  }
  std::vector<std::string> configs;
  const std::vector<TrialWithRecord> trials = store.trials(job.id).value();
  for (const TrialWithRecord& t : trials) configs.push_back(t.trial.config);
  return configs;
}

TEST(WarmStart, DistanceIsOfShapeTypeAndProcessor) {
  const auto distance = [](const std::string& a, const std::string& b, const std::string& target = kTarget) {
    return task_distance({a, kTarget, ""}, {b, target, ""});
  };
  EXPECT_EQ(distance(matmul(64, 64, 64), matmul(64, 64, 64)), 0);
  EXPECT_EQ(distance(matmul(64, 64, 64), matmul(128, 64, 16)), 3);
  EXPECT_EQ(distance(matmul(64, 64, 64), matmul(64, 64, 64), "llvm -mcpu=znver4 -threads=2"), 1);
  EXPECT_EQ(distance(matmul(64, 64, 64), matmul(64, 64, 64, "int8")), 0.5);
  const auto on_gpus = [](const char* a, const char* b) {
    return task_distance({matmul(64, 64, 64), a, ""}, {matmul(64, 64, 64), b, ""});
  };
  EXPECT_EQ(on_gpus("cuda -arch=sm_90a -device=h200", "cuda -arch=sm_90a"), 0.5);
  EXPECT_EQ(on_gpus("cuda -arch=sm_90a -device=h200", "cuda -arch=sm_90a -device=h100"), 0.5);
  EXPECT_EQ(on_gpus("cuda -arch=sm_90a -device=h200", "cuda -arch=sm_80 -device=a100"), 1);
  EXPECT_TRUE(std::isinf(distance(matmul(64, 64, 64), matmul(64, 64, 64), "cuda sm_80")));
  EXPECT_TRUE(std::isinf(distance(matmul(64, 64, 64), "v1 softmax rows=8 columns=8 dtype=float32")));
}

// Records of before there were classes of devices stand under the architecture; those of the class are of the
// task itself.
TEST(WarmStart, OldRowsOfTheDeviceAreOfTheTaskItself) {
  TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const TaskSpace space = analytic_space(6).value();
  const std::string key = matmul(64, 64, 64);
  JobRow job = job_of("old", key, 8);
  job.tasks[0].target = "cuda -arch=sm_90a";
  ASSERT_TRUE(store->add_job(job).is_ok());
  std::vector<TrialRow> trials;
  for (const ConfigIndex i : {0, 1, 2, 3})
    trials.push_back({.job_id = "old",
                      .template_name = space.search.parts[0].template_name,
                      .template_version = 1,
                      .config = space.search.parts[0].space->at(i).to_text()});
  ASSERT_TRUE(store->add_trials(trials).is_ok());
  std::vector<MeasureRecord> records;
  for (size_t i = 0; i < trials.size(); ++i) {
    records.push_back(analytic_record(trials[i].id, 1, trials[i].config));
    records.back().environment.hardware = i % 2 == 0 ? "NVIDIA H200 sm_90 | 132 multiprocessors"
                                                     : "NVIDIA H100 PCIe sm_90 | 114 multiprocessors";
  }
  ASSERT_TRUE(store->add_records(records).is_ok());
  const auto priors = [&](const std::string& target) {
    return warm_start(*store, {key, target, ""}, space.search, store->last_record_id().value()).value();
  };
  const std::vector<PriorTask> h200 = priors("cuda -arch=sm_90a -device=h200");
  ASSERT_THAT(h200, SizeIs(2));
  for (const PriorTask& prior : h200) {
    const bool is_h200 = prior.source.find("NVIDIA H200") != std::string::npos;
    EXPECT_EQ(prior.same_task, is_h200) << prior.source;
    EXPECT_EQ(prior.weight == 1, is_h200) << prior.source;
  }
  for (const PriorTask& prior : priors("cuda -arch=sm_90a -device=h100")) EXPECT_FALSE(prior.same_task);
  for (const PriorTask& prior : priors("cuda -arch=sm_90a")) EXPECT_TRUE(prior.same_task);
}

TEST(WarmStart, TakesTheNearestTasksAndOnlyWhatWasThereThen) {
  TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const TaskSpace space = analytic_space(6).value();
  const JobRow::Task task{matmul(64, 64, 64), kTarget, ""};
  EXPECT_THAT(warm_start(*store, task, space.search, store->last_record_id().value()).value(), IsEmpty());

  for (int i = 0; i < 8; ++i) run_job(*store, job_of(str("j", i), matmul(64 << i, 64, 64), 40));
  const int64_t then = store->last_record_id().value();
  const std::vector<PriorTask> priors = warm_start(*store, task, space.search, then).value();
  ASSERT_THAT(priors, SizeIs(6));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_THAT(priors[i].source, HasSubstr(str(" m=", 64 << i, " "))) << "nearest first";
    EXPECT_THAT(priors[i].rows, SizeIs(40));
  }
  EXPECT_EQ(priors[0].weight, 1);
  EXPECT_GT(priors[1].weight, priors[5].weight);
  bool some_failed = false;
  for (const PriorTask::Row& row : priors[0].rows) some_failed = some_failed || !row.ok;
  EXPECT_TRUE(some_failed) << "what failed is known too";

  run_job(*store, job_of("later", matmul(64, 64, 64), 40, "genetic"));
  const std::vector<PriorTask> again = warm_start(*store, task, space.search, then).value();
  ASSERT_THAT(again, SizeIs(6));
  for (size_t i = 0; i < 6; ++i) {
    ASSERT_EQ(again[i].rows.size(), priors[i].rows.size());
    for (size_t r = 0; r < again[i].rows.size(); ++r) {
      EXPECT_EQ(again[i].rows[r].config, priors[i].rows[r].config);
      EXPECT_EQ(again[i].rows[r].time_ns, priors[i].rows[r].time_ns);
    }
  }
  SearchSpace other = space.search;
  other.parts[0].template_name = "another";
  EXPECT_THAT(warm_start(*store, task, other, then).value(), IsEmpty());
}

TEST(WarmStart, AJobBeginsWithWhatIsKnownAndAfterARestartWithTheSame) {
  const JobRow job = job_of("warm", matmul(128, 64, 64), 48, "bayesian");
  const auto in_two_lives = [&](int steps_of_the_first) {
    TemporaryFolder folder;
    std::vector<std::string> configs;
    for (int life = 0; life < 2; ++life) {
      const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
      if (life == 0) run_job(*store, job_of("donor", matmul(64, 64, 64), 200));
      configs = run_job(*store, job, life == 0 ? steps_of_the_first : 1000);
      if (life == 0) run_job(*store, job_of("between", matmul(128, 128, 64), 60));
    }
    return configs;
  };
  const std::vector<std::string> whole = in_two_lives(1000);
  ASSERT_THAT(whole, SizeIs(48));
  EXPECT_EQ(in_two_lives(1), whole) << "the restart must not see records that came after its first proposal";

  TemporaryFolder folder;
  const auto cold_store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  const std::vector<std::string> cold = run_job(*cold_store, job);
  EXPECT_NE(cold, whole);
  const auto best_of_first = [](const std::vector<std::string>& configs, size_t n) {
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < n; ++i)
      if (const double t = record_time_ns(analytic_record("t", 1, configs[i])); t > 0)
        best = std::min(best, t);
    return best;
  };
  EXPECT_LT(best_of_first(whole, 8), best_of_first(cold, 8));
}

TEST(WarmStart, TakesASampleOfEachTaskOfALargeDatabase) {
  TemporaryFolder folder;
  const auto store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  for (int i = 0; i < 6; ++i) run_job(*store, job_of(str("j", i), matmul(64 << i, 64, 64), 1200));
  const TaskSpace space = analytic_space(6).value();
  const auto priors =
      warm_start(*store, {matmul(64, 64, 64), kTarget, ""}, space.search, store->last_record_id().value())
          .value();
  ASSERT_THAT(priors, SizeIs(6));
  for (const PriorTask& prior : priors) EXPECT_THAT(prior.rows, SizeIs(150)) << "of 1200";
}

}  // namespace
}  // namespace tuner
