// The database takes no results for a while, as on a full disk: nothing measured is lost, no worker is called lost,
// and whoever watches is told why nothing happens.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <thread>

#include "tests/tuner/farm_by_hand.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::SizeIs;

class StoreTrouble : public ::testing::Test {
 protected:
  // Another connection makes the database refuse every record, as SQLite itself does where there is no room.
  void full(bool is_full) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(farm.database().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db,
                           is_full ? "CREATE TRIGGER full BEFORE INSERT ON record BEGIN "
                                     "SELECT RAISE(FAIL, 'database or disk is full'); END"
                                   : "DROP TRIGGER full",
                           nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
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
  full(true);
  EXPECT_EQ(send(session, results, 60), 0);
  full(false);
  EXPECT_EQ(send(session, results, 2), 4);
  const std::vector<TrialWithRecord> trials = farm.trials(job);
  ASSERT_THAT(trials, SizeIs(4));
  for (const TrialWithRecord& t : trials) {
    ASSERT_TRUE(t.record.has_value());
    EXPECT_EQ(t.record->attempt, 1) << "measured once: the worker was never lost";
  }
  EXPECT_EQ(farm.state(job), JobState::kFinished);
}

TEST_F(StoreTrouble, IsToldToWhoeverWatchesOnceAndItsEndToo) {
  const std::string job = farm.submit(4);
  const std::string session = farm.enter("w1");
  const v1::SyncRequest results = four_results(session);
  full(true);
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
    for (int i = 0; i < 2'000 && count(text) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(count(text), 1) << text;
  };
  wait_for("results cannot be stored");
  send(session, results, 10);
  EXPECT_EQ(count("database or disk is full"), 1) << "once, with the reason";
  EXPECT_EQ(count("no worker"), 0) << "the workers are well";
  full(false);
  send(session, results, 2);
  farm.work(session);
  watcher.join();
}

}  // namespace
}  // namespace tuner
