// Many threads at once: every write is there, leases are handed out once, readers see whole commits.
#include <atomic>
#include <set>
#include <thread>

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

// Two threads write as fast as they can while it is copied again and again.
TEST(StoreConcurrency, ABackupIsOneMomentOfADatabaseThatIsWritten) {
  TemporaryFolder folder;
  const auto store = must_open(folder.file("t.db"));
  ASSERT_OK(store->add_job(job_row("j1")));
  std::atomic<bool> stop = false;
  std::atomic<int> written = 0;
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const std::string id = add_trials(*store, "j1", {str("t=", t, " i=", i)})[0];
        EXPECT_TRUE(store->add_records({ok_record(id, {1.0 + i})}).is_ok());
        ++written;
      }
    });
  for (int copy = 0; copy < 5; ++copy) {
    while (written < 20 * (copy + 1)) std::this_thread::yield();
    const int before = written;
    const std::string path = folder.file(str("copy", copy));
    const auto view = must_open(folder.file("t.db"), Store::Mode::kRead);
    ASSERT_OK(view->backup(path));
    const auto kept = must_open(path, Store::Mode::kWrite);
    const Result<IntegrityReport> checked = kept->check_integrity();
    ASSERT_TRUE(checked.is_ok()) << checked.message();
    EXPECT_EQ(checked->faults, 0);
    int records = 0;
    const std::vector<TrialWithRecord> trials = *kept->trials("j1");
    for (const TrialWithRecord& t : trials) {
      EXPECT_EQ(t.record.has_value(), t.trial.state == TrialState::kDone) << "both came in one commit";
      records += t.record ? 1 : 0;
    }
    EXPECT_GE(records, before) << "all that was acknowledged before it began";
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
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

}  // namespace
}  // namespace tuner
