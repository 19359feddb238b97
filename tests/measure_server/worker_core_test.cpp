// What a worker holds and owes while messages are lost, repeated and late, and while the daemon or the worker
// itself starts anew.
#include "tests/measure_server/worker_core_fixture.h"
#include "tests/random_seed.h"
#include "tests/support/wait_until.h"

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
  let_pass(std::chrono::milliseconds(50));
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
