// kill -9 of a writing process at random moments: every acknowledged record is there afterwards, none twice,
// and the file is sound. The child tells what was acknowledged through a pipe, which outlives it.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "tests/db/store_fixture.h"
#include "tests/random_seed.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

// Adds trials and records for ever; writes each acknowledged trial number to `acknowledged`.
[[noreturn]] void write_until_killed(const std::string& path, int acknowledged) {
  Result<std::unique_ptr<Store>> store = Store::open(path, Store::Mode::kWrite);
  if (!store) ::_exit(3);
  if (!(*store)->job("j1").is_ok() && !(*store)->add_job(job_row("j1")).is_ok()) ::_exit(4);
  const auto work = [&] {
    for (;;) {
      std::vector<TrialRow> batch{trial_row("j1", "a=1"), trial_row("j1", "a=2")};
      if (!(*store)->add_trials(batch).is_ok()) ::_exit(5);
      for (const TrialRow& trial : batch) {
        if (const auto leased = (*store)->lease_trials({trial.id}, "w"); !leased || leased->size() != 1)
          ::_exit(6);
        if (!(*store)->add_records({ok_record(trial.id, {double(trial.seq)})}).is_ok()) ::_exit(7);
        const int64_t seq = trial.seq;
        if (::write(acknowledged, &seq, sizeof seq) != sizeof seq) ::_exit(8);
      }
    }
  };
  std::thread other(work);
  work();
  ::_exit(9);
}

TEST(StoreKill, NoAcknowledgedRecordIsLostOrStoredTwice) {
  TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  const RandomSeed seed(20261120);
  std::mt19937_64 random(seed);
  std::map<int64_t, int> acknowledged;
  const int kills = static_cast<int>(wanted_rounds(100));
  for (int round = 0; round < kills; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe_ends[0]);
      write_until_killed(path, pipe_ends[1]);
    }
    ::close(pipe_ends[1]);
    // Every fourth is killed at a random moment of its start, the others after their first acknowledgement.
    pollfd first{.fd = pipe_ends[0], .events = POLLIN, .revents = 0};
    if (round % 4 != 0) {
      ASSERT_EQ(::poll(&first, 1, 30'000), 1) << "nothing acknowledged within 30 s";
    }
    let_pass(std::chrono::microseconds(random() % 60'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with code " << WEXITSTATUS(status);
    int64_t seq = 0;
    while (::read(pipe_ends[0], &seq, sizeof seq) == sizeof seq) ++acknowledged[seq];
    ::close(pipe_ends[0]);
    if (round % 10 != 0) continue;
    // A reader must manage with what the dead writer left behind, too.
    if (const auto reader = Store::open(path, Store::Mode::kRead); reader.is_ok()) {
      for (const auto& [number, times] : acknowledged) {
        const auto trial = (*reader)->trial(str("t", number));
        ASSERT_TRUE(trial.is_ok()) << trial.message();
        ASSERT_TRUE(trial->record.has_value()) << "trial t" << number << " was acknowledged and is gone";
      }
    } else {
      EXPECT_TRUE(acknowledged.empty()) << reader.message();
    }
  }
  ASSERT_GT(std::ssize(acknowledged), kills) << "the writers hardly got to write";

  const auto store = must_open(path);
  std::map<int64_t, int> stored;
  ASSERT_OK(store->for_each_record("", [&](const TrialWithRecord& t) {
    ++stored[t.trial.seq];
    EXPECT_EQ(t.record->run_ns, std::vector<double>{double(t.trial.seq)});
    return true;
  }));
  for (const auto& [number, times] : acknowledged) {
    EXPECT_EQ(times, 1) << "trial t" << number << " was given out twice";
    EXPECT_EQ(stored[number], 1) << "trial t" << number;
    EXPECT_EQ(store->records(str("t", number))->size(), 1u);
  }
  const auto trials = store->trials("j1");
  ASSERT_TRUE(trials.is_ok()) << trials.message();
  for (const TrialWithRecord& t : *trials)
    EXPECT_EQ(t.record.has_value(), t.trial.state == TrialState::kDone) << t.trial.id;
  const Result<IntegrityReport> whole = store->check_integrity();
  ASSERT_TRUE(whole.is_ok()) << whole.message();
  EXPECT_EQ(whole->faults, 0) << whole->damage.front();
  std::printf("%d kills, %zu records acknowledged, %zu stored\n", kills, acknowledged.size(), stored.size());
}

}  // namespace
}  // namespace tuner
