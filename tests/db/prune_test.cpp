// Pruning: what is removed, what stays, and that names, answers, usage and outcomes stay as they were; also
// when it is killed, and beside a daemon that writes.
#include "db/prune.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "db/exchange/export_file.h"
#include "db/exchange/import_file.h"
#include "tests/db/store_fixture.h"
#include "tests/random_seed.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using testing::ElementsAre;

const JobRow::Task kTask{.workload_key = "v1 work", .target = "cpu one"};

// --- the rules ---

PruneCandidate ranked(int64_t id, double time_ns, const std::string& group = "g") {
  return {.record_id = id, .trial_seq = 100 + id, .ranked = true, .time_ns = time_ns, .group = group};
}

TEST(PruneRules, TheFastestOfEachGroupStayAndTheOlderOneWhereTimesAreEqual) {
  const std::vector<PruneCandidate> records{ranked(1, 30), ranked(2, 10),          ranked(3, 20),
                                            ranked(4, 20), ranked(5, 99, "other"), ranked(6, 98, "other")};
  EXPECT_THAT(records_to_prune(records, {.keep = 2, .until_record_id = 6}), ElementsAre(1, 4));
  EXPECT_THAT(records_to_prune(records, {.keep = 1, .until_record_id = 6}), ElementsAre(1, 3, 4, 5));
}

TEST(PruneRules, ATrialIsPrunedWholeOrNotAtAll) {
  PruneCandidate slow = ranked(1, 30), sample = slow;  // an extra sample of the same trial
  sample.record_id = 7;
  sample.ranked = false;
  const std::vector<PruneCandidate> records{slow, sample, ranked(2, 10)};
  EXPECT_THAT(records_to_prune(records, {.keep = 1, .until_record_id = 7}), ElementsAre(1, 7));
  EXPECT_THAT(records_to_prune(records, {.keep = 1, .until_record_id = 6}), ElementsAre())
      << "the sample came after the export";
}

TEST(PruneRules, WhatIsNeededOrNewStays) {
  PruneCandidate needed = ranked(1, 30), old = ranked(3, 40), fresh = ranked(4, 50);
  needed.needed = true;
  old.finished_at_us = 999;
  fresh.finished_at_us = 1000;
  const std::vector<PruneCandidate> records{needed, ranked(2, 10), old, fresh};
  EXPECT_THAT(records_to_prune(records, {.keep = 1, .until_record_id = 9, .finished_before_us = 1000}),
              ElementsAre(3));
}

// --- the store ---

class PruneTest : public testing::Test {
 protected:
  // Job j1 has ended. Trial n takes 1e6 - n ns, so later trials are faster; every fifth failed.
  void SetUp() override {
    store_ = must_open(path_);
    ASSERT_OK(store_->add_job(job_row("j1")));
    std::vector<std::string> configs;
    for (int i = 0; i < 40; ++i) configs.push_back(str("a=", i));
    ids_ = add_trials(*store_, "j1", configs);
    measure(ids_);
    ASSERT_OK(store_->set_job_state("j1", JobState::kFinished, ""));
  }

  void measure(const std::vector<std::string>& ids) {
    std::vector<MeasureRecord> records;
    for (size_t i = 0; i < ids.size(); ++i) {
      MeasureRecord r = ok_record(ids[i], {1e6 - static_cast<double>(i)});
      if (i % 5 == 4) {
        r.outcome = Outcome::kWrongAnswer;
        r.run_ns = r.cpu_ns = {};
      }
      records.push_back(std::move(r));
    }
    ASSERT_OK(store_->add_records(records));
  }

  PruneRules rules(int64_t keep) const {
    return {.keep = keep, .until_record_id = *store_->last_record_id()};
  }
  int64_t records() const {
    int64_t n = 0;
    CHECK(store_->for_each_record("", [&](const TrialWithRecord&) { return ++n, true; }).is_ok());
    return n;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("p.db");
  std::unique_ptr<Store> store_;
  std::vector<std::string> ids_;
};

TEST_F(PruneTest, AnswersNamesUsageAndOutcomesStayAsTheyWere) {
  const auto best = store_->best("v1 work", "cpu one");
  const UsageRow usage = store_->usage()->at(0);
  ASSERT_EQ(best->trial_name, "j1.39");
  const Result<PruneCount> would = store_->prunable(kTask, rules(3));
  const Result<PruneCount> count = store_->prune(kTask, rules(3), 1000);
  ASSERT_TRUE(count.is_ok()) << count.message();
  EXPECT_EQ(count->records, 36);  // 40 but for the fastest three and the first, the default config
  EXPECT_EQ(count->trials, 36);
  EXPECT_EQ(count->kept, 4);
  EXPECT_DOUBLE_EQ(count->run_s, 36 * 0.030);
  EXPECT_FALSE(count->more);
  EXPECT_EQ(would->records, 36);
  EXPECT_EQ(records(), 4);

  const auto after = store_->best("v1 work", "cpu one");
  ASSERT_TRUE(after.is_ok()) << after.message();
  EXPECT_EQ(after->config, best->config);
  EXPECT_EQ(after->trial_name, "j1.39");
  EXPECT_EQ(after->trials, 40);
  EXPECT_EQ(after->outcomes, best->outcomes);
  EXPECT_EQ(store_->usage()->at(0).trials, usage.trials);
  EXPECT_DOUBLE_EQ(store_->usage()->at(0).device_s, usage.device_s);
  EXPECT_EQ(*store_->trials_done("j1"), 40);
  EXPECT_EQ(store_->trial("j1.17")->trial.id, ids_[16]) << "names count rows";
  EXPECT_FALSE(store_->trial("j1.17")->record.has_value());
  EXPECT_TRUE(store_->trial("j1.1")->record.has_value());
  EXPECT_EQ(store_->check_integrity()->faults, 0);
}

TEST_F(PruneTest, ARacesTrialsStay) {
  RaceRow race{.job_id = "j1", .winner_trial_id = ids_[10], .tie_set = {ids_[10]}};
  for (const size_t i : {10u, 11u})
    race.finalists.push_back(
        {.trial_id = ids_[i], .samples_ns = {500}, .sentinel_ns = {100}, .process = {0}});
  race.time_ns = race.time_low_ns = race.time_high_ns = 500;
  race.default_trial_id = ids_[20];
  race.stored_trial_id = ids_[21];
  ASSERT_OK(store_->add_race(race));
  ASSERT_TRUE(store_->prune(kTask, rules(1), 1000).is_ok());
  for (const size_t i : {10u, 11u, 20u, 21u})
    EXPECT_TRUE(store_->trial(ids_[i])->record.has_value()) << ids_[i];
  EXPECT_EQ(records(), 6);
  EXPECT_EQ(store_->best("v1 work", "cpu one")->trial_id, ids_[10]);
}

TEST_F(PruneTest, TheFastestOfEachTemplateAndEnvironmentStay) {
  std::vector<TrialRow> other{trial_row("j1", "b=1"), trial_row("j1", "b=2")};
  for (TrialRow& t : other) t.template_name = "second_x86";
  ASSERT_OK(store_->add_trials(other));
  MeasureRecord slow = ok_record(other[0].id, {9e6}), old = ok_record(other[1].id, {9.5e6});
  old.environment.toolchain = "llvm 21";
  ASSERT_OK(store_->add_records({slow, old}));
  ASSERT_TRUE(store_->prune(kTask, rules(1), 1000).is_ok());
  EXPECT_TRUE(store_->trial(other[0].id)->record.has_value());
  EXPECT_TRUE(store_->trial(other[1].id)->record.has_value());
  EXPECT_EQ(store_->best("v1 work", "cpu one", {"second_x86"})->config, "b=1");
}

TEST_F(PruneTest, AJobThatHasNotEndedKeepsAll) {
  for (const JobState state : {JobState::kQueued, JobState::kRunning}) {
    ASSERT_OK(store_->set_job_state("j1", state, ""));
    EXPECT_EQ(store_->prune(kTask, rules(1), 1000)->records, 0);
  }
  EXPECT_EQ(records(), 40);
}

TEST_F(PruneTest, ACallEndsAtItsLimitAndTheNextGoesOn) {
  ASSERT_OK(store_->add_job(job_row("j2")));
  std::vector<std::string> configs;
  for (int i = 0; i < 500; ++i) configs.push_back(str("c=", i));
  measure(add_trials(*store_, "j2", configs));
  ASSERT_OK(store_->set_job_state("j2", JobState::kFinished, ""));
  int64_t removed = 0, calls = 0;
  for (bool more = true; more; ++calls) {
    const Result<PruneCount> part = store_->prune(kTask, rules(2), 100);
    ASSERT_TRUE(part.is_ok()) << part.message();
    EXPECT_LE(part->records, 256) << "a commit is small";
    removed += part->records;
    more = part->more;
    EXPECT_EQ(part->kept, 540 - removed);
  }
  EXPECT_EQ(removed, 540 - 4);
  EXPECT_GT(calls, 2);
  EXPECT_EQ(store_->usage()->at(0).trials, 540);
}

// A number that is given out twice would be read as old by whoever follows the counter.
TEST_F(PruneTest, TheCounterGoesOnAfterTheNewestRecordWasRemoved) {
  std::vector<std::string> failing = add_trials(*store_, "j1", {"z=1"});
  MeasureRecord r = ok_record(failing[0], {1});
  r.outcome = Outcome::kCrashed;
  r.run_ns = r.cpu_ns = {};
  ASSERT_OK(store_->add_records({r}));
  const int64_t last = *store_->last_record_id();
  ASSERT_EQ(store_->prune(kTask, rules(1), 1000)->records, 39);
  store_.reset();
  store_ = must_open(path_);
  std::vector<TrialRow> next{trial_row("j1", "z=2")};
  ASSERT_OK(store_->add_trials(next));
  EXPECT_GT(next[0].seq, last);
}

TEST_F(PruneTest, TheExportBringsEveryRecordBack) {
  const std::string file = folder_.file("all.jsonl"), again = folder_.file("again.jsonl");
  ASSERT_TRUE(exchange::export_file(*store_, {.path = file, .progress = {}}).is_ok());
  const auto outcomes = store_->best("v1 work", "cpu one")->outcomes;
  ASSERT_EQ(store_->prune(kTask, rules(3), 1000)->records, 36);
  const auto imported = exchange::import_file(file, *store_, {});
  ASSERT_TRUE(imported.is_ok()) << imported.message();
  EXPECT_EQ(imported->trials.added, 36);
  EXPECT_EQ(records(), 40);
  EXPECT_EQ(store_->best("v1 work", "cpu one")->outcomes, outcomes);
  EXPECT_EQ(store_->usage()->at(0).trials, 40);
  ASSERT_TRUE(exchange::export_file(*store_, {.path = again, .progress = {}}).is_ok());
  std::ifstream before(file), after(again);
  std::multiset<std::string> lines_before, lines_after;
  for (std::string line; std::getline(before, line);) lines_before.insert(line);
  for (std::string line; std::getline(after, line);) lines_after.insert(line);
  EXPECT_EQ(lines_before, lines_after);
}

// --- killed, and beside others ---

struct Tally {
  int64_t there = 0, counted = 0;
};
Tally tally(const Store& store) {
  Tally t;
  CHECK(store.for_each_record("", [&](const TrialWithRecord&) { return ++t.there, true; }).is_ok());
  t.counted = store.usage()->at(0).trials;
  return t;
}

TEST_F(PruneTest, KilledAtAnyMomentARecordIsThereOrCountedAsRemoved) {
  ASSERT_OK(store_->add_job(job_row("j2")));
  std::vector<std::string> configs;
  for (int i = 0; i < 4000; ++i) configs.push_back(str("c=", i));
  measure(add_trials(*store_, "j2", configs));
  ASSERT_OK(store_->set_job_state("j2", JobState::kFinished, ""));
  const std::string best = store_->best("v1 work", "cpu one")->config;
  const PruneRules all = rules(10);
  store_.reset();
  const RandomSeed seed(20261129);
  std::mt19937_64 random(seed);
  int in_the_middle = 0;
  for (int round = 0; round < static_cast<int>(wanted_rounds(20)); ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe_ends[0]);
      Result<std::unique_ptr<Store>> store = Store::open(path_, Store::Mode::kWrite);
      if (!store) ::_exit(3);
      for (bool more = true; more;) {
        const Result<PruneCount> part = (*store)->prune(kTask, all, 1);
        if (!part) ::_exit(4);
        more = part->more;
        if (::write(pipe_ends[1], "x", 1) != 1) ::_exit(5);
      }
      ::_exit(0);
    }
    ::close(pipe_ends[1]);
    // At a random one of its removals, or in the middle of the next.
    for (uint64_t heard = 1 + random() % 4; heard > 0; --heard) {
      pollfd next{.fd = pipe_ends[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&next, 1, 30'000), 1) << "nothing was removed within 30 s";
      char x = 0;
      if (::read(pipe_ends[0], &x, 1) != 1) break;  // it has ended
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ::close(pipe_ends[0]);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    const auto store = must_open(path_);
    const Tally now = tally(*store);
    ASSERT_EQ(now.counted, 4040) << "round " << round;
    if (now.there > 12 && now.there < 4040) ++in_the_middle;
    ASSERT_EQ(store->best("v1 work", "cpu one")->config, best);
    ASSERT_EQ(store->check_integrity()->faults, 0);
  }
  EXPECT_GT(in_the_middle, 3) << "no kill hit a removal";
}

TEST_F(PruneTest, WhoWritesMeanwhileLosesNothing) {
  ASSERT_OK(store_->add_job(job_row("j2")));
  std::vector<std::string> configs;
  for (int i = 0; i < 2000; ++i) configs.push_back(str("c=", i));
  measure(add_trials(*store_, "j2", configs));
  ASSERT_OK(store_->set_job_state("j2", JobState::kFinished, ""));
  ASSERT_OK(store_->add_job(job_row("j3")));
  const PruneRules all = rules(10);
  std::atomic<bool> done = false;
  std::atomic<int> begun = 0;
  std::vector<std::string> acknowledged;
  std::thread writer([&] {  // a job that runs
    for (int i = 0; !done || i < 20; ++i) {
      const std::vector<std::string> ids = add_trials(*store_, "j3", {str("d=", i)});
      ASSERT_OK(store_->add_records({ok_record(ids[0], {5e6 + i})}));
      acknowledged.push_back(ids[0]);
      ++begun;
    }
  });
  ASSERT_TRUE(wait_until(std::chrono::seconds(30), [&] { return begun > 2; }));
  const int before = begun;
  int64_t removed = 0;
  for (bool more = true; more;) {
    const Result<PruneCount> part = store_->prune(kTask, all, 200);
    ASSERT_TRUE(part.is_ok()) << part.message();
    removed += part->records;
    more = part->more;
  }
  const int during = begun - before;
  done = true;
  writer.join();
  EXPECT_EQ(removed, 2040 - 12);  // ten, and the default config of both jobs
  EXPECT_GT(during, 3) << "other writes waited for all of it";
  for (const std::string& id : acknowledged) EXPECT_TRUE(store_->trial(id)->record.has_value()) << id;
}

// What a removal rests on was read before; a commit looks again.
TEST_F(PruneTest, AJobThatGoesOnLosesNothingMoreMeanwhile) {
  ASSERT_OK(store_->add_job(job_row("j2")));
  std::vector<std::string> configs;
  for (int i = 0; i < 8000; ++i) configs.push_back(str("c=", i));
  const std::vector<std::string> ids = add_trials(*store_, "j2", configs);
  measure(ids);
  ASSERT_OK(store_->set_job_state("j2", JobState::kFinished, ""));
  const PruneRules all = rules(10);
  std::atomic<bool> done = false;
  std::atomic<int> calls = 0;
  std::thread pruner([&] {
    for (; !done; ++calls) (void)store_->prune(kTask, all, 100'000);
  });
  const auto has_record = [&](size_t i) { return store_->trial(ids[i])->record.has_value(); };
  // The second is removed in the first commits, the last but a few in the last.
  const bool begun = wait_until(
      std::chrono::seconds(30), [&] { return !has_record(1); }, std::chrono::milliseconds(0));
  const Status goes_on = store_->set_job_state("j2", JobState::kQueued, "");
  const int64_t at_first = records(), before = calls;
  const bool tried = wait_until(std::chrono::seconds(30), [&] { return calls > before + 2; });
  EXPECT_TRUE(begun && goes_on.is_ok() && tried);
  EXPECT_GT(at_first, 100) << "all was removed before the job went on";
  EXPECT_EQ(records(), at_first);
  EXPECT_TRUE(has_record(7980));
  EXPECT_TRUE(store_->set_job_state("j2", JobState::kFinished, "").is_ok());
  EXPECT_TRUE(wait_until(std::chrono::seconds(30), [&] { return !has_record(7980); }));
  done = true;
  pruner.join();
}

}  // namespace
}  // namespace tuner
