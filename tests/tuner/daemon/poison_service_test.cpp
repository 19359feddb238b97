// A config that kills workers: found out on the farm, known to every job, also after a restart. And the
// office of losses alone.
#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <thread>

#include "db/death.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/daemon/farm_room.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/daemon/rooms/loss_office.h"
#include "tuner/daemon/rooms/measure_again.h"
#include "tuner/daemon/rooms/reception.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::HasSubstr;

class PoisonService : public ::testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  // The worker is given one trial, says that it runs it, and is gone; another life of it comes.
  v1::Lease die_at_next(const std::string& worker) {
    v1::SyncReply reply;
    const std::string session = farm.enter(worker, str(worker, "-life-", ++lives_));
    for (int i = 0; i < 10 && reply.leases_size() == 0; ++i) reply = farm.sync(session, 4);
    EXPECT_GE(reply.leases_size(), 1);
    given_ = reply.leases_size();
    if (given_ == 0) return {};
    v1::SyncRequest request;
    for (int i = 0; i < reply.leases_size(); ++i)
      FarmByHand::add_held(reply.leases(i), i == 0 ? v1::RUNNING : v1::WAITING, request);
    farm.sync(session, 0, request);
    farm.clock.now += 1'000;
    farm.enter(worker, str(worker, "-life-", ++lives_));
    farm.coordinator->turn();
    return reply.leases(0);
  }

  FarmByHand farm;
  int given_ = 0;

 private:
  int lives_ = 0;
};

TEST_F(PoisonService, AConfigThatKillsTwoWorkersIsNotSentToAThird) {
  const std::string job = farm.submit(1'150);
  const std::string worker = farm.enter("steady");
  ASSERT_EQ(farm.work(worker, 1'100), 1'100) << "a farm that has measured for a while";

  const v1::Lease killer = die_at_next("w1");
  const v1::Lease again = die_at_next("w2");
  EXPECT_EQ(again.trial_id(), killer.trial_id());
  EXPECT_EQ(given_, 1) << "alone, so that nothing else can have killed it";
  const TrialWithRecord ended = *farm.store->trial(killer.trial_id());
  ASSERT_TRUE(ended.record);
  EXPECT_EQ(ended.record->outcome, Outcome::kDeviceLost);
  EXPECT_THAT(
      ended.record->message,
      HasSubstr("poison, by the ledger of this database: 2 workers were lost while they were running this "
                "config (w1, w2)"));
  EXPECT_EQ(farm.coordinator->metrics().configs_poisoned.value(), 1u);
  farm.work(worker);
  EXPECT_EQ(farm.state(job), JobState::kFinished) << "the search saw a failure and went on";
  for (const TrialWithRecord& t : farm.trials(job)) {
    ASSERT_TRUE(t.record);
    if (t.trial.id == killer.trial_id()) continue;
    EXPECT_NE(t.record->outcome, Outcome::kDeviceLost) << t.trial.id;
  }

  // Every job knows, and so does the next daemon.
  for (const bool restarted : {false, true}) {
    if (restarted) farm.restart();
    const std::string next = farm.submit(1'296, "grid", restarted ? "r3" : "r2");
    farm.work(farm.enter("steady", restarted ? "b" : "a"));
    EXPECT_EQ(farm.state(next), JobState::kFinished);
    int lost = 0;
    for (const TrialWithRecord& t : farm.trials(next)) {
      ASSERT_TRUE(t.record) << t.trial.id;
      if (t.record->outcome != Outcome::kDeviceLost) continue;
      ++lost;
      EXPECT_EQ(t.trial.config, killer.config());
      EXPECT_EQ(t.trial.attempt, 0) << "no worker had it";
      EXPECT_THAT(t.record->message, HasSubstr("(w1, w2)"));
    }
    EXPECT_EQ(lost, 1);
  }
}

TEST_F(PoisonService, AConfigThatTheNextWorkerMeasuresIsCleared) {
  farm.submit(1'150);
  ASSERT_EQ(farm.work(farm.enter("steady"), 1'100), 1'100);
  const v1::Lease suspect = die_at_next("w1");
  ASSERT_EQ(farm.store->deaths()->size(), 1u);
  const std::string next = farm.enter("w2");
  const v1::SyncReply reply = farm.sync(next, 4);
  ASSERT_EQ(reply.leases_size(), 1);
  EXPECT_EQ(reply.leases(0).trial_id(), suspect.trial_id());
  v1::SyncRequest request;
  *request.add_results() = FarmByHand::honest(reply.leases(0));
  farm.sync(next, 0, request);
  EXPECT_TRUE(farm.store->trial(suspect.trial_id())->record);
  ASSERT_EQ(farm.store->deaths()->size(), 2u);
  EXPECT_EQ(farm.store->deaths()->at(1).phase, DeathPhase::kSurvived);
}

// A farm that nobody knows yet, whose workers are killed: two deaths are no proof.
TEST_F(PoisonService, OnAFarmThatIsNotKnownYetTwoDeathsBlameNobody) {
  farm.submit(16);
  const v1::Lease lease = die_at_next("w1");
  EXPECT_EQ(die_at_next("w2").trial_id(), lease.trial_id());
  EXPECT_FALSE(farm.store->trial(lease.trial_id())->record);
  farm.work(farm.enter("steady"));
  ASSERT_TRUE(farm.store->trial(lease.trial_id())->record);
  EXPECT_NE(farm.store->trial(lease.trial_id())->record->outcome, Outcome::kDeviceLost);
}

// The office of losses alone.
class LossOfficeAlone : public testing::FarmRoom {
 protected:
  size_t queued() const { return Locked(farm_)->leases.queued(); }
  std::vector<std::string> told() const {
    std::vector<std::string> lines;
    const std::vector<v1::JobEvent> events = news_.after("j1", 0).value();
    for (const v1::JobEvent& event : events) lines.push_back(event.message());
    return lines;
  }
  LossOffice office_{*store_, farm_, options_, metrics_, news_, wake()};
};

TEST_F(LossOfficeAlone, ALostTrialIsTriedAgainOnceTheStoreSaysSo) {
  LossOffice::Losses losses;
  {
    const Locked farm(farm_);
    losses = farm->leases.worker_lost(life_);
  }
  ASSERT_EQ(losses.size(), 1);
  EXPECT_EQ(row().state, TrialState::kLeased);
  EXPECT_EQ(queued(), 0) << "not before the store knows";
  office_.handle(losses);
  EXPECT_EQ(row().state, TrialState::kQueued);
  EXPECT_EQ(queued(), 1);
  EXPECT_EQ(desk_woken_, 1);
  EXPECT_EQ(told().size(), 1);
  EXPECT_TRUE(records().empty());
}

TEST_F(LossOfficeAlone, ATrialThatIsGivenUpHasOneRecordAndItsSearchHearsOfIt) {
  EXPECT_TRUE(office_.give_up({.trial_id = trial_, .attempt = 1, .message = "too often"}));
  ASSERT_EQ(records().size(), 1);
  EXPECT_EQ(records()[0].outcome, Outcome::kDeviceLost);
  EXPECT_EQ(records()[0].message, "too often");
  EXPECT_FALSE(is_open());
  EXPECT_TRUE(Locked(farm_)->jobs.find("j1")->take_results());
  EXPECT_EQ(searches_woken_, std::vector<std::string>{"j1"});
}

TEST_F(LossOfficeAlone, WhatTheStoreDoesNotTakeStaysLeased) {
  EXPECT_FALSE(office_.give_up({.trial_id = "t99", .attempt = 1, .message = "of no such trial"}));
  EXPECT_TRUE(is_open());
  EXPECT_EQ(metrics_.trials_given_up.value(), 0);
  EXPECT_TRUE(searches_woken_.empty());
}

TEST_F(LossOfficeAlone, JobsHearOfOneMishapInTheOrderOfTheirIds) {
  const std::vector<std::string> jobs{"j5", "j3", "j7",
                                      "j2", "j6", "j4"};  // as they are made, and lie in memory
  LossOffice::Losses losses;
  for (const std::string& id : jobs) {
    const JobRow row{
        .id = id, .tasks = {{testing::kAnalyticKey, testing::kAnalyticTarget}}, .search = "random"};
    ASSERT_TRUE(store_->add_job(row).is_ok());
    const Locked farm(farm_);
    farm->jobs.add(row, 1, clock_.now);
    farm->leases.enqueue({.id = "t of " + id, .job_id = id, .work = {.task = row.tasks[0]}});
    losses.push_back({.trial_id = "t of " + id, .attempt = 1, .retry = true, .message = "lost"});
  }
  office_.handle(losses);
  std::vector<int64_t> order;
  for (const char* const id : {"j2", "j3", "j4", "j5", "j6", "j7"}) {
    const std::vector<v1::JobEvent> events = news_.after(id, 0).value();
    ASSERT_EQ(events.size(), 1);
    order.push_back(events[0].seq());
  }
  EXPECT_THAT(order, ::testing::WhenSorted(::testing::ElementsAreArray(order)));
}

// Workers come: worker "w" has the only trial.
class ReceptionAlone : public LossOfficeAlone {
 protected:
  Status enter(const std::string& life) {
    v1::RegisterRequest request;
    request.set_worker_id("w");
    request.set_incarnation(life);
    request.set_protocol(1);
    request.add_targets(testing::kAnalyticTarget);
    v1::RegisterReply reply;
    return reception_.register_worker(request, &reply, {});
  }
  BuildOffice builds_{farm_, clock_, options_, documents_, [] {}};
  Reception reception_{{farm_, clock_, options_, metrics_, builds_, office_}, wake().desk};
};

TEST_F(ReceptionAlone, WhatAnEarlierLifeOfTheWorkerHeldIsTriedAgain) {
  EXPECT_EQ(enter("2").code(), StatusCode::kAborted) << "the first process is here";
  EXPECT_EQ(row().state, TrialState::kLeased);
  Locked(farm_)->workers.connection_closed("session");
  EXPECT_TRUE(enter("2").is_ok());
  EXPECT_EQ(row().state, TrialState::kQueued);
  EXPECT_EQ(queued(), 1);
  EXPECT_GT(desk_woken_, 0);
}

TEST_F(ReceptionAlone, AWorkerThatDrainsIsToldAndOneThatIsNotThereNamed) {
  v1::DrainRequest request;
  v1::DrainReply reply;
  request.set_worker_id("nobody");
  EXPECT_EQ(reception_.drain(request, &reply).code(), StatusCode::kNotFound);
  EXPECT_EQ(desk_woken_, 0);
  request.set_worker_id("w");
  EXPECT_TRUE(reception_.drain(request, &reply).is_ok());
  EXPECT_EQ(reply.leases(), 1);
  EXPECT_EQ(Locked(farm_)->workers.take_drain("session"), Workers::Drain::kNews);
  EXPECT_EQ(desk_woken_, 1);
}

TEST_F(ReceptionAlone, NobodyRegistersWithADaemonThatStops) {
  {
    const Locked farm(farm_);
    farm->stop_reason = "closing time";
    farm->stopping = true;
  }
  EXPECT_EQ(enter("1").message(), "closing time");
}

// Measurements that somebody waits for: a rerun of the only trial, which has its result.
class MeasureAgainAlone : public testing::FarmRoom {
 protected:
  MeasureAgainAlone() {
    Locked(farm_)->leases.close(trial_);
    MeasureRecord record{.trial_id = trial_, .attempt = 1, .run_ns = {1'000, 1'000, 1'000}};
    record.environment = {.hardware = "formula", .toolchain = "none", .host = "h"};
    record.finished_at_us = 1;
    EXPECT_TRUE(store_->add_records({record}).is_ok());
  }
  Status rerun(const Cancelled& cancelled, v1::MeasureRecord* reply, const Scope& scope = {}) {
    v1::RerunRequest request;
    request.set_trial_id(trial_);
    return again_.rerun(request, reply, cancelled, scope);
  }
  MeasureAgain again_{*store_, farm_, clock_, options_, news_, documents_, wake().desk};
};

TEST_F(MeasureAgainAlone, ARerunIsLeasedAnsweredAndStoredNowhere) {
  const std::jthread worker([&] {
    EXPECT_TRUE(wait_until(std::chrono::seconds(60), [&] {
      const Locked farm(farm_);
      const LeaseTable::Trial* const lease = farm->leases.find(trial_);
      if (lease == nullptr) return false;
      MeasureRecord record{.trial_id = trial_, .attempt = lease->attempt + 1, .run_ns = {700}};
      EXPECT_TRUE(farm->reruns.take(record));
      news_.notify();
      return true;
    }));
  });
  v1::MeasureRecord reply;
  const Status status = rerun([] { return false; }, &reply);
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(reply.run_ns(0), 700);
  EXPECT_GT(desk_woken_, 0);
  EXPECT_EQ(records().size(), 1u);
  EXPECT_FALSE(is_open());
}

TEST_F(MeasureAgainAlone, WhenNobodyMeasuresOrTheCallerGoesNothingStaysLeasable) {
  v1::MeasureRecord reply;
  EXPECT_EQ(rerun([] { return true; }, &reply).code(), StatusCode::kAborted);
  EXPECT_FALSE(is_open());
  const Status late = rerun([&] { return clock_.now += options_.rerun_limit_ms, false; }, &reply);
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.message(), HasSubstr("no worker measured it within 300 s"));
  EXPECT_FALSE(is_open());
  EXPECT_EQ(rerun([] { return false; }, &reply, "other").code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace tuner
