// A worker that lies about a race: what cannot be decides nothing, and another worker races again. And the
// referee alone, who says which results are believed.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <functional>

#include "db/quarantine.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/daemon/farm_room.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/daemon/rooms/referee.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;

// The finalist at `winner` takes 500 ns, the others 600.
v1::RaceResult raced(const v1::Lease& lease, int winner) {
  v1::RaceResult r;
  r.set_race_id(lease.trial_id());
  r.set_attempt(lease.attempt());
  for (int i = 0; i < lease.finalists_size(); ++i) {
    v1::RaceFinalist* const f = r.add_finalists();
    f->set_trial_id(lease.finalists(i).trial_id());
    for (int process = 0; process < 3; ++process) {
      f->add_samples_ns(i == winner ? 500 : 600);
      f->add_sentinel_ns(250);
      f->add_process(process);
    }
  }
  r.set_winner(lease.finalists(winner).trial_id());
  r.add_tie_set(r.winner());
  r.set_time_ns(500);
  r.set_time_low_ns(495);
  r.set_time_high_ns(505);
  r.set_ratio(2);
  r.set_ratio_low(1.98);
  r.set_ratio_high(2.02);
  r.set_certified(true);
  *r.mutable_options() = lease.race();
  to_proto(Environment{.hardware = "formula", .toolchain = "none", .host = "h"}, r.mutable_environment());
  return r;
}

enum class Sender { kHolder, kOther };
enum class Fate { kQuarantined, kRefused };
struct RaceLie {
  const char* name;
  Sender sender;
  Fate fate;
  std::function<void(v1::RaceResult&)> tell;
};

const std::vector<RaceLie>& lies() {
  using enum Sender;
  using enum Fate;
  static const std::vector<RaceLie> all = {
      {"a race that it does not hold", kOther, kRefused, [](auto&) {}},
      {"a race that it does not hold, under the holder's name", kOther, kRefused,
       [](auto& r) { r.mutable_environment()->set_worker_id("holder"); }},
      {"attempt 999", kHolder, kRefused, [](auto& r) { r.set_attempt(999); }},
      {"another life", kHolder, kRefused,
       [](auto& r) { r.mutable_environment()->set_worker_incarnation("0"); }},
      {"a failure of a race that it does not hold", kOther, kRefused,
       [](auto& r) { r.set_error("it went wrong"); }},
      {"0.001 ns", kHolder, kQuarantined,
       [](auto& r) {
         r.mutable_finalists(1)->set_samples_ns(0, 0.001);
         r.set_time_ns(0.001);
         r.set_time_low_ns(0.001);
       }},
      {"a winner's time that none of its samples has", kHolder, kQuarantined,
       [](auto& r) { r.set_time_ns(400), r.set_time_low_ns(395); }},
      {"an interval reversed", kHolder, kQuarantined,
       [](auto& r) { r.set_time_low_ns(505), r.set_time_high_ns(495); }},
      {"a finalist that was not given", kHolder, kQuarantined,
       [](auto& r) {
         r.mutable_finalists(0)->set_trial_id("t1"), r.set_winner("t1"), r.set_tie_set(0, "t1");
       }},
      {"samples longer than the race", kHolder, kQuarantined,
       [](auto& r) { r.mutable_finalists(0)->set_samples_ns(0, 1e15); }},
      {"a default beyond the machine", kHolder, kQuarantined, [](auto& r) { r.set_default_time_ns(1e-3); }},
  };
  return all;
}

class RaceLies : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }
};

TEST_P(RaceLies, DecideNothing) {
  const RaceLie& lie = lies().at(GetParam());
  SCOPED_TRACE(lie.name);
  FarmByHand farm;
  const std::string job = farm.submit(40);
  // The first trials become t1 and so on; none of the first eight is fast enough to race at once with the
  // rest.
  const std::string holder = farm.enter("holder", "1", /*races=*/true),
                    other = farm.enter("other", "1", true);
  v1::Lease race;
  v1::SyncRequest request;
  for (int i = 0; i < 100 && race.finalists_size() == 0; ++i) {
    farm.clock.now += 10;
    const v1::SyncReply reply = farm.sync(holder, 8, std::exchange(request, {}));
    for (const v1::Lease& lease : reply.leases())
      if (lease.finalists_size() > 0)
        race = lease;
      else
        *request.add_results() = FarmByHand::honest(lease);
  }
  ASSERT_GT(race.finalists_size(), 1);
  for (const v1::RaceCandidate& c : race.finalists()) ASSERT_NE(c.trial_id(), "t1");
  const TunedConfig before = farm.store->best(kAnalyticKey, kAnalyticTarget).value();

  v1::RaceResult lied = raced(race, 1);
  lie.tell(lied);
  v1::SyncRequest told;
  *told.add_races() = lied;
  farm.clock.now += 100;
  EXPECT_EQ(farm.sync(lie.sender == Sender::kHolder ? holder : other, 0, told).acks_size(), 1);
  EXPECT_TRUE(farm.store->races(job)->empty());
  EXPECT_EQ(farm.store->best(kAnalyticKey, kAnalyticTarget)->trial_id, before.trial_id);
  EXPECT_EQ(farm.store->best(kAnalyticKey, kAnalyticTarget)->time_ns, before.time_ns);
  EXPECT_EQ(farm.store->open_races(job)->size(), 1u) << "it is still to be run";
  EXPECT_EQ(farm.store->quarantine(race.trial_id())->size(), lie.fate == Fate::kQuarantined ? 1u : 0u);

  // Whoever has it now races it: the honest holder, or another worker than the one that lied.
  v1::Lease next = race;
  std::string racer = holder;
  if (lie.fate == Fate::kQuarantined) {
    EXPECT_EQ(farm.sync(holder, 4).leases_size(), 0) << "another worker has it first";
    const v1::SyncReply again = farm.sync(other, 4);
    ASSERT_EQ(again.leases_size(), 1);
    next = again.leases(0);
    racer = other;
    EXPECT_EQ(next.trial_id(), race.trial_id());
    EXPECT_EQ(next.attempt(), 2);
  }
  v1::SyncRequest honest;
  *honest.add_races() = raced(next, 0);
  farm.clock.now += 100;
  farm.sync(racer, 0, honest);
  ASSERT_EQ(farm.store->races(job)->size(), 1u);
  EXPECT_EQ(farm.store->races(job)->at(0).winner_trial_id, race.finalists(0).trial_id());
  EXPECT_EQ(farm.store->races(job)->at(0).environment.worker_id, racer == holder ? "holder" : "other");
  EXPECT_EQ(farm.state(job), JobState::kFinished);
}

std::string name_of(const ::testing::TestParamInfo<size_t>& info) {
  std::string name;
  for (const char c : std::string(lies().at(info.param).name)) name += std::isalnum(c) != 0 ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, RaceLies, ::testing::Range(size_t{0}, lies().size()), name_of);

TEST(BeliefInRaces, ARaceSurvivesARestartAndIsTakenFromTheLifeThatHadIt) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  const std::string job = farm.submit(24);
  const std::string holder = farm.enter("holder", "1", true);
  v1::Lease race;
  v1::SyncRequest request;
  for (int i = 0; i < 100 && race.finalists_size() == 0; ++i) {
    const v1::SyncReply reply = farm.sync(holder, 8, std::exchange(request, {}));
    for (const v1::Lease& lease : reply.leases())
      if (lease.finalists_size() > 0)
        race = lease;
      else
        *request.add_results() = FarmByHand::honest(lease);
  }
  ASSERT_GT(race.finalists_size(), 0);
  farm.restart();
  v1::SyncRequest result;
  *result.add_races() = raced(race, 0);
  EXPECT_EQ(farm.sync(farm.enter("thief", "1", true), 0, result).acks_size(), 1);
  EXPECT_TRUE(farm.store->races(job)->empty());
  farm.sync(farm.enter("holder", "1", true), 0, result);
  EXPECT_EQ(farm.store->races(job)->size(), 1u);
  spdlog::set_level(spdlog::level::info);
}

// The referee alone: a farm's state and a store, no coordinator, no thread. Worker "w" has attempt 1 of trial
// "t1".
class RefereeAlone : public testing::EmptyFarm {
 protected:
  RefereeAlone() {
    const Locked farm(farm_);
    EXPECT_TRUE(farm->workers.enter("session", {.life = life_, .targets = {kAnalyticTarget}}, clock_.now));
    farm->leases.enqueue({.id = "t1",
                          .job_id = "j1",
                          .work = {.task = {.workload_key = kAnalyticKey, .target = kAnalyticTarget}}});
    const LeaseTable::Asker asker{.worker_id = life_.worker_id,
                                  .incarnation = life_.incarnation,
                                  .serves = [](const Needs&) { return true; },
                                  .others = [](const Needs&, const std::set<std::string>&) { return false; }};
    EXPECT_EQ(farm->leases.reserve(asker, {}, 1).size(), 1);
    EXPECT_TRUE(farm->leases.grant("t1", life_, 1, 1, clock_.now));
    request_.set_session("session");
    call_.request = &request_;
    call_.reply = &reply_;
    call_.life = life_;
    clock_.now += 5'000;
  }
  Incoming result(int attempt, double ns) {
    Incoming result{.call = &call_};
    result.record.trial_id = "t1";
    result.record.attempt = attempt;
    result.record.run_ns = {ns, ns, ns};
    result.record.cpu_ns = result.record.run_ns;
    return result;
  }
  std::vector<QuarantineRow> quarantine() const { return store_->quarantine("").value(); }

  const WorkerLife life_{"w", "1"};
  Referee referee_{*store_, farm_, clock_, options_, metrics_};
  v1::SyncRequest request_;
  v1::SyncReply reply_;
  SyncCall call_;
  Referee::Losses losses_;
};

TEST_F(RefereeAlone, BelievesWhoHadTheAttemptAndSaysWhatItWasMeasuredUnder) {
  Incoming own = result(1, 1'000);
  const Result<bool> its = referee_.is_of_its_sender(own);
  EXPECT_TRUE(its && *its);
  EXPECT_EQ(own.record.environment.worker_id, "w") << "whose it is the session says";
  EXPECT_TRUE(own.claim.current);
  EXPECT_EQ(own.claim.held_ms, 5'000);
  EXPECT_FALSE(referee_.take_impossible(own, losses_));
  EXPECT_EQ(reply_.acks_size(), 0) << "it is not stored yet";
  EXPECT_TRUE(losses_.empty());
}

TEST_F(RefereeAlone, AResultOfAnAttemptThatItsSenderDidNotHaveIsAcknowledgedAndCountsNowhere) {
  Incoming later = result(2, 1'000), others = result(1, 1'000), unknown = result(1, 1'000);
  others.record.environment.worker_id = "somebody else";
  unknown.record.trial_id = "t9";
  for (Incoming* const r : {&later, &others, &unknown}) {
    const Result<bool> its = referee_.is_of_its_sender(*r);
    EXPECT_TRUE(its && !*its);
  }
  EXPECT_EQ(reply_.acks_size(), 3) << "else they come again and again";
  EXPECT_EQ(metrics_.results_not_leased.value(), 3);
  EXPECT_NE(Locked(farm_)->leases.find("t1"), nullptr) << "the trial is still to be measured";
}

TEST_F(RefereeAlone, WhatCannotBeIsKeptForPeopleAndItsLeaseGoesToAnotherWorker) {
  Incoming lie = result(1, 0.001);
  ASSERT_TRUE(referee_.is_of_its_sender(lie).value());
  EXPECT_TRUE(referee_.take_impossible(lie, losses_));
  ASSERT_EQ(quarantine().size(), 1);
  EXPECT_EQ(quarantine()[0].worker_id, "w");
  EXPECT_EQ(quarantine()[0].lease_id, "t1");
  ASSERT_EQ(losses_.size(), 1);
  EXPECT_EQ(losses_[0].trial_id, "t1");
  EXPECT_TRUE(losses_[0].retry);
  EXPECT_EQ(reply_.acks_size(), 1);
  EXPECT_EQ(metrics_.results_quarantined.value(), 1);
}

}  // namespace
}  // namespace tuner
