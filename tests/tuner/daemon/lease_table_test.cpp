// Leases: who may run a trial until when, and what becomes of it when a worker is lost.
#include "tuner/daemon/tables/lease_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Trial = LeaseTable::Trial;

using Asker = LeaseTable::Asker;
const auto kServesAll = [](const Needs&) { return true; };
const auto kNoOthers = [](const Needs&, const std::set<std::string>&) { return false; };
const Asker kAny{.worker_id = "w", .serves = kServesAll, .others = kNoOthers};
const LeaseTable::Owner kW1{"w1", "a"}, kW2{"w2", "a"};

Trial trial(const std::string& id, const std::string& job = "j1", int attempt = 0, int64_t fencing = 0) {
  return {.id = id,
          .job_id = job,
          .work = {.task = {"v1 work", "cpu1"}, .config = "config of " + id},
          .attempt = attempt,
          .fencing = fencing};
}

// As the store has it: leased to that life.
Trial leased(const std::string& id, int attempt, int64_t fencing, const LeaseTable::Owner& owner) {
  Trial t = trial(id, "j1", attempt, fencing);
  t.grants = {{attempt, owner.worker_id, owner.incarnation}};
  return t;
}

class Leases : public testing::Test {
 protected:
  void enqueue(const std::string& id, const std::string& job = "j1") {
    ASSERT_EQ(table.enqueue(trial(id, job)), LeaseTable::Added::kNew);
  }
  // Leases the oldest queued trial as the store would: attempt + 1 and a larger token. Empty when nothing is
  // queued.
  LeaseTable::Held lease(const LeaseTable::Owner& owner) {
    const std::vector<Trial> got = table.reserve(kAny, {}, 1);
    if (got.empty()) return {};
    LeaseTable::Held held{got[0].id, got[0].attempt + 1, ++token};
    EXPECT_TRUE(table.grant(held.trial_id, owner, held.attempt, held.fencing, now));
    return held;
  }
  // Lets time pass in steps short enough not to look like a stall of the daemon.
  std::vector<LeaseTable::Loss> pass(int64_t ms) {
    std::vector<LeaseTable::Loss> losses;
    for (const int64_t end = now + ms; now < end;) {
      now += std::min<int64_t>(1000, end - now);
      for (const LeaseTable::Loss& l : table.expire(now)) losses.push_back(l);
    }
    return losses;
  }
  // The worker says that it builds or runs it.
  void begin_work(const LeaseTable::Owner& owner, LeaseTable::Held held) {
    held.at_work = true;
    table.heartbeat(owner, {held}, now);
  }
  LeaseTable table{{.ttl_ms = 15'000}};
  int64_t now = 1000, token = 0;
};

TEST_F(Leases, AreGivenOldestFirstAndOnce) {
  enqueue("t1");
  enqueue("t2");
  EXPECT_EQ(lease(kW1).trial_id, "t1");
  EXPECT_EQ(lease(kW2).trial_id, "t2");
  EXPECT_EQ(lease(kW2).trial_id, "");
}

TEST_F(Leases, CountsWhatWaitsWhatIsOutAndForHowLong) {
  EXPECT_EQ(table.oldest_queued_ms(now), now) << "nothing waits";
  enqueue("t1");
  pass(1'000);  // the first look: from here on time is known
  const int64_t first_look = now;
  pass(2'000);
  EXPECT_EQ(table.oldest_queued_ms(now), first_look) << "t1 came before the first look";
  enqueue("t2");
  const int64_t second = now;
  pass(1'000);
  EXPECT_EQ(lease(kW1).trial_id, "t1");
  EXPECT_EQ(table.oldest_queued_ms(now), second) << "t2 waits";
  EXPECT_EQ(table.queued(), 1u);
  EXPECT_EQ(table.leased(), 1u);
  table.restore_leased(trial("t3", "j1", 1, 1), kW1.worker_id, now);
  EXPECT_EQ(table.leased(), 2u) << "kept for its worker since a restart";
  table.close("t1");
  table.close("t3");
  EXPECT_EQ(table.leased(), 0u);
}

TEST_F(Leases, CanBeWithdrawnUntilAWorkerIsGivenThem) {
  enqueue("t1");
  enqueue("t2");
  enqueue("t3", "j2");
  enqueue("t4");
  EXPECT_EQ(lease(kW1).trial_id, "t1");
  EXPECT_THAT(table.withdraw("j1"), ElementsAre("t2", "t4"));
  EXPECT_THAT(table.withdraw("j1"), IsEmpty());
  EXPECT_EQ(lease(kW2).trial_id, "t3") << "of another job";
  EXPECT_EQ(lease(kW2).trial_id, "");
  EXPECT_EQ(table.open_trials(), 2u);
  EXPECT_EQ(table.close("t1"), "j1") << "with a worker: it stays";
}

TEST_F(Leases, OfRacesStayWhenTheTrialsOfTheirJobAreWithdrawn) {
  Trial race = trial("race j1/1");
  race.work.kind = WorkKind::kRace;
  ASSERT_EQ(table.enqueue_again(race), LeaseTable::Added::kNew);
  EXPECT_THAT(table.withdraw("j1"), IsEmpty());
  EXPECT_EQ(lease(kW1).trial_id, "race j1/1");
}

TEST_F(Leases, KeepWhatAWorkerMustKnowUntilTheTrialIsClosed) {
  enqueue("t1");
  const LeaseTable::Held held = lease(kW1);
  const Trial* const found = table.find("t1");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->work.config, "config of t1");
  EXPECT_EQ(found->attempt, 1);
  EXPECT_EQ(found->fencing, held.fencing) << "of the lease, so that it can be delivered again";
  table.close("t1");
  EXPECT_EQ(table.find("t1"), nullptr);
}

TEST_F(Leases, OnlyGoToAWorkerThatServesTheTarget) {
  enqueue("t1");
  Asker gpu = kAny;
  gpu.serves = [](const Needs& needs) { return needs.target == "gpu"; };
  EXPECT_THAT(table.reserve(gpu, {}, 8), IsEmpty());
  EXPECT_EQ(table.queued(), 1u);
  EXPECT_THAT(table.reserve(kAny, {}, 8), SizeIs(1));
  EXPECT_EQ(table.queued(), 0u);
}

TEST_F(Leases, LastAsLongAsHeartbeatsComeAndEndATtlAfterTheLast) {
  enqueue("t1");
  const LeaseTable::Held held = lease(kW1);
  EXPECT_THAT(pass(14'000), IsEmpty());
  EXPECT_THAT(table.heartbeat(kW1, {held}, now).revoked, IsEmpty());
  EXPECT_THAT(pass(14'000), IsEmpty());
  const std::vector<LeaseTable::Loss> losses = pass(1'000);
  ASSERT_THAT(losses, SizeIs(1));
  EXPECT_EQ(losses[0].trial_id, "t1");
  EXPECT_EQ(losses[0].attempt, 1);
  EXPECT_TRUE(losses[0].retry);
  EXPECT_EQ(losses[0].message, "trial t1 re-queued after attempt 1: worker w1 was silent for 15 s");
}

TEST_F(Leases, ALostTrialGoesToTheNextWorkerBeforeYoungerOnes) {
  enqueue("t1");
  lease(kW1);
  enqueue("t2");
  pass(15'000);
  table.requeued("t1");
  const LeaseTable::Held again = lease(kW2);
  EXPECT_EQ(again.trial_id, "t1");
  EXPECT_EQ(again.attempt, 2);
}

TEST_F(Leases, ALateResultClosesATrialInWhateverStateItIs) {
  enqueue("t1");
  lease(kW1);
  pass(15'000);
  EXPECT_EQ(table.close("t1"), "j1");  // lost, not yet re-queued
  table.requeued("t1");
  EXPECT_EQ(lease(kW2).trial_id, "");

  enqueue("t2");
  const LeaseTable::Held old = lease(kW1);
  pass(15'000);
  table.requeued("t2");
  const LeaseTable::Held newer = lease(kW2);
  EXPECT_EQ(table.close("t2"), "j1");  // the first worker was late but right
  EXPECT_THAT(table.heartbeat(kW2, {newer}, now).revoked, SizeIs(1));
  EXPECT_EQ(table.close("t2"), std::nullopt);
  EXPECT_EQ(old.attempt, 1);
}

TEST_F(Leases, AnExpiredLeaseIsNeitherRenewedNorRevokedWhileItsTrialIsOpen) {
  enqueue("t1");
  const LeaseTable::Held old = lease(kW1);
  pass(15'000);
  table.requeued("t1");
  EXPECT_THAT(table.heartbeat(kW1, {old}, now).revoked, IsEmpty());
  // Its own worker is not given a second copy of what it still runs.
  EXPECT_THAT(table.reserve(kAny, {"t1"}, 8), IsEmpty());
  EXPECT_THAT(table.reserve(kAny, {}, 8), SizeIs(1));
}

TEST_F(Leases, WhatAWorkerDoesNotNameAfterALostReplyIsDeliveredAgain) {
  enqueue("t1");
  const LeaseTable::Held held = lease(kW1);
  EXPECT_THAT(table.heartbeat(kW1, {}, now).missing, ElementsAre("t1"));
  EXPECT_THAT(table.heartbeat(kW1, {held}, now).missing, IsEmpty());
  EXPECT_THAT(table.heartbeat(kW2, {}, now).missing, IsEmpty());
}

TEST_F(Leases, AStoppedDaemonCostsNobodyALease) {
  enqueue("t1");
  lease(kW1);
  table.expire(now);
  now += 60'000;  // the daemon was suspended
  EXPECT_THAT(table.expire(now), IsEmpty());
  EXPECT_THAT(pass(14'000), IsEmpty());
  EXPECT_THAT(pass(1'000), SizeIs(1));
}

TEST_F(Leases, AfterARestartAWorkerTakesItsLeaseUpAgainByItsToken) {
  ASSERT_EQ(table.restore_leased(leased("t1", 2, 77, kW1), kW1.worker_id, now), LeaseTable::Added::kNew);
  EXPECT_THAT(table.reserve(kAny, {}, 8), IsEmpty());
  pass(10'000);
  EXPECT_THAT(table.heartbeat(kW1, {{"t1", 2, 77}}, now).revoked, IsEmpty());
  EXPECT_THAT(pass(14'000), IsEmpty()) << "renewed by the heartbeat";
  EXPECT_EQ(table.leases_of(kW1), 1u);
}

TEST_F(Leases, AfterARestartAnUnclaimedLeaseGetsOneTtlThenIsRetried) {
  ASSERT_EQ(table.restore_leased(leased("t1", 2, 77, kW1), kW1.worker_id, now), LeaseTable::Added::kNew);
  EXPECT_THAT(table.heartbeat(kW1, {{"t1", 1, 70}}, now).revoked, IsEmpty())
      << "an older token does not claim it";
  EXPECT_THAT(pass(14'000), IsEmpty());
  const std::vector<LeaseTable::Loss> losses = pass(1'000);
  ASSERT_THAT(losses, SizeIs(1));
  EXPECT_TRUE(losses[0].retry);
  EXPECT_THAT(losses[0].message, HasSubstr("did not take it up again"));
}

TEST_F(Leases, AfterARestartAWorkerThatDoesNotHoldItsLeaseLosesItAtOnce) {
  const LeaseTable::Owner w1{kW1.worker_id, "a life"};
  ASSERT_EQ(table.restore_leased(leased("t1", 2, 77, w1), kW1.worker_id, now), LeaseTable::Added::kNew);
  ASSERT_EQ(table.restore_leased(leased("t2", 1, 78, w1), kW1.worker_id, now), LeaseTable::Added::kNew);
  ASSERT_EQ(table.restore_leased(leased("t3", 1, 79, w1), kW1.worker_id, now), LeaseTable::Added::kNew);
  EXPECT_THAT(pass(1'000), IsEmpty());
  table.heartbeat(kW2, {}, now, /*complete=*/true);
  EXPECT_THAT(table.expire(now), IsEmpty()) << "another worker knows nothing of it";
  table.heartbeat(w1, {}, now, /*complete=*/false);
  EXPECT_THAT(table.expire(now), IsEmpty()) << "its result may be on its way";
  table.heartbeat(w1, {{"t2", 1, 78}, {"t3", 1, 70}}, now, /*complete=*/true);
  const std::vector<LeaseTable::Loss> losses = table.expire(now);
  ASSERT_THAT(losses, SizeIs(1)) << "t2 is held, of t3 an earlier lease is";
  EXPECT_EQ(losses[0].trial_id, "t1");
  EXPECT_TRUE(losses[0].retry);
  EXPECT_EQ(table.leases_of(w1), 1u);
}

TEST_F(Leases, FiveWorkersLostWhileTheyWorkedAtItMakeATrialPoison) {
  enqueue("t1");
  std::vector<LeaseTable::Loss> losses;
  for (int fault = 1; fault <= 5; ++fault) {
    const LeaseTable::Owner owner{str("w", fault % 2), str(fault)};
    begin_work(owner, lease(owner));
    losses = table.worker_lost(owner);
    ASSERT_THAT(losses, SizeIs(1));
    EXPECT_EQ(losses[0].retry, fault < 5);
    table.requeued("t1");
  }
  EXPECT_EQ(losses[0].message, "poison: workers were lost 5 times while they worked at it (w0, w1)");
}

TEST_F(Leases, OneWorkerMayLoseATrialFourTimesNotFive) {
  enqueue("t1");
  std::vector<LeaseTable::Loss> losses;
  for (int attempt = 1; attempt <= 5; ++attempt) {
    const LeaseTable::Held held = lease(kW1);
    EXPECT_EQ(held.attempt, attempt);
    begin_work(kW1, held);
    losses = table.worker_lost(kW1);
    ASSERT_THAT(losses, SizeIs(1));
    EXPECT_EQ(losses[0].retry, attempt < 5);
    table.requeued("t1");
  }
  EXPECT_THAT(losses[0].message, HasSubstr("given up after 5 faults"));
}

// Issue 18, "What was seen", 6.
TEST_F(Leases, Seen6ThatOnlyWaitedAtAWorkerAreInnocentForFortyNineDeadWorkers) {
  enqueue("t1");
  for (int life = 0; life < 49; ++life) {
    const LeaseTable::Owner owner{str("w", life), "1"};
    ASSERT_EQ(lease(owner).trial_id, "t1");
    const std::vector<LeaseTable::Loss> losses = table.worker_lost(owner);
    ASSERT_THAT(losses, SizeIs(1));
    ASSERT_TRUE(losses[0].retry) << losses[0].message;
    table.requeued("t1");
  }
}

TEST_F(Leases, WhatAWorkerCouldNotMeasureGoesToAnotherFirst) {
  enqueue("t1");
  Asker first = kAny, second = kAny;
  first.worker_id = "w1";
  second.worker_id = "w2";
  first.others = second.others = [](const Needs&, const std::set<std::string>& except) {
    return !except.contains("w2");  // w2 is here, too
  };
  ASSERT_EQ(lease(kW1).trial_id, "t1");
  const auto loss = table.fault("t1", "w1", "its disk is full");
  ASSERT_TRUE(loss);
  EXPECT_TRUE(loss->retry);
  EXPECT_THAT(loss->message, HasSubstr("worker w1 could not measure it: its disk is full"));
  EXPECT_EQ(table.fault("t1", "w1", "again"), std::nullopt) << "it does not have it any more";
  table.requeued("t1");
  EXPECT_THAT(table.reserve(first, {}, 4), IsEmpty());
  EXPECT_THAT(table.reserve(second, {}, 4), SizeIs(1));
}

TEST_F(Leases, WhatATrialOrARaceNeedsAreItsTargetAndTheTemplatesOfAllItsFinalists) {
  Trial t = trial("t1");
  t.work.template_name = "a";
  t.work.template_version = 3;
  EXPECT_EQ(needs_of(t.work), (Needs{WorkKind::kTrial, "cpu1", {{"a", 3}}}));
  t.work.kind = WorkKind::kRerun;
  EXPECT_EQ(needs_of(t.work).kind, WorkKind::kTrial);
  t.work.kind = WorkKind::kRace;
  for (const auto& [name, version] : {std::pair("b", 1), std::pair("a", 3), std::pair("b", 1)})
    t.work.finalists.push_back({.template_name = name, .template_version = version});
  EXPECT_EQ(needs_of(t.work), (Needs{WorkKind::kRace, "cpu1", {{"a", 3}, {"b", 1}}}));
}

TEST_F(Leases, WithoutAnotherWorkerTheOneThatFailedTriesAgain) {
  enqueue("t1");
  for (int attempt = 1; attempt <= 5; ++attempt) {
    ASSERT_EQ(lease(kW1).attempt, attempt);
    const auto loss = table.fault("t1", "w1", "no device");
    ASSERT_TRUE(loss);
    EXPECT_EQ(loss->retry, attempt < 5);
    table.requeued("t1");
  }
}

TEST_F(Leases, ATrialThatThreeWorkersCouldNotMeasureIsGivenUp) {
  enqueue("t1");
  for (const std::string worker : {"w1", "w2", "w3"}) {
    ASSERT_EQ(lease({worker, "1"}).trial_id, "t1");
    const auto loss = table.fault("t1", worker, "no device");
    ASSERT_TRUE(loss);
    EXPECT_EQ(loss->retry, worker != "w3") << loss->message;
    table.requeued("t1");
  }
}

TEST_F(Leases, GivenBackUnmeasuredBlameNobody) {
  enqueue("t1");
  for (int i = 0; i < 20; ++i) {
    LeaseTable::Held held = lease(kW1);
    begin_work(kW1, held);
    EXPECT_EQ(table.give_back(kW2, held, "not its own"), std::nullopt);
    const auto loss = table.give_back(kW1, held, "the disk is full");
    ASSERT_TRUE(loss);
    ASSERT_TRUE(loss->retry) << loss->message;
    EXPECT_THAT(loss->message, HasSubstr("worker w1 gave it back: the disk is full"));
    table.requeued("t1");
  }
}

TEST_F(Leases, AnOwnerWhoseTrialAnotherClosedIsToHearOfIt) {
  enqueue("t1");
  lease(kW1);
  EXPECT_THAT(table.take_revoked(), IsEmpty());
  table.close("t1");
  EXPECT_THAT(table.take_revoked(), ElementsAre(kW1));
  EXPECT_THAT(table.take_revoked(), IsEmpty());
}

TEST_F(Leases, AResultThatCameBeforeItsTrialWasLoadedKeepsItFromRunning) {
  EXPECT_EQ(table.close("t1"), std::nullopt);
  EXPECT_EQ(table.enqueue(trial("t1")), LeaseTable::Added::kResultCame);
  EXPECT_EQ(table.restore_leased(trial("t1", "j1", 1, 5), kW1.worker_id, now),
            LeaseTable::Added::kResultCame);
  EXPECT_EQ(lease(kW1).trial_id, "");
}

TEST_F(Leases, AClosedTrialRunsAgainOnlyWhenAskedFor) {
  enqueue("t1");
  lease(kW1);
  table.close("t1");
  enqueue("t2");
  EXPECT_EQ(table.enqueue_again(trial("t1", "rerun t1", 9, 1)), LeaseTable::Added::kNew);
  EXPECT_EQ(table.enqueue_again(trial("t1", "rerun t1", 9, 1)), LeaseTable::Added::kKnownAlready);
  EXPECT_EQ(lease(kW1).trial_id, "t1") << "before what is queued";
}

TEST_F(Leases, OfACancelledJobAreRevokedAndItsTrialsForgotten) {
  enqueue("t1", "j1");
  enqueue("t2", "j2");
  const LeaseTable::Held held = lease(kW1);
  table.forget_job("j1");
  const LeaseTable::Heartbeat heartbeat = table.heartbeat(kW1, {held}, now);
  ASSERT_THAT(heartbeat.revoked, SizeIs(1));
  EXPECT_EQ(heartbeat.revoked[0].trial_id, "t1");
  EXPECT_EQ(lease(kW1).trial_id, "t2");
}

TEST_F(Leases, AReservationThatTheStoreRefusedGoesBackToTheFront) {
  enqueue("t1");
  enqueue("t2");
  ASSERT_THAT(table.reserve(kAny, {}, 1), SizeIs(1));
  table.release("t1");
  EXPECT_EQ(lease(kW1).trial_id, "t1");
  table.reserve(kAny, {}, 1);
  table.close("t2");
  EXPECT_FALSE(table.grant("t2", kW1, 1, 99, now)) << "closed between reserve and grant: not to be delivered";
}

TEST_F(Leases, AResultNobodyCanReadCountsAsALoss) {
  enqueue("t1");
  lease(kW1);
  table.drop("t1", kW2);
  EXPECT_THAT(table.expire(now), SizeIs(0)) << "it is not this worker's";
  table.drop("t1", kW1);
  const std::vector<LeaseTable::Loss> losses = table.expire(now);
  ASSERT_THAT(losses, SizeIs(1));
  EXPECT_THAT(losses[0].message, HasSubstr("its result could not be read"));
  EXPECT_FALSE(losses[0].death) << "nobody died";
}

// --- who had which attempt ---

TEST_F(Leases, AClaimHoldsForTheLifeThatHadTheAttemptAlsoWhenAnotherHasTheTrialNow) {
  enqueue("t1");
  const LeaseTable::Held first = lease(kW1);
  now += 300;
  const auto claim = table.claim("t1", first.attempt, kW1, now);
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->granted && claim->current);
  EXPECT_EQ(claim->held_ms, 300);
  EXPECT_FALSE(table.claim("t1", 999, kW1, now)->granted);
  EXPECT_FALSE(table.claim("t1", first.attempt, kW2, now)->granted);
  EXPECT_FALSE(table.claim("t1", first.attempt, {"w1", "b"}, now)->granted) << "another life of that worker";
  EXPECT_FALSE(table.claim("t2", 1, kW1, now)) << "not open: the store tells";
  pass(15'000);
  table.requeued("t1");
  const LeaseTable::Held second = lease(kW2);
  EXPECT_EQ(second.attempt, 2);
  const auto late = table.claim("t1", 1, kW1, now);
  EXPECT_TRUE(late->granted);
  EXPECT_FALSE(late->current);
  EXPECT_TRUE(table.claim("t1", 2, kW2, now)->current);
  EXPECT_FALSE(table.claim("t1", 2, kW1, now)->granted);
}

TEST_F(Leases, ALeaseOfBeforeARestartBelongsToTheLifeThatHadIt) {
  Trial known = trial("t1", "j1", 3, 70);
  known.grants = {{3, "w1", "a"}};
  table.restore_leased(known, "w1", now);
  for (const LeaseTable::Owner& other : {kW2, LeaseTable::Owner{"w1", "b"}}) {
    table.heartbeat(other, {{"t1", 3, 70}}, now);
    EXPECT_EQ(table.owner("t1"), nullptr) << other.worker_id << " guessed the token";
    EXPECT_FALSE(table.give_back(other, {"t1", 3, 70}, "I want no more of it"));
  }
  EXPECT_FALSE(table.claim("t1", 3, kW1, now)->held_ms) << "since when, nobody here knows";
  table.heartbeat(kW1, {{"t1", 3, 70}}, now);
  ASSERT_NE(table.owner("t1"), nullptr);
  EXPECT_EQ(*table.owner("t1"), kW1);
}

// --- suspects ---

TEST_F(Leases, WhatAWorkerWasLostAtIsLeasedAloneToOneThatIsIdle) {
  enqueue("t1");
  enqueue("t2");
  enqueue("t3");
  enqueue("t4");
  const LeaseTable::Held t1 = lease(kW1);
  begin_work(kW1, t1);
  const LeaseTable::Held t2 = lease(kW2);
  const std::vector<LeaseTable::Loss> losses = table.worker_lost(kW1);
  ASSERT_THAT(losses, SizeIs(1));
  ASSERT_TRUE(losses[0].death);
  EXPECT_EQ(losses[0].death->life, kW1);
  EXPECT_FALSE(losses[0].death->alone) << "nobody knew";
  table.requeued("t1");
  const Asker w2{.worker_id = "w2", .incarnation = "a", .serves = kServesAll, .others = kNoOthers};
  const Asker w3{.worker_id = "w3", .incarnation = "a", .serves = kServesAll, .others = kNoOthers};
  EXPECT_THAT(table.reserve(w2, {"t2"}, 4), SizeIs(0)) << "it becomes idle first";
  const std::vector<Trial> other = table.reserve(w3, {}, 1);
  ASSERT_THAT(other, SizeIs(1));
  EXPECT_EQ(other[0].id, "t3") << "one worker is enough";
  table.release("t3");
  table.close("t2");
  const std::vector<Trial> alone = table.reserve(w2, {}, 4);
  ASSERT_THAT(alone, SizeIs(1)) << "and nothing beside it";
  EXPECT_EQ(alone[0].id, "t1");
  EXPECT_TRUE(table.grant("t1", kW2, 2, ++token, now));
  EXPECT_THAT(table.reserve(w2, {"t1"}, 4), SizeIs(0)) << "nothing more while it has it";
  table.heartbeat(kW2, {{"t1", 2, token, true, true}}, now);
  const std::vector<LeaseTable::Loss> second = table.worker_lost(kW2);
  ASSERT_THAT(second, SizeIs(1));
  ASSERT_TRUE(second[0].death);
  EXPECT_TRUE(second[0].death->alone);
  EXPECT_TRUE(second[0].death->running);
  table.close("t1");
  EXPECT_THAT(table.reserve(w2, {}, 4), SizeIs(2)) << "afterwards as ever";
}

TEST_F(Leases, ASuspectGoesToAWorkerThatWasNotLostAtItIfThereIsOne) {
  enqueue("t1");
  begin_work(kW1, lease(kW1));
  table.worker_lost(kW1);
  table.requeued("t1");
  const auto others = [](const Needs&, const std::set<std::string>& except) {
    return !except.contains("w2");
  };
  EXPECT_THAT(
      table.reserve({.worker_id = "w1", .incarnation = "b", .serves = kServesAll, .others = others}, {}, 4),
      SizeIs(0));
  EXPECT_THAT(
      table.reserve({.worker_id = "w2", .incarnation = "a", .serves = kServesAll, .others = others}, {}, 4),
      SizeIs(1));
}

TEST_F(Leases, AWorkerThatNeverBecomesIdleIsNotWaitedForWithoutEnd) {
  enqueue("t1");
  begin_work(kW1, lease(kW1));
  table.worker_lost(kW1);
  table.requeued("t1");
  pass(1'000);
  const Asker w2{.worker_id = "w2", .incarnation = "a", .serves = kServesAll, .others = kNoOthers};
  const Asker w3{.worker_id = "w3", .incarnation = "a", .serves = kServesAll, .others = kNoOthers};
  EXPECT_THAT(table.reserve(w2, {"something else"}, 4), SizeIs(0));
  EXPECT_THAT(table.reserve(w3, {}, 4), SizeIs(0)) << "w2 is on its way";
  pass(31'000);
  EXPECT_THAT(table.reserve(w3, {}, 4), SizeIs(1));
}

}  // namespace
}  // namespace tuner
