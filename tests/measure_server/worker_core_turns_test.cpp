// Who builds and who runs at the same time: kernels that are timed beside builds, builders of a device's
// kernels, builds in the place of runs, references made by many threads.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/measure_server/worker_core_fixture.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using testing::UnorderedElementsAre;

using WorkerTurns = WorkerCoreTest;

TEST_F(WorkerTurns, ARunThatWaitsForItsDeviceStillKeepsBuildsAway) {
  start({.slots = 4, .cpus = 1});
  core_->apply(leases({lease("a"), lease("b")}));
  core_->built(*core_->next_to_build(), {});
  core_->wait_for_device(core_->next_to_run()->lease, true);
  std::atomic<bool> built{false};
  std::thread builder([&] { built = core_->next_to_build().has_value(); });
  let_pass(std::chrono::milliseconds(50));
  EXPECT_FALSE(built) << "the run may begin at any moment";
  core_->stop();
  builder.join();
}

// --- many builders, for a device ---

constexpr char kGpu[] = "cuda -arch=sm_90";

class DeviceBuilds : public WorkerTurns {
 protected:
  void SetUp() override {
    start({.slots = 8, .cpus = 8, .on_device = [](const v1::Lease& l) { return l.target() == kGpu; }});
  }
  std::string next_for_device() { return core_->next_to_build(WorkerCore::Builds::kForDevice)->trial_id(); }
  // True if a builder for the device gets nothing to do until `f` has been called, and then `trial`.
  void expect_waits_for(const std::function<void()>& f, const std::string& trial) {
    std::atomic<bool> begun{false};
    std::string got;
    std::thread builder([&] {
      got = next_for_device();
      begun = true;
    });
    let_pass(std::chrono::milliseconds(50));
    EXPECT_FALSE(begun);
    f();
    builder.join();
    EXPECT_EQ(got, trial);
  }
};

TEST_F(DeviceBuilds, SeveralTakeWhatRunsOnTheDeviceAndNothingElse) {
  core_->apply(leases({lease("cpu"), lease("g1", 1, kGpu), lease("g2", 1, kGpu), lease("g3", 1, kGpu)}));
  EXPECT_EQ(next_for_device(), "g1");
  EXPECT_EQ(next_for_device(), "g2");
  EXPECT_EQ(core_->next_to_build()->trial_id(), "cpu");
  EXPECT_EQ(next_for_device(), "g3");
}

TEST_F(DeviceBuilds, GoOnBesideARunOnTheDeviceAndWaitForOneOnTheCpus) {
  core_->apply(leases({lease("g1", 1, kGpu), lease("g2", 1, kGpu)}));
  core_->built(lease(next_for_device(), 1, kGpu), {});
  const auto device_run = core_->next_to_run();
  EXPECT_EQ(next_for_device(), "g2") << "the GPU's run is not disturbed";
  ASSERT_TRUE(core_->finish(device_run->lease, record("g1")).is_ok());
  core_->apply(leases({lease("cpu"), lease("g3", 1, kGpu)}));
  core_->built(*core_->next_to_build(), {});
  const auto cpu_run = core_->next_to_run();
  ASSERT_EQ(cpu_run->lease.trial_id(), "cpu");
  expect_waits_for([&] { EXPECT_TRUE(core_->finish(cpu_run->lease, record("cpu")).is_ok()); }, "g3");
}

TEST_F(DeviceBuilds, ARunOnTheCpusWaitsForAllBuildsButOne) {
  core_->apply(leases({lease("cpu"), lease("g1", 1, kGpu), lease("g2", 1, kGpu), lease("g3", 1, kGpu)}));
  const auto cpu = core_->next_to_build();
  ASSERT_EQ(cpu->trial_id(), "cpu");
  EXPECT_EQ(next_for_device(), "g1");
  EXPECT_EQ(next_for_device(), "g2");
  core_->built(*cpu, {});
  // No further build begins, so the run comes to its turn.
  std::optional<WorkerCore::Built> run;
  std::atomic<bool> running{false};
  std::thread runner([&] {
    run = core_->next_to_run();
    running = true;
  });
  let_pass(std::chrono::milliseconds(50));
  EXPECT_FALSE(running);
  EXPECT_TRUE(core_->finish(lease("g1", 1, kGpu), record("g1")).is_ok());
  runner.join();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->lease.trial_id(), "cpu");
  expect_waits_for([&] { EXPECT_TRUE(core_->finish(run->lease, record("cpu")).is_ok()); }, "g3");
}

// --- builds and runs at once ---

// Builds and runs on their own threads; `together` counts moments at which both were going on.
void expect_exclusive(WorkerCore& core, const std::vector<v1::Lease>& all, bool exclusive) {
  std::atomic<int> building{0}, running{0}, together{0}, done{0};
  std::thread builder([&] {
    while (const auto l = core.next_to_build()) {
      ++building;
      if (running > 0) ++together;
      let_pass(std::chrono::milliseconds(2));
      if (running > 0) ++together;
      --building;
      core.built(*l, {});
    }
  });
  std::thread runner([&] {
    while (const auto b = core.next_to_run()) {
      ++running;
      if (building > 0) ++together;
      let_pass(std::chrono::milliseconds(4));
      if (building > 0) ++together;
      --running;
      EXPECT_TRUE(core.finish(b->lease, record(b->lease.trial_id())).is_ok());
      ++done;
    }
  });
  core.apply(leases(all));
  wait_until(std::chrono::seconds(30), [&] { return done == static_cast<int>(all.size()); });
  core.stop();
  builder.join();
  runner.join();
  EXPECT_EQ(done, static_cast<int>(all.size()));
  if (exclusive) {
    EXPECT_EQ(together, 0);
  }
}

TEST_F(WorkerTurns, AKernelThatUsesEveryCoreNeverRunsBesideABuild) {
  start({.slots = 8, .cpus = 2});
  std::vector<v1::Lease> all;
  for (int i = 0; i < 20; ++i) all.push_back(lease(str("t", i), 1, "llvm -mcpu=haswell -threads=2"));
  expect_exclusive(*core_, all, true);
}

TEST_F(WorkerTurns, OnOneCoreEveryKernelUsesEveryCore) {
  start({.slots = 8, .cpus = 1});
  expect_exclusive(*core_, {lease("a"), lease("b"), lease("c"), lease("d")}, true);
}

TEST_F(WorkerTurns, SpareCoresLetBuildsAndRunsGoTogetherAndAllAreDone) {
  start({.slots = 8, .cpus = 2});
  std::vector<v1::Lease> all;
  for (int i = 0; i < 20; ++i) all.push_back(lease(str("t", i)));
  expect_exclusive(*core_, all, false);
}

TEST_F(WorkerTurns, BuildsInsteadOfRunsNeverGoBesideARunAndYieldToWhatIsBuilt) {
  start({.slots = 8, .cpus = 2});
  constexpr int kAll = 60;
  std::atomic<int> building{0}, running{0}, together{0}, done{0}, beside{0}, instead{0};
  std::thread builder([&] {
    while (const auto l = core_->next_to_build()) {
      let_pass(std::chrono::milliseconds(6));
      ++beside;
      core_->built(*l, {});
    }
  });
  std::thread helper([&] {
    while (const auto l = core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns)) {
      ++building;
      together += running;
      let_pass(std::chrono::milliseconds(6));
      together += running;
      --building;
      ++instead;
      core_->built(*l, {});
    }
  });
  std::thread runner([&] {
    while (const auto b = core_->next_to_run()) {
      ++running;
      together += building;
      let_pass(std::chrono::milliseconds(2));
      together += building;
      --running;
      EXPECT_TRUE(core_->finish(b->lease, record(b->lease.trial_id())).is_ok());
      ++done;
    }
  });
  std::vector<v1::Lease> all;
  for (int i = 0; i < kAll; ++i) all.push_back(lease(str("t", i)));
  core_->apply(leases(all));
  wait_until(std::chrono::seconds(30), [&] { return done == kAll; });
  core_->stop();
  builder.join();
  helper.join();
  runner.join();
  EXPECT_EQ(done, kAll);
  EXPECT_EQ(together, 0);
  EXPECT_EQ(beside + instead, kAll);
}

TEST_F(WorkerTurns, WhileNothingIsToRunBothBuildersHaveALease) {
  core_->apply(leases({lease("a"), lease("b")}));
  EXPECT_EQ(core_->next_to_build()->trial_id(), "a");
  EXPECT_EQ(core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns)->trial_id(), "b");
  EXPECT_THAT(held(), UnorderedElementsAre("a BUILDING", "b BUILDING"));
}

TEST_F(WorkerTurns, ALeaseRevokedWhileBuiltInsteadOfRunsStillKeepsRunsWaiting) {
  core_->apply(leases({lease("a"), lease("b")}));
  EXPECT_EQ(core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns)->trial_id(), "a");
  core_->built(*core_->next_to_build(), {});
  core_->apply(revocation("a"));
  std::atomic<bool> ran{false};
  std::thread runner([&] { ran = core_->next_to_run().has_value(); });
  let_pass(std::chrono::milliseconds(50));
  EXPECT_FALSE(ran);
  std::thread helper([&] { (void)core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns); });
  runner.join();
  EXPECT_TRUE(ran);
  core_->stop();
  helper.join();
}

TEST_F(WorkerTurns, NoRunOnTheCpusBeginsWhileAReferenceIsMadeByManyThreads) {
  core_->apply(leases({lease("a")}));
  core_->built(*core_->next_to_build(), {});
  EXPECT_FALSE(core_->begin_many_threads()) << "a is ready to run";
  const std::optional<WorkerCore::Built> a = core_->next_to_run();
  EXPECT_FALSE(core_->begin_many_threads()) << "a runs";
  ASSERT_TRUE(core_->finish(a->lease, record("a")).is_ok());

  core_->apply(leases({lease("b")}));
  const std::optional<v1::Lease> b = core_->next_to_build();
  ASSERT_TRUE(core_->begin_many_threads()) << "b is only built";
  ASSERT_TRUE(core_->begin_many_threads()) << "nor do two disturb each other";
  core_->built(*b, {});
  std::atomic<bool> ran{false};
  std::thread runner([&] { ran = core_->next_to_run().has_value(); });
  core_->end_many_threads();
  let_pass(std::chrono::milliseconds(50));
  EXPECT_FALSE(ran) << "one of the two is not done";
  core_->end_many_threads();
  runner.join();
  EXPECT_TRUE(ran);
}

TEST_F(DeviceBuilds, RunsOnTheDeviceGoOnWhileAReferenceIsMadeByManyThreads) {
  core_->apply(leases({lease("a", 1, kGpu), lease("b", 1, kGpu)}));
  core_->built(*core_->next_to_build(), {});
  ASSERT_TRUE(core_->begin_many_threads()) << "a is ready, but not for the CPUs";
  const std::optional<WorkerCore::Built> a = core_->next_to_run();
  EXPECT_EQ(a->lease.trial_id(), "a");
  EXPECT_TRUE(core_->begin_many_threads()) << "a runs, but not on the CPUs";
  core_->end_many_threads();
  core_->end_many_threads();
}

}  // namespace
}  // namespace tuner
