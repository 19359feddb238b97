// The database takes no results for a while, as on a full disk: nothing measured is lost, no worker is called
// lost, and whoever watches is told why nothing happens.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <set>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/daemon/farm_room.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/daemon/rooms/job_news.h"
#include "tuner/daemon/rooms/leasing.h"
#include "tuner/daemon/rooms/race_office.h"
#include "tuner/daemon/rooms/result_intake.h"
#include "tuner/daemon/rooms/watch_desk.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::HasSubstr;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;
using ::testing::SizeIs;

// Another connection makes the database refuse every row of a table, as SQLite itself does where there is no
// room.
class Refusal {
 public:
  Refusal(std::string database, const std::string& table, const char* what = "INSERT")
      : database_(std::move(database)) {
    run(str("CREATE TRIGGER full BEFORE ", what, " ON ", table,
            " BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"));
  }
  void end() const { run("DROP TRIGGER full"); }

 private:
  void run(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(database_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  std::string database_;
};

class StoreTrouble : public ::testing::Test {
 protected:
  v1::SyncRequest four_results(const std::string& session) {
    v1::SyncRequest results;
    const v1::SyncReply given = farm.sync(session, 4);
    for (const v1::Lease& lease : given.leases()) *results.add_results() = FarmByHand::honest(lease);
    return results;
  }
  // Sends the results every two seconds of the farm's clock, for so long. Returns how many were acknowledged.
  int send(const std::string& session, const v1::SyncRequest& results, int seconds) {
    int acknowledged = 0;
    for (int s = 0; s < seconds; s += 2) {
      acknowledged += farm.sync(session, 0, results).acks_size();
      farm.pass(2'000);
    }
    return acknowledged;
  }
  FarmByHand farm;
};

TEST_F(StoreTrouble, LosesNoLeaseAndNoResult) {
  const std::string job = farm.submit(4);
  const std::string session = farm.enter("w1");
  const v1::SyncRequest results = four_results(session);
  ASSERT_EQ(results.results_size(), 4);
  const Refusal full(farm.database(), "record");
  EXPECT_EQ(send(session, results, 60), 0);
  full.end();
  EXPECT_EQ(send(session, results, 2), 4);
  const std::vector<TrialWithRecord> trials = farm.trials(job);
  ASSERT_THAT(trials, SizeIs(4));
  for (const TrialWithRecord& t : trials) {
    ASSERT_TRUE(t.record.has_value());
    EXPECT_EQ(t.record->attempt, 1) << "measured once";
  }
  const auto events = farm.store->events(job, 0, 100).value();
  for (const auto& [seq, text] : events)
    EXPECT_EQ(text.find("re-queued"), std::string::npos) << "the worker was never lost: " << text;
  EXPECT_EQ(farm.state(job), JobState::kFinished);
}

// Four knobs of two values: a search that runs out of configs has measured each of them, also what it had
// proposed while nothing could be stored.
TEST(StoreTroubleOfProposals, FailsNoJobAndLosesNoConfig) {
  FarmByHand farm(2);
  const Refusal at_first(farm.database(), "trial");
  const std::string job = farm.submit(1'000, "grid");
  farm.pass(20'000);
  EXPECT_EQ(farm.state(job), JobState::kRunning);
  EXPECT_THAT(farm.trials(job), SizeIs(0));
  at_first.end();
  farm.pass(2'000);
  farm.work(farm.enter("w1"));
  EXPECT_EQ(farm.state(job), JobState::kFinished);
  std::set<std::pair<std::string, std::string>> configs;
  const std::vector<TrialWithRecord> trials = farm.trials(job);
  for (const TrialWithRecord& t : trials)
    if (t.record) configs.emplace(t.trial.template_name, t.trial.config);
  EXPECT_EQ(configs.size(), 16u);
}

TEST_F(StoreTrouble, IsToldToWhoeverWatchesOnceAndItsEndToo) {
  const std::string job = farm.submit(4);
  const std::string session = farm.enter("w1");
  const v1::SyncRequest results = four_results(session);
  const Refusal full(farm.database(), "record");
  send(session, results, 10);

  std::mutex mutex;
  std::vector<std::string> told;
  const auto count = [&](const char* text) {
    const std::lock_guard lock(mutex);
    return std::ranges::count_if(told, [&](const std::string& t) { return t.find(text) != t.npos; });
  };
  std::thread watcher([&] {
    v1::WatchRequest request;
    request.set_job_id(job);
    EXPECT_TRUE(farm.coordinator
                    ->watch(
                        request,
                        [&](const v1::JobEvent& event) {
                          const std::lock_guard lock(mutex);
                          if (!event.message().empty()) told.push_back(event.message());
                          return true;
                        },
                        [] { return false; })
                    .is_ok());
  });
  const auto wait_for = [&](const char* text) {
    wait_until(std::chrono::seconds(30), [&] { return count(text) > 0; });
    EXPECT_EQ(count(text), 1) << text;
  };
  wait_for("results cannot be stored");
  send(session, results, 10);
  EXPECT_EQ(count("database or disk is full"), 1) << "once, with the reason";
  EXPECT_EQ(count("no worker"), 0) << "the workers are well";
  full.end();
  send(session, results, 2);
  farm.work(session);
  watcher.join();
}

// The news alone: a farm's state and a store, no coordinator.
class JobNewsAlone : public testing::EmptyFarm {
 protected:
  JobNews news_{*store_, farm_, clock_, metrics_};
};

TEST_F(JobNewsAlone, WhoIsWokenFindsTheEventInTheStore) {
  const JobRow row{.id = "j1", .tasks = {{"v1 work", "cpu"}}, .search = "random"};
  ASSERT_TRUE(store_->add_job(row).is_ok());
  Job job(row, 1, clock_.now);
  const int64_t seen = job.event_version();
  const std::jthread search([&] { news_.tell(job, "it begins"); });
  {
    Locked farm(farm_);
    ASSERT_TRUE(news_.wait(farm, std::chrono::seconds(60), [&] { return job.event_version() != seen; }));
  }
  const std::vector<v1::JobEvent> events = news_.after("j1", 0).value();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].message(), "it begins");
}

TEST_F(JobNewsAlone, TroubleOfTheStoreIsToldUntilCommitsHaveSucceededForAWhile) {
  const auto trouble = [&] { return std::string(Locked(farm_)->store_trouble.now(clock_.now)); };
  news_.note_commit(Status::ok());
  EXPECT_EQ(trouble(), "");
  clock_.now += 10;
  news_.note_commit(failed("the disk is full"));
  EXPECT_EQ(trouble(), "the disk is full");
  clock_.now += 60'000;
  EXPECT_EQ(trouble(), "the disk is full") << "nothing has been stored since";
  news_.note_commit(Status::ok());
  EXPECT_EQ(trouble(), "");
}

// The intake of results alone.
class ResultIntakeAlone : public testing::FarmRoom {
 protected:
  // The worker brings its result so many times in one Sync. Returns how many acknowledgements it gets.
  int bring(int times, int attempt = 1) {
    v1::SyncRequest request;
    request.set_session("session");
    for (int i = 0; i < times; ++i) {
      v1::MeasureRecord& result = *request.add_results();
      result.set_trial_id(trial_);
      result.set_attempt(attempt);
      result.set_outcome(v1::OK);
      for (const double ns : {900, 1'000, 1'100}) result.add_run_ns(ns);
      result.mutable_environment()->set_hardware("h");
      result.mutable_environment()->set_harness_abi(1);
    }
    v1::SyncReply reply;
    SyncCalls calls;
    calls.push_back(std::make_unique<SyncCall>());
    calls[0]->request = &request;
    calls[0]->reply = &reply;
    calls[0]->life = life_;
    clock_.now += 1'000;
    intake_.accept(calls);
    return reply.acks_size();
  }
  Referee referee_{*store_, farm_, clock_, options_, metrics_};
  LossOffice losses_{*store_, farm_, options_, metrics_, news_, wake()};
  ResultIntake intake_{{*store_, farm_, clock_, options_, metrics_, referee_, losses_, news_}, wake()};
};

TEST_F(ResultIntakeAlone, AResultIsStoredOnceHoweverOftenItComesAndIsAcknowledgedEachTime) {
  EXPECT_EQ(bring(2), 2);
  EXPECT_THAT(records(), SizeIs(1));
  EXPECT_FALSE(is_open());
  EXPECT_THAT(searches_woken_, SizeIs(1));
  EXPECT_EQ(bring(1), 1) << "its acknowledgement got lost";
  EXPECT_THAT(records(), SizeIs(1));
  EXPECT_THAT(searches_woken_, SizeIs(1)) << "nothing new";
}

TEST_F(ResultIntakeAlone, WhatTheDiskRefusesIsNotAcknowledgedAndStaysTheWorkersUntilItComesAgain) {
  const Refusal refusal(folder_.file("db"), "record");
  EXPECT_EQ(bring(1), 0);
  EXPECT_TRUE(is_open());
  EXPECT_TRUE(searches_woken_.empty());
  EXPECT_EQ(metrics_.results_not_stored.value(), 1);
  EXPECT_NE(Locked(farm_)->store_trouble.now(clock_.now), "");
  refusal.end();
  EXPECT_EQ(bring(1), 1);
  EXPECT_THAT(records(), SizeIs(1));
  EXPECT_FALSE(is_open());
}

TEST_F(ResultIntakeAlone, AnAttemptThatTheWorkerNeverHadIsAcknowledgedAndStoredNowhere) {
  EXPECT_EQ(bring(1, /*attempt=*/2), 1);
  EXPECT_TRUE(records().empty());
  EXPECT_TRUE(is_open());
}

// What Syncs are given, of a farm's state and a store alone.
class LeasingAlone : public testing::FarmRoom {
 protected:
  LeasingAlone() {
    request_.set_session("session");
    call_ = {.id = 1, .request = &request_, .reply = &reply_, .slots = 2, .life = life_};
  }
  size_t queued() const { return Locked(farm_)->leases.queued(); }

  BuildOffice builds_{farm_, clock_, options_, documents_, [] {}};
  Leasing leasing_{{*store_, farm_, clock_, metrics_, news_, builds_}};
  v1::SyncRequest request_;
  v1::SyncReply reply_;
  SyncCall call_;
};

TEST_F(LeasingAlone, AWorkerGetsAsManyAsItHasRoomForAndTheStoreSaysWhoseTheyAre) {
  for (const char* config : {"b=1", "b=2", "b=3"}) queue_trial(config);
  leasing_.lease_to({&call_});
  ASSERT_EQ(reply_.leases_size(), 2);
  EXPECT_EQ(queued(), 1);
  for (const v1::Lease& lease : reply_.leases()) {
    const TrialRow row = store_->trial(lease.trial_id())->trial;
    EXPECT_EQ(row.state, TrialState::kLeased);
    EXPECT_EQ(row.worker_id, life_.worker_id);
    EXPECT_EQ(row.attempt, lease.attempt());
    EXPECT_EQ(row.fencing, lease.fencing());
  }
}

TEST_F(LeasingAlone, WhatTheDiskDoesNotTakeAsLeasedIsSentToNobodyAndWaitsOn) {
  queue_trial("b=1");
  const Refusal refusal(folder_.file("db"), "trial", "UPDATE");
  leasing_.lease_to({&call_});
  EXPECT_EQ(reply_.leases_size(), 0);
  EXPECT_EQ(queued(), 1);
  EXPECT_NE(Locked(farm_)->store_trouble.now(clock_.now), "");
  refusal.end();
  leasing_.lease_to({&call_});
  EXPECT_EQ(reply_.leases_size(), 1);
}

TEST_F(LeasingAlone, ALeaseWhoseReplyGotLostIsGivenAgainInPlaceOfANewOne) {
  leasing_.take_heartbeat(*Locked(farm_), call_, /*first=*/false);
  EXPECT_EQ(reply_.leases_size(), 0) << "a call that waits has said before what it holds";
  leasing_.take_heartbeat(*Locked(farm_), call_, /*first=*/true);
  ASSERT_EQ(reply_.leases_size(), 1);
  EXPECT_EQ(reply_.leases(0).trial_id(), trial_);
  EXPECT_EQ(reply_.leases(0).attempt(), 1);
  EXPECT_EQ(call_.slots, 1);
}

TEST_F(LeasingAlone, AWorkerIsToldOfALeaseThatOthersHaveClosed) {
  call_.held = {{.trial_id = trial_, .attempt = 1, .fencing = 1}};
  leasing_.take_heartbeat(*Locked(farm_), call_, /*first=*/true);
  EXPECT_EQ(reply_.revoked_size(), 0);
  Locked(farm_)->leases.close(trial_);
  leasing_.take_heartbeat(*Locked(farm_), call_, /*first=*/false);
  ASSERT_EQ(reply_.revoked_size(), 1);
  EXPECT_EQ(reply_.revoked(0).trial_id(), trial_);
}

TEST_F(LeasingAlone, TheBestTimeOfATaskIsToldOnceAndStandsInEachOfItsLeases) {
  queue_trial("b=1");
  queue_trial("b=2");
  leasing_.lease_to({&call_});
  ASSERT_EQ(reply_.leases_size(), 2);
  {
    const Locked farm(farm_);
    leasing_.add_best_times(*farm, call_);
    EXPECT_EQ(reply_.best_size(), 0) << "nothing is known";
    farm->jobs.find("j1")->take_progress({}, {}, {1'500}, 1, clock_.now);
    leasing_.add_best_times(*farm, call_);
  }
  ASSERT_EQ(reply_.best_size(), 1);
  EXPECT_EQ(reply_.best(0).best_ns(), 1'500);
  for (const v1::Lease& lease : reply_.leases()) EXPECT_EQ(lease.best_ns(), 1'500);
}

// The office of races, of a farm's state and a store alone: job j1 has had its trials, all of them right.
class RaceOfficeAlone : public testing::FarmRoom {
 protected:
  RaceOfficeAlone() {
    std::vector<TrialRow> rows;
    for (const char* config : {"a=2", "a=3"})
      rows.push_back({.job_id = "j1", .template_name = "t", .config = config});
    EXPECT_TRUE(store_->add_trials(rows).is_ok());
    double ns = 1'000;
    for (const std::string& id : {trial_, rows[0].id, rows[1].id}) {
      MeasureRecord record{.trial_id = id, .attempt = 1, .run_ns = {ns, ns, ns}};
      record.environment = {.hardware = "formula", .toolchain = "none", .host = "h"};
      record.finished_at_us = 1;
      EXPECT_TRUE(store_->add_records({record}).is_ok());
      ns += 1;
    }
    const Locked farm(farm_);
    farm->leases.close(trial_);
    farm->started_ms = clock_.now - options_.race_wait_ms - 1;
    run_.job = farm->jobs.find("j1");
    run_.race = options_.race;
  }
  void enter_racer() {
    EXPECT_TRUE(Locked(farm_)->workers.enter(
        "racer", {.life = {"r", "1"}, .targets = {kAnalyticTarget}, .races = true}, clock_.now));
  }
  size_t queued() const { return Locked(farm_)->leases.queued(); }
  std::vector<OpenRaceRow> open_races() const { return store_->open_races("j1").value(); }
  std::string last_event() const {
    const std::vector<v1::JobEvent> events = news_.after("j1", 0).value();
    return events.empty() ? "" : events.back().message();
  }
  RaceOffice office(Guarded<FarmState>& farm) {
    return RaceOffice({*store_, farm, clock_, options_, news_, answers_}, wake());
  }

  const Answers answers_{*store_, nullptr};
  tuner::Run run_;
};

TEST_F(RaceOfficeAlone, ATaskRacesOnceAndItsRaceIsStoredWithTheFinalistsThatTheLeaseHas) {
  enter_racer();
  RaceOffice races = office(farm_);
  races.end_task(run_, 0);
  EXPECT_EQ(last_event(), "task 1: 3 finalists race");
  EXPECT_EQ(desk_woken_, 1);
  ASSERT_THAT(open_races(), SizeIs(1));
  const OpenRaceRow row = open_races()[0];
  ASSERT_EQ(queued(), 1);
  {
    const Locked farm(farm_);
    const LeaseTable::Trial* const lease = farm->leases.find(row.id);
    ASSERT_NE(lease, nullptr);
    EXPECT_EQ(lease->work.kind, WorkKind::kRace);
    std::vector<std::string> leased;
    for (const TrialRow& finalist : lease->work.finalists) leased.push_back(finalist.id);
    EXPECT_EQ(leased, row.finalists);
    EXPECT_EQ(leased.front(), trial_) << "the fastest comes first";
  }
  races.end_task(run_, 0);
  EXPECT_THAT(open_races(), SizeIs(1));
  EXPECT_EQ(queued(), 1);
}

TEST_F(RaceOfficeAlone, WhereNobodyRacesOrNoTimeIsLeftTheTrialsTimesStand) {
  RaceOffice races = office(farm_);
  races.end_task(run_, 0);
  EXPECT_THAT(last_event(), HasSubstr("not raced: no worker here can"));
  enter_racer();
  run_.race.limit_s = 0;
  races.end_task(run_, 0);
  EXPECT_THAT(last_event(), HasSubstr("not raced: the time limit"));
  EXPECT_EQ(queued(), 0);
  EXPECT_THAT(open_races(), SizeIs(0));
}

TEST_F(RaceOfficeAlone, ARaceThatTheDiskDoesNotTakeIsGivenToNobodyAndItsTaskSaysWhy) {
  enter_racer();
  const Refusal refusal(folder_.file("db"), "open_race");
  office(farm_).end_task(run_, 0);
  EXPECT_EQ(queued(), 0);
  EXPECT_TRUE(Locked(farm_)->races.of_job("j1").empty());
  EXPECT_THAT(last_event(), HasSubstr("database or disk is full"));
}

TEST_F(RaceOfficeAlone, AfterARestartTheStoredRaceGoesOnOnce) {
  enter_racer();
  office(farm_).end_task(run_, 0);
  Guarded<FarmState> anew{options_};
  Locked(anew)->jobs.add(run_.job->row(), 1, clock_.now);
  RaceOffice races = office(anew);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(races.resume_races("j1").is_ok());
    const Locked farm(anew);
    EXPECT_EQ(farm->leases.queued(), 1);
    EXPECT_THAT(farm->races.of_job("j1"), SizeIs(1));
  }
  races.end_open_races("j1");
  EXPECT_THAT(open_races(), SizeIs(0)) << "its job has ended: nobody would go on with it";
}

TEST_F(RaceOfficeAlone, WhatNoWorkerHasTakenWhenTheTimeIsOverIsWithdrawnAndItsTaskTold) {
  enter_racer();
  RaceOffice races = office(farm_);
  run_.time_limit = TimeLimit(/*limit_s=*/10, clock_.now);
  races.end_task(run_, 0);
  races.step_races(run_);
  EXPECT_EQ(queued(), 1) << "there is time";
  clock_.now += 10'000;
  EXPECT_TRUE(Locked(farm_)->workers.begin_sync("racer", 1, clock_.now));
  races.step_races(run_);
  EXPECT_EQ(queued(), 0);
  EXPECT_THAT(open_races(), SizeIs(0));
  EXPECT_THAT(last_event(), HasSubstr("its race has no result (no worker took it within the time limit)"));
}

// Who watches, of a farm's state and a store alone. Job j1 is known here.
class WatchDeskAlone : public testing::FarmRoom {
 protected:
  // What a reader hears who goes after `most` events.
  std::vector<v1::JobEvent> heard(const Status& expected, size_t most = 100, const std::string& id = "j1",
                                  const Scope& scope = {}) {
    std::vector<v1::JobEvent> events;
    v1::WatchRequest request;
    request.set_job_id(id);
    const Status status = watch_.watch(
        request, [&](const v1::JobEvent& event) { return events.push_back(event), events.size() < most; },
        [] { return false; }, scope);
    EXPECT_EQ(status.code(), expected.code()) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(expected.message()));
    return events;
  }
  WatchDesk watch_{*store_, farm_, clock_, news_};
};

TEST_F(WatchDeskAlone, TellsWhatWasStoredInItsOrderAndThenHowTheJobEnded) {
  const std::shared_ptr<Job> job = Locked(farm_)->jobs.find("j1");
  news_.tell(*job, "first");
  news_.tell(*job, "second");
  ASSERT_TRUE(store_->set_job_state("j1", JobState::kFinished, "all done").is_ok());
  {
    const Locked farm(farm_);
    job->set_state(JobState::kFinished);
  }
  const std::vector<v1::JobEvent> events = heard(Status::ok());
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events[0].message(), "first");
  EXPECT_EQ(events[1].message(), "second");
  EXPECT_EQ(events.back().message(), "all done");
  EXPECT_EQ(events.back().state(), v1::FINISHED);
}

TEST_F(WatchDeskAlone, EndsWithItsReaderWithTheDaemonAndForWhomTheJobIsNotThere) {
  const std::shared_ptr<Job> job = Locked(farm_)->jobs.find("j1");
  news_.tell(*job, "first");
  EXPECT_THAT(heard(Status(StatusCode::kAborted, "the reader has gone"), 1), SizeIs(1));
  EXPECT_THAT(heard(not_found("is not one of tenant other"), 1, "j1", "other"), SizeIs(0));
  ASSERT_TRUE(
      store_->add_job({.id = "j2", .tasks = {{kAnalyticKey, kAnalyticTarget}}, .search = "random"}).is_ok());
  EXPECT_THAT(heard(not_found("no daemon runs it. Submit its file again"), 1, "j2"), SizeIs(0));
  {
    const Locked farm(farm_);
    farm->stop_reason = "closing time";
    farm->stopping = true;
  }
  EXPECT_THAT(heard(unavailable("closing time")), SizeIs(1));
}

}  // namespace
}  // namespace tuner
