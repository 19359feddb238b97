// The database takes no results for a while, as on a full disk: nothing measured is lost, no worker is called lost,
// and whoever watches is told why nothing happens.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <set>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/farm_by_hand.h"
#include "tests/tuner/farm_room.h"
#include "tuner/daemon/job_news.h"
#include "tuner/daemon/result_intake.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::SizeIs;

// Another connection makes the database refuse every row of a table, as SQLite itself does where there is no room.
class Refusal {
 public:
  Refusal(std::string database, const std::string& table) : database_(std::move(database)) {
    run(str("CREATE TRIGGER full BEFORE INSERT ON ", table,
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

}  // namespace
}  // namespace tuner
