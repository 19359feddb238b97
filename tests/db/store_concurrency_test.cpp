// Many threads at once: every write is there, leases are handed out once, readers see whole commits.
#include <atomic>
#include <set>
#include <thread>

#include "db/sqlite.h"
#include "db/writer.h"
#include "tests/db/store_fixture.h"

namespace tuner {
namespace {

TEST(StoreConcurrency, WritesOfManyThreadsAreAllThereWithDistinctNumbers) {
  TemporaryFolder folder;
  const auto store = must_open(folder.file("t.db"));
  ASSERT_OK(store->add_job(job_row("j1")));
  constexpr int kThreads = 8, kEach = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string id = add_trials(*store, "j1", {str("t=", t, " i=", i)})[0];
        const Status stored = store->add_records({ok_record(id, {double(1 + t * kEach + i)})});
        EXPECT_TRUE(stored.is_ok()) << stored.message();
      }
    });
  std::atomic<bool> stop = false;
  // A reader never sees a trial that is done without its record: both came in one commit.
  std::thread reader([&] {
    const auto view = must_open(folder.file("t.db"), Store::Mode::kRead);
    while (!stop) {
      const auto trials = view->trials("j1");
      ASSERT_TRUE(trials.is_ok()) << trials.message();
      for (const TrialWithRecord& t : *trials)
        EXPECT_EQ(t.record.has_value(), t.trial.state == TrialState::kDone);
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  const auto trials = *store->trials("j1");
  std::set<std::string> ids, configs;
  for (const TrialWithRecord& t : trials) {
    ids.insert(t.trial.id);
    configs.insert(t.trial.config);
  }
  EXPECT_EQ(ids.size(), size_t{kThreads * kEach});
  EXPECT_EQ(configs.size(), size_t{kThreads * kEach});
  EXPECT_EQ(store->best("v1 work", "cpu one")->time_ns, 1);
}

TEST(StoreConcurrency, ATrialWantedByManyIsLeasedToOne) {
  TemporaryFolder folder;
  const auto store = must_open(folder.file("t.db"));
  ASSERT_OK(store->add_job(job_row("j1")));
  std::vector<std::string> configs;
  for (int i = 0; i < 20; ++i) configs.push_back(str("i=", i));
  const auto ids = add_trials(*store, "j1", configs);
  std::atomic<int> leased = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (const std::string& id : ids)
        leased += static_cast<int>(store->lease_trials({id}, str("w", t))->size());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(leased, 20);
}

TEST(StoreConcurrency, AWriteThatFailsDoesNotTakeItsGroupWithIt) {
  TemporaryFolder folder;
  const auto store = must_open(folder.file("t.db"));
  ASSERT_OK(store->add_job(job_row("j1")));
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        std::vector<TrialRow> batch{trial_row("j1", str("t=", t, " i=", i))};
        if (i % 2 == 1) batch.push_back(trial_row("j1", "bad", /*task_index=*/9));
        failures += !store->add_trials(batch).is_ok();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 80);
  EXPECT_EQ(store->trials("j1")->size(), 80u);
}

TEST(StoreConcurrency, WaitingWritesShareACommit) {
  TemporaryFolder folder;
  auto connection = db::Connection::open(folder.file("w.db"), db::Connection::Access::kReadWrite);
  ASSERT_TRUE(connection.is_ok());
  ASSERT_OK((*connection)->exec("CREATE TABLE n (transaction_id INTEGER)"));
  db::Writer writer(*std::move(connection));
  // The first write holds the thread until the others wait; those must then come in one transaction. The busy
  // counter of transactions is read from within: total changes seen before the group's own.
  std::atomic<int> waiting = 0, in_group = 0;
  std::thread first([&] {
    EXPECT_TRUE(writer
                    .write([&](db::Connection&) {
                      while (waiting < 5) std::this_thread::yield();
                      std::this_thread::sleep_for(std::chrono::milliseconds(50));
                      return Status::ok();
                    })
                    .is_ok());
  });
  std::vector<std::thread> others;
  for (int i = 0; i < 5; ++i)
    others.emplace_back([&] {
      ++waiting;
      EXPECT_TRUE(writer
                      .write([&](db::Connection& c) {
                        // Inside the same transaction the rows of the earlier members of the group are
                        // visible though nobody committed.
                        const auto rows = c.one("SELECT count(*) FROM n");
                        in_group =
                            std::max(in_group.load(), static_cast<int>(std::get<int64_t>((*rows)[0])) + 1);
                        return c.run("INSERT INTO n VALUES (1)");
                      })
                      .is_ok());
    });
  first.join();
  for (std::thread& thread : others) thread.join();
  EXPECT_EQ(in_group, 5);
}

}  // namespace
}  // namespace tuner
