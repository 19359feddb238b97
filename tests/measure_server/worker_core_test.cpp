// What a worker holds and owes while messages are lost, repeated and late, and while the daemon or the worker
// itself starts anew.
#include "measure_server/worker/worker_core.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

int64_t test_now_ms = 1'000;

v1::Lease lease(const std::string& trial, int attempt = 1,
                const std::string& target = "llvm -mcpu=haswell -threads=1") {
  v1::Lease l;
  l.set_trial_id(trial);
  l.set_attempt(attempt);
  l.set_fencing(attempt * 10);
  l.set_workload_key("w");
  l.set_target(target);
  return l;
}

v1::MeasureRecord record(const std::string& trial, int attempt = 1,
                         const std::string& incarnation = "life 1") {
  v1::MeasureRecord r;
  r.set_trial_id(trial);
  r.set_attempt(attempt);
  r.set_outcome(v1::OK);
  r.mutable_environment()->set_worker_incarnation(incarnation);
  return r;
}

v1::SyncReply leases(const std::vector<v1::Lease>& all) {
  v1::SyncReply reply;
  for (const v1::Lease& l : all) *reply.add_leases() = l;
  return reply;
}

v1::SyncReply acks(const std::vector<std::string>& trials) {
  v1::SyncReply reply;
  for (const std::string& trial : trials) {
    v1::Ack* ack = reply.add_acks();
    ack->set_trial_id(trial);
    ack->set_attempt(1);
  }
  return reply;
}

v1::SyncReply revocation(const std::string& trial, int attempt = 1) {
  v1::SyncReply reply;
  v1::Ack* revoked = reply.add_revoked();
  revoked->set_trial_id(trial);
  revoked->set_attempt(attempt);
  return reply;
}

class WorkerCoreTest : public testing::Test {
 protected:
  void SetUp() override { start(); }
  void TearDown() override {
    core_.reset();
    spool_.reset();
  }
  // A new life of the worker on the same folder.
  void start(WorkerCore::Options options = {.slots = 4, .cpus = 2}) {
    core_.reset();
    spool_.reset();
    Result<std::unique_ptr<Spool>> spool = Spool::open(dir_ + "/results.spool");
    ASSERT_TRUE(spool.is_ok()) << spool.message();
    spool_ = *std::move(spool);
    options.now_ms = [] { return test_now_ms; };
    core_ = std::make_unique<WorkerCore>(options, *spool_);
  }
  // "trial phase" of every lease the worker says it holds.
  std::vector<std::string> held() const {
    std::vector<std::string> all;
    const v1::SyncRequest request = core_->make_request(0);
    for (const v1::HeldLease& h : request.held())
      all.push_back(h.trial_id() + " " + v1::LeasePhase_Name(h.phase()));
    return all;
  }
  std::vector<std::string> owed() const {
    std::vector<std::string> all;
    const v1::SyncRequest request = core_->make_request(0);
    for (const v1::MeasureRecord& r : request.results()) all.push_back(r.trial_id());
    return all;
  }
  std::vector<std::string> returned() const {
    std::vector<std::string> all;
    const v1::SyncRequest request = core_->make_request(0);
    for (const v1::HeldLease& h : request.returned()) all.push_back(h.trial_id());
    return all;
  }
  // The next lease goes through all phases.
  std::string do_next() {
    const std::optional<v1::Lease> next = core_->next_to_build();
    if (!next) return "";
    EXPECT_TRUE(core_->built(*next, {"digest", 1, 1}));
    const std::optional<WorkerCore::Built> run = core_->next_to_run();
    if (!run) return "";
    EXPECT_TRUE(core_->finish(run->lease, record(run->lease.trial_id(), run->lease.attempt())).is_ok());
    return run->lease.trial_id();
  }

  const TemporaryFolder temporary_;
  const std::string dir_ = temporary_.path();
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<WorkerCore> core_;
};

TEST_F(WorkerCoreTest, ALeaseIsBuiltRunReportedAndForgottenOnceAcknowledged) {
  EXPECT_EQ(core_->make_request(7).free_slots(), 4);
  EXPECT_EQ(core_->make_request(7).wait_ms(), 7);
  core_->apply(leases({lease("a")}));
  EXPECT_THAT(held(), ElementsAre("a WAITING"));
  EXPECT_EQ(core_->make_request(0).free_slots(), 3);

  const std::optional<v1::Lease> build = core_->next_to_build();
  EXPECT_EQ(build->fencing(), 10);
  EXPECT_THAT(held(), ElementsAre("a BUILDING"));
  EXPECT_TRUE(core_->built(*build, {"d1", 12, 3}));
  EXPECT_THAT(held(), ElementsAre("a WAITING"));
  const std::optional<WorkerCore::Built> run = core_->next_to_run();
  EXPECT_EQ(run->digest, "d1");
  EXPECT_EQ(run->build_ms, 12);
  EXPECT_EQ(run->queue_ms, 3);
  EXPECT_THAT(held(), ElementsAre("a RUNNING"));

  EXPECT_TRUE(core_->finish(run->lease, record("a")).is_ok());
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_THAT(owed(), ElementsAre("a"));
  EXPECT_EQ(core_->make_request(0).free_slots(), 4);
  EXPECT_FALSE(core_->idle());
  core_->apply(acks({"a"}));
  EXPECT_THAT(owed(), IsEmpty());
  EXPECT_TRUE(core_->idle());
  EXPECT_EQ(spool_->bytes(), 0) << "what the daemon has on disk needs no second place";
}

TEST_F(WorkerCoreTest, OneIsBuiltWhileAnotherRunsAndBothInTheOrderTheyCame) {
  core_->apply(leases({lease("z"), lease("a")}));
  core_->built(*core_->next_to_build(), {});
  EXPECT_EQ(core_->next_to_run()->lease.trial_id(), "z");
  EXPECT_EQ(core_->next_to_build()->trial_id(), "a");
  EXPECT_THAT(held(), ElementsAre("a BUILDING", "z RUNNING"));
}

// Its result is on its way to disk: it neither runs again nor goes back unmeasured, and the next one runs.
TEST_F(WorkerCoreTest, WhatHasRunWaitsForItsResultAlone) {
  core_->apply(leases({lease("a"), lease("b")}));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(core_->built(*core_->next_to_build(), {"digest", 1, 1}));
  const v1::Lease first = core_->next_to_run()->lease;
  core_->ran(first);
  EXPECT_THAT(held(), ElementsAre("a WAITING", "b WAITING"));
  const v1::Lease second = core_->next_to_run()->lease;
  EXPECT_EQ(second.trial_id(), "b");
  EXPECT_THAT(held(), ElementsAre("a WAITING", "b RUNNING"));
  core_->ran(second);
  core_->set_unfit("no disk");
  EXPECT_THAT(returned(), IsEmpty());
  core_->drain();
  EXPECT_FALSE(core_->idle());
  EXPECT_TRUE(core_->finish({{first, record("a")}, {second, record("b")}}).is_ok());
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_THAT(owed(), ElementsAre("a", "b"));
  start();
  EXPECT_THAT(owed(), ElementsAre("a", "b"));
}

TEST_F(WorkerCoreTest, AResultIsSentUntilAcknowledgedAndARepeatedAckIsHarmless) {
  core_->apply(leases({lease("a")}));
  do_next();
  EXPECT_THAT(owed(), ElementsAre("a"));
  EXPECT_THAT(owed(), ElementsAre("a")) << "the reply got lost: said again";
  core_->apply(acks({"a"}));
  core_->apply(acks({"a", "never heard of"}));
  EXPECT_THAT(owed(), IsEmpty());
}

TEST_F(WorkerCoreTest, ALeaseDeliveredAgainIsOneLease) {
  core_->apply(leases({lease("a")}));
  const auto building = core_->next_to_build();
  core_->apply(leases({lease("a")}));
  EXPECT_THAT(held(), ElementsAre("a BUILDING"));
  core_->built(*building, {});
  const auto running = core_->next_to_run();
  EXPECT_TRUE(core_->finish(running->lease, record("a")).is_ok());
  core_->apply(leases({lease("a")}));
  EXPECT_THAT(held(), IsEmpty()) << "its result is owed: not run again";
  EXPECT_THAT(owed(), ElementsAre("a"));
}

TEST_F(WorkerCoreTest, ANewAttemptReplacesTheOneThatStillWaits) {
  core_->apply(leases({lease("a", 1)}));
  core_->apply(leases({lease("a", 2)}));
  const v1::SyncRequest request = core_->make_request(0);
  ASSERT_EQ(request.held_size(), 1);
  EXPECT_EQ(request.held(0).attempt(), 2);
  EXPECT_EQ(request.held(0).fencing(), 20);
}

TEST_F(WorkerCoreTest, ARevokedLeaseIsDroppedInEveryPhase) {
  std::vector<std::string> stopped;
  core_->on_revoked_run([&](const std::string& trial) { stopped.push_back(trial); });
  core_->apply(leases({lease("waits"), lease("builds"), lease("runs")}));
  core_->apply(revocation("waits"));
  const auto builds = core_->next_to_build();
  EXPECT_EQ(builds->trial_id(), "builds");
  core_->apply(revocation("builds"));
  EXPECT_FALSE(core_->built(*builds, {})) << "its builder hears of it";
  core_->built(*core_->next_to_build(), {});
  const auto runs = core_->next_to_run();
  core_->apply(revocation("runs"));
  EXPECT_THAT(stopped, ElementsAre("runs"));
  EXPECT_FALSE(core_->holds(runs->lease));
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(WorkerCoreTest, AResultThatCameAfterItsRevocationIsStillReported) {
  core_->apply(leases({lease("a")}));
  core_->built(*core_->next_to_build(), {});
  const auto running = core_->next_to_run();
  core_->apply(revocation("a"));
  EXPECT_TRUE(core_->finish(running->lease, record("a")).is_ok());
  EXPECT_THAT(owed(), ElementsAre("a")) << "the daemon decides what late work is worth";
}

TEST_F(WorkerCoreTest, ADaemonThatStartsAnewHearsEverythingAgain) {
  core_->set_session("old");
  core_->apply(leases({lease("a"), lease("b")}));
  do_next();
  core_->set_session("new");
  const v1::SyncRequest request = core_->make_request(0);
  EXPECT_EQ(request.session(), "new");
  EXPECT_THAT(held(), ElementsAre("b WAITING"));
  EXPECT_THAT(owed(), ElementsAre("a"));
}

TEST_F(WorkerCoreTest, AWorkerThatStartsAnewOwesWhatItsSpoolHoldsUnderTheLifeThatMadeIt) {
  core_->apply(leases({lease("a"), lease("b"), lease("c")}));
  do_next();
  do_next();
  start();
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_THAT(owed(), ElementsAre("a", "b"));
  const v1::SyncRequest request = core_->make_request(0);
  EXPECT_EQ(request.results(0).environment().worker_incarnation(), "life 1");
  core_->apply(leases({lease("a")}));
  EXPECT_THAT(held(), IsEmpty()) << "measured already";
  core_->apply(acks({"a"}));
  start();
  EXPECT_THAT(owed(), UnorderedElementsAre("a", "b"))
      << "the spool shrinks when nothing is owed: until then, again";
  core_->apply(acks({"a", "b"}));
  start();
  EXPECT_THAT(owed(), IsEmpty());
}

TEST_F(WorkerCoreTest, AtMost64ResultsTravelAtOnceAndTheRestFollows) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(spool_->append(record(str("t", 1000 + i))).is_ok());
  start();
  std::set<std::string> seen;
  for (int round = 0; round < 2; ++round) {
    const std::vector<std::string> sent = owed();
    EXPECT_LE(sent.size(), 64u);
    seen.insert(sent.begin(), sent.end());
    core_->apply(acks(sent));
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_TRUE(core_->idle());
}

TEST_F(WorkerCoreTest, NewsAreToldAtOnce) {
  int told = 0;
  core_->on_news([&] { ++told; });
  core_->apply(leases({lease("a")}));
  EXPECT_EQ(told, 0);
  do_next();
  EXPECT_EQ(told, 1);
  core_->drain();
  EXPECT_EQ(told, 2);
}

TEST_F(WorkerCoreTest, DrainingFinishesWhatIsHeldAndTakesNoMore) {
  core_->apply(leases({lease("a")}));
  v1::SyncReply drain;
  drain.set_drain(true);
  core_->apply(drain);
  EXPECT_TRUE(core_->draining());
  EXPECT_EQ(core_->make_request(0).free_slots(), 0);
  EXPECT_FALSE(core_->idle());
  EXPECT_EQ(do_next(), "a");
  EXPECT_FALSE(core_->idle()) << "its result is owed";
  core_->apply(acks({"a"}));
  EXPECT_TRUE(core_->idle());
}

TEST_F(WorkerCoreTest, TheBestTimeIsTheLatestNewsOrTheLeasesWhicheverIsLess) {
  v1::SyncReply news;
  v1::BestTime* best = news.add_best();
  best->set_workload_key("w");
  best->set_target("llvm -mcpu=haswell -threads=1");
  best->set_best_ns(500);
  v1::Lease l = lease("a");
  l.set_best_ns(800);
  core_->apply(leases({l}));
  core_->apply(news);
  core_->built(*core_->next_to_build(), {});
  EXPECT_EQ(core_->next_to_run()->best_ns, 500);

  v1::Lease newer = lease("b");
  newer.set_best_ns(300);
  core_->apply(leases({newer}));
  core_->built(*core_->next_to_build(), {});
  EXPECT_EQ(core_->next_to_run()->best_ns, 300);
}

TEST_F(WorkerCoreTest, QueueTimeCountsFromTheLease) {
  test_now_ms = 5'000;
  core_->apply(leases({lease("a")}));
  test_now_ms = 5'250;
  EXPECT_EQ(core_->held_since_ms(lease("a")), 5'000);
}

TEST_F(WorkerCoreTest, ThreadsOfATarget) {
  EXPECT_EQ(threads_of("llvm -mcpu=haswell -threads=3"), 3);
  EXPECT_EQ(threads_of("cuda -arch=sm_90"), 1);
  EXPECT_EQ(threads_of("nonsense"), 1);
}

// --- phases ---

TEST_F(WorkerCoreTest, OnlyWhatReallyBuildsOrRunsIsSaidToDoSo) {
  core_->apply(leases({lease("a"), lease("b")}));
  EXPECT_THAT(held(), ElementsAre("a WAITING", "b WAITING"));
  const auto a = core_->next_to_build();
  EXPECT_THAT(held(), ElementsAre("a BUILDING", "b WAITING"));
  core_->built(*a, {});
  EXPECT_THAT(held(), ElementsAre("a WAITING", "b WAITING"))
      << "between build and run nothing of it can harm";
  const auto run = core_->next_to_run();
  EXPECT_THAT(held(), ElementsAre("a RUNNING", "b WAITING"));
  core_->wait_for_device(run->lease, true);
  EXPECT_THAT(held(), ElementsAre("a WAITING", "b WAITING")) << "another process has the core";
  core_->wait_for_device(run->lease, false);
  EXPECT_THAT(held(), ElementsAre("a RUNNING", "b WAITING"));
}

TEST_F(WorkerCoreTest, ARunThatWaitsForItsDeviceStillKeepsBuildsAway) {
  start({.slots = 4, .cpus = 1});
  core_->apply(leases({lease("a"), lease("b")}));
  core_->built(*core_->next_to_build(), {});
  core_->wait_for_device(core_->next_to_run()->lease, true);
  std::atomic<bool> built{false};
  std::thread builder([&] { built = core_->next_to_build().has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(built) << "the run may begin at any moment";
  core_->stop();
  builder.join();
}

// --- many builders, for a device ---

constexpr char kGpu[] = "cuda -arch=sm_90";

class DeviceBuilds : public WorkerCoreTest {
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
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
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
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(running);
  EXPECT_TRUE(core_->finish(lease("g1", 1, kGpu), record("g1")).is_ok());
  runner.join();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->lease.trial_id(), "cpu");
  expect_waits_for([&] { EXPECT_TRUE(core_->finish(run->lease, record("cpu")).is_ok()); }, "g3");
}

TEST_F(WorkerCoreTest, APhaseThatBeganIsNewsUntilARequestHasIt) {
  int began = 0;
  core_->on_phase([&] { ++began; });
  core_->apply(leases({lease("a")}));
  EXPECT_TRUE(core_->phases_told()) << "waiting is no news";
  const auto building = core_->next_to_build();
  EXPECT_EQ(began, 1);
  EXPECT_FALSE(core_->phases_told());
  (void)core_->make_request(0);
  EXPECT_TRUE(core_->phases_told());
  core_->built(*building, {});
  EXPECT_TRUE(core_->phases_told()) << "that a build ended may wait";
  (void)core_->next_to_run();
  EXPECT_EQ(began, 2);
  EXPECT_FALSE(core_->phases_told());
}

// --- a worker that cannot work ---

TEST_F(WorkerCoreTest, AnUnfitWorkerTakesNothingSaysWhyAndGivesBackWhatIsNotBegun) {
  core_->apply(leases({lease("builds"), lease("runs"), lease("waits")}));
  const auto builds = core_->next_to_build();
  core_->built(*core_->next_to_build(), {});
  const auto runs = core_->next_to_run();
  core_->set_unfit("no space left on device");
  v1::SyncRequest request = core_->make_request(0);
  EXPECT_EQ(request.unfit(), "no space left on device");
  EXPECT_EQ(request.free_slots(), 0);
  EXPECT_THAT(held(), UnorderedElementsAre("builds BUILDING", "runs RUNNING"));
  EXPECT_THAT(returned(), ElementsAre("waits"));
  EXPECT_EQ(request.returned(0).attempt(), 1);
  EXPECT_EQ(request.returned(0).fencing(), 10);
  EXPECT_EQ(request.returned(0).phase(), v1::WAITING);

  core_->apply({});
  EXPECT_THAT(returned(), IsEmpty()) << "the daemon has heard";
  core_->give_back(*builds);
  core_->give_back(runs->lease);
  EXPECT_FALSE(core_->holds(runs->lease));
  EXPECT_THAT(returned(), ElementsAre("builds", "runs"));
  core_->set_fit();
  request = core_->make_request(0);
  EXPECT_EQ(request.unfit(), "");
  EXPECT_EQ(request.free_slots(), 4);
}

TEST_F(WorkerCoreTest, WhatIsGivenBackForItsTemplateSaysWhichVersionIsHere) {
  core_->apply(leases({lease("a"), lease("b")}));
  v1::TemplateVersion here;
  here.set_name("matmul_cpu");
  here.set_version(3);
  core_->give_back(lease("a"), here);
  core_->give_back(lease("b"));
  const v1::SyncRequest request = core_->make_request(0);
  ASSERT_EQ(request.returned_size(), 2);
  EXPECT_EQ(request.returned(0).found().name(), "matmul_cpu");
  EXPECT_EQ(request.returned(0).found().version(), 3);
  EXPECT_FALSE(request.returned(1).has_found());
  EXPECT_EQ(request.unfit(), "");
  EXPECT_EQ(request.free_slots(), 4) << "it takes other leases";
}

TEST_F(WorkerCoreTest, WhatIsGivenBackIsSaidUntilASyncIsAnswered) {
  core_->apply(leases({lease("a"), lease("b")}));
  core_->give_back(lease("a"));
  EXPECT_THAT(returned(), ElementsAre("a"));
  EXPECT_THAT(returned(), ElementsAre("a")) << "the request was lost";
  core_->give_back(lease("b"));  // while the request above is under way
  core_->apply({});
  EXPECT_THAT(returned(), ElementsAre("b")) << "which that request did not have";
  core_->apply({});
  EXPECT_THAT(returned(), IsEmpty());
}

// A daemon of before knows nothing of leases given back, and delivers what is not held.
TEST_F(WorkerCoreTest, ALeaseDeliveredToAnUnfitWorkerWaitsAndGoesBackAtTheNextLook) {
  core_->set_unfit("no space left on device");
  core_->apply(leases({lease("a")}));
  EXPECT_THAT(held(), ElementsAre("a WAITING"));
  std::atomic<bool> began{false};
  std::thread builder([&] { began = core_->next_to_build().has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(began) << "an unfit worker begins nothing";
  core_->set_unfit("no space left on device");
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_THAT(returned(), ElementsAre("a"));
  core_->apply(leases({lease("a")}));
  core_->set_fit();
  builder.join();
  EXPECT_TRUE(began) << "fit again, it goes on";
}

TEST_F(WorkerCoreTest, AnUnfitWorkerThatDrainsLeavesOnceTheDaemonKnowsWhatItGivesBack) {
  core_->set_unfit("no space left on device");
  core_->apply(leases({lease("a")}));
  core_->drain();
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_FALSE(core_->idle()) << "the daemon has not heard of it";
  EXPECT_THAT(returned(), ElementsAre("a"));
  core_->apply(leases({lease("a")}));  // from a daemon of before
  EXPECT_TRUE(core_->idle());
}

TEST_F(WorkerCoreTest, AResultThatTheDiskRefusesIsOwedFromMemoryAndSpooledLater) {
  core_->apply(leases({lease("a"), lease("b")}));
  core_->built(*core_->next_to_build(), {});
  const auto run = core_->next_to_run();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit nothing{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &nothing), 0);
  const Status refused = core_->finish(run->lease, record("a"));
  const Status still = core_->spool_again();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(refused.is_ok());
  EXPECT_FALSE(still.is_ok());
  EXPECT_THAT(held(), ElementsAre("b WAITING"));
  EXPECT_THAT(owed(), ElementsAre("a")) << "measured once, and reported";
  EXPECT_TRUE(core_->spool_again().is_ok()) << "the disk has room again";
  start();
  EXPECT_THAT(owed(), ElementsAre("a")) << "now it outlives the process, too";
}

// --- races ---

TEST_F(WorkerCoreTest, ARacesResultOutlivesTheWorkerUntilItIsAcknowledged) {
  v1::Lease l = lease("race 1");
  l.add_finalists()->set_trial_id("t1");
  core_->apply(leases({l}));
  core_->built(*core_->next_to_build(), {});
  v1::RaceResult result;
  result.set_race_id("race 1");
  result.set_attempt(1);
  result.set_winner("t1");
  result.mutable_environment()->set_worker_incarnation("life 1");
  EXPECT_TRUE(core_->finish_race(core_->next_to_run()->lease, result).is_ok());
  start();  // killed before the daemon heard of it
  v1::SyncRequest request = core_->make_request(0);
  ASSERT_EQ(request.races_size(), 1);
  EXPECT_EQ(request.races(0).SerializeAsString(), result.SerializeAsString());
  core_->apply(leases({l}));
  EXPECT_THAT(held(), IsEmpty()) << "raced already";
  core_->apply(acks({"race 1"}));
  EXPECT_TRUE(core_->idle());
  EXPECT_EQ(spool_->bytes(), 0);
}

TEST_F(WorkerCoreTest, AnAcknowledgedTrialDoesNotTakeAnOwedRaceFromTheSpool) {
  v1::RaceResult result;
  result.set_race_id("r");
  result.set_attempt(1);
  EXPECT_TRUE(core_->finish_race(lease("r"), result).is_ok());
  EXPECT_TRUE(core_->finish(lease("a"), record("a")).is_ok());
  core_->apply(acks({"a"}));
  start();
  EXPECT_EQ(core_->make_request(0).races_size(), 1);
}

TEST_F(WorkerCoreTest, AboutAMegabyteOfResultsTravelsAtOnceAndOneResultAlways) {
  const auto big = [](const std::string& trial, size_t bytes) {
    v1::MeasureRecord r = record(trial);
    r.set_message(std::string(bytes, 'x'));
    return r;
  };
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(core_->finish(lease(str("t", i)), big(str("t", i), 300 << 10)).is_ok());
  EXPECT_EQ(owed().size(), 3u);
  start();
  core_->apply(acks({"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}));
  ASSERT_TRUE(core_->finish(lease("big"), big("big", 3 << 20)).is_ok());
  EXPECT_THAT(owed(), ElementsAre("big"));
}

// Builds and runs on their own threads; `together` counts moments at which both were going on.
void expect_exclusive(WorkerCore& core, const std::vector<v1::Lease>& all, bool exclusive) {
  std::atomic<int> building{0}, running{0}, together{0}, done{0};
  std::thread builder([&] {
    while (const auto l = core.next_to_build()) {
      ++building;
      if (running > 0) ++together;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (running > 0) ++together;
      --building;
      core.built(*l, {});
    }
  });
  std::thread runner([&] {
    while (const auto b = core.next_to_run()) {
      ++running;
      if (building > 0) ++together;
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
      if (building > 0) ++together;
      --running;
      EXPECT_TRUE(core.finish(b->lease, record(b->lease.trial_id())).is_ok());
      ++done;
    }
  });
  core.apply(leases(all));
  for (int i = 0; i < 5'000 && done < static_cast<int>(all.size()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  core.stop();
  builder.join();
  runner.join();
  EXPECT_EQ(done, static_cast<int>(all.size()));
  if (exclusive) {
    EXPECT_EQ(together, 0);
  }
}

TEST_F(WorkerCoreTest, AKernelThatUsesEveryCoreNeverRunsBesideABuild) {
  start({.slots = 8, .cpus = 2});
  std::vector<v1::Lease> all;
  for (int i = 0; i < 20; ++i) all.push_back(lease(str("t", i), 1, "llvm -mcpu=haswell -threads=2"));
  expect_exclusive(*core_, all, true);
}

TEST_F(WorkerCoreTest, OnOneCoreEveryKernelUsesEveryCore) {
  start({.slots = 8, .cpus = 1});
  expect_exclusive(*core_, {lease("a"), lease("b"), lease("c"), lease("d")}, true);
}

TEST_F(WorkerCoreTest, SpareCoresLetBuildsAndRunsGoTogetherAndAllAreDone) {
  start({.slots = 8, .cpus = 2});
  std::vector<v1::Lease> all;
  for (int i = 0; i < 20; ++i) all.push_back(lease(str("t", i)));
  expect_exclusive(*core_, all, false);
}

TEST_F(WorkerCoreTest, BuildsInsteadOfRunsNeverGoBesideARunAndYieldToWhatIsBuilt) {
  start({.slots = 8, .cpus = 2});
  constexpr int kAll = 60;
  std::atomic<int> building{0}, running{0}, together{0}, done{0}, beside{0}, instead{0};
  std::thread builder([&] {
    while (const auto l = core_->next_to_build()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(6));
      ++beside;
      core_->built(*l, {});
    }
  });
  std::thread helper([&] {
    while (const auto l = core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns)) {
      ++building;
      together += running;
      std::this_thread::sleep_for(std::chrono::milliseconds(6));
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
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      together += building;
      --running;
      EXPECT_TRUE(core_->finish(b->lease, record(b->lease.trial_id())).is_ok());
      ++done;
    }
  });
  std::vector<v1::Lease> all;
  for (int i = 0; i < kAll; ++i) all.push_back(lease(str("t", i)));
  core_->apply(leases(all));
  for (int i = 0; i < 5'000 && done < kAll; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  core_->stop();
  builder.join();
  helper.join();
  runner.join();
  EXPECT_EQ(done, kAll);
  EXPECT_EQ(together, 0);
  EXPECT_EQ(beside + instead, kAll);
}

TEST_F(WorkerCoreTest, WhileNothingIsToRunBothBuildersHaveALease) {
  core_->apply(leases({lease("a"), lease("b")}));
  EXPECT_EQ(core_->next_to_build()->trial_id(), "a");
  EXPECT_EQ(core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns)->trial_id(), "b");
  EXPECT_THAT(held(), UnorderedElementsAre("a BUILDING", "b BUILDING"));
}

TEST_F(WorkerCoreTest, ALeaseRevokedWhileBuiltInsteadOfRunsStillKeepsRunsWaiting) {
  core_->apply(leases({lease("a"), lease("b")}));
  EXPECT_EQ(core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns)->trial_id(), "a");
  core_->built(*core_->next_to_build(), {});
  core_->apply(revocation("a"));
  std::atomic<bool> ran{false};
  std::thread runner([&] { ran = core_->next_to_run().has_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(ran);
  std::thread helper([&] { (void)core_->next_to_build(WorkerCore::Builds::kInsteadOfRuns); });
  runner.join();
  EXPECT_TRUE(ran);
  core_->stop();
  helper.join();
}

TEST_F(WorkerCoreTest, NoRunOnTheCpusBeginsWhileAReferenceIsMadeByManyThreads) {
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
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
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

// A daemon that means well behind a wire that does not: requests and replies are lost or come twice, either
// side starts anew. In the end every trial has a record, and nothing acknowledged was lost.
TEST_F(WorkerCoreTest, EveryTrialEndsUnderLossRepetitionAndRestarts) {
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/30)) {
    std::filesystem::remove(dir_ + "/results.spool");
    start();
    std::mt19937_64 rng(seed);
    const auto chance = [&](int percent) { return static_cast<int>(rng() % 100) < percent; };
    constexpr int kTrials = 30;
    std::map<std::string, v1::MeasureRecord> stored;  // the daemon's disk
    std::map<std::string, int> leased;                // trial -> attempt
    std::optional<v1::SyncReply> late;
    int steps = 0;
    while (stored.size() < kTrials || !core_->idle()) {
      ASSERT_LT(++steps, 20'000) << "the system is stuck with " << stored.size() << " records";
      if (chance(2)) start();  // the worker dies: what it held comes back by redelivery
      if (!held().empty() && chance(60)) do_next();
      if (chance(20)) continue;  // the request is lost
      const v1::SyncRequest request = core_->make_request(0);
      v1::SyncReply reply;
      std::set<std::string> busy;
      for (const v1::HeldLease& h : request.held()) busy.insert(h.trial_id());
      for (const v1::MeasureRecord& r : request.results()) {
        stored.emplace(r.trial_id(), r);
        busy.insert(r.trial_id());
        v1::Ack* ack = reply.add_acks();
        ack->set_trial_id(r.trial_id());
        ack->set_attempt(r.attempt());
      }
      int slots = request.free_slots();
      for (int i = 0; i < kTrials && slots > 0; ++i) {
        const std::string trial = str("t", i);
        if (stored.contains(trial) || busy.contains(trial)) continue;
        leased.emplace(trial, 1);
        *reply.add_leases() = lease(trial, leased[trial]);
        --slots;
      }
      if (chance(20)) continue;  // the reply is lost
      core_->apply(reply);
      if (chance(10)) core_->apply(reply);
      if (late && chance(50)) core_->apply(*std::exchange(late, std::nullopt));
      if (chance(10)) late = reply;
    }
    EXPECT_EQ(stored.size(), static_cast<size_t>(kTrials));
    EXPECT_TRUE(owed().empty());
  }
}

}  // namespace
}  // namespace tuner
