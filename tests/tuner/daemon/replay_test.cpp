// A job is played again from its database: bit for bit, whatever order the workers had and however often the
// daemon was killed; and the first difference is named.
#include "tuner/daemon/search/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "tests/random_seed.h"
#include "tests/tuner/analytic_task.h"

namespace tuner {
namespace {

using testing::analytic_record;
using testing::analytic_space;
using ::testing::HasSubstr;

Result<TaskSpace> make_space(const JobRow::Task&) { return analytic_space(6); }

JobRow job_row(const std::string& search, int trials, uint64_t seed, int tasks) {
  JobRow job{.id = "j1", .request_id = "r1", .tasks = {}, .trials = trials, .search = search, .seed = seed};
  for (int i = 0; i < tasks; ++i) job.tasks.push_back({str("workload ", i), "device"});
  return job;
}

// Tried beside each task's default.
Result<std::optional<KnownConfig>> known_answer(const JobRow::Task& /*task*/) {
  return std::optional(KnownConfig{.template_name = "analytic", .config = "a=2 b=3 c=4 d=5"});
}

// Runs the job to its end with eight workers that finish in random order; `kill_share` of the steps kill the
// daemon, which then starts from its database.
void run_job(const std::string& db, const JobRow& job, std::mt19937_64& dice, double kill_share) {
  constexpr size_t kWorkers = 8;
  std::uniform_real_distribution<double> share(0, 1);
  bool begun = false;
  for (bool finished = false; !finished;) {
    const auto store = Store::open(db, Store::Mode::kWrite).value();
    if (!begun) {
      ASSERT_TRUE(store->add_job(job).is_ok());
    }
    begun = true;
    JobRunner runner(*store, store->job(job.id).value(), job.trials, make_space, make_strategy, known_answer);
    ASSERT_TRUE(runner.start().is_ok());
    std::deque<TrialRow> queue;
    std::vector<TrialRow> leased;
    for (const TrialRow& t : runner.open_trials()) {
      if (t.state == TrialState::kLeased) {
        ASSERT_TRUE(store->requeue_trial(t.id, t.attempt).is_ok());
      }
      queue.push_back(t);
    }
    while (!finished && share(dice) >= kill_share) {
      switch (dice() % 4) {
        case 0: {
          const Result<std::vector<TrialRow>> rows = runner.propose(kWorkers);
          ASSERT_TRUE(rows.is_ok()) << rows.message();
          queue.insert(queue.end(), rows->begin(), rows->end());
          break;
        }
        case 1:
          while (!queue.empty() && leased.size() < kWorkers) {
            leased.push_back(store->lease_trials({queue.front().id}, "w").value().at(0));
            queue.pop_front();
          }
          break;
        case 2:
          for (size_t n = dice() % (leased.size() + 1); n > 0; --n) {
            const auto which = static_cast<int64_t>(dice() % leased.size());
            const TrialRow t = leased[static_cast<size_t>(which)];
            leased.erase(leased.begin() + which);
            ASSERT_TRUE(store->add_records({analytic_record(t.id, t.attempt, t.config)}).is_ok());
          }
          break;
        default:
          ASSERT_TRUE(runner.observe().is_ok());
      }
      finished = runner.finished();
      ASSERT_TRUE(runner.take_notes().empty()) << "the search was not played again after a kill";
    }
  }
}

Result<ReplayReport> replay(const std::string& db, const StrategyFactory& make_search = make_strategy) {
  const auto store = Store::open(db, Store::Mode::kRead).value();
  return replay_job(*store, store->job("j1").value(), make_space, make_search);
}

int answers_given(const std::string& db) {
  const auto store = Store::open(db, Store::Mode::kRead).value();
  const std::vector<ProposalRow> proposals = store->proposals("j1").value();
  return static_cast<int>(std::ranges::count(proposals, 0, &ProposalRow::asked));
}

TEST(Replay, AnAsynchronousJobIsPlayedAgainBitForBit20Of20) {
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/20)) {
    std::mt19937_64 dice(seed);
    TemporaryFolder folder;
    const std::string search = strategy_names()[seed % strategy_names().size()];
    run_job(folder.file("db"), job_row(search, 80, seed, 1), dice, 0);
    const auto report = replay(folder.file("db"));
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_FALSE(report->difference) << search << ": " << report->difference->trial;
    EXPECT_EQ(report->trials, 80) << search;
    EXPECT_EQ(answers_given(folder.file("db")), 1) << search;
    EXPECT_GE(report->proposals, 5) << search;
    EXPECT_GE(report->results, 40) << search;
  }
}

TEST(Replay, AlsoWithSeveralTasksAndKills) {
  for (const uint32_t seed : Seeds(/*fixed=*/0, /*rounds=*/8)) {
    std::mt19937_64 dice(100 + seed);
    TemporaryFolder folder;
    const std::string search = seed % 2 == 0 ? "xgb-annealing" : "genetic";
    run_job(folder.file("db"), job_row(search, 40, seed, 2), dice, 0.02);
    const auto report = replay(folder.file("db"));
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_FALSE(report->difference) << report->difference->trial;
    EXPECT_EQ(report->trials, 80);
  }
}

TEST(Replay, AlsoOfManyTasksWithFewTrials) {
  for (const std::string& search : strategy_names()) {
    SCOPED_TRACE(search);
    std::mt19937_64 dice(7);
    TemporaryFolder folder;
    run_job(folder.file("db"), job_row(search, 4, 3, 5), dice, 0.05);
    const auto report = replay(folder.file("db"));
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_FALSE(report->difference) << report->difference->trial;
    EXPECT_EQ(report->trials, 20);
  }
}

TEST(Replay, NamesTheFirstTrialThatDiffers) {
  std::mt19937_64 dice(5);
  TemporaryFolder folder;
  run_job(folder.file("db"), job_row("xgb-annealing", 48, 5, 1), dice, 0);
  const auto other_seed = [](std::string_view name, const SearchSpace& space, uint64_t seed) {
    return make_strategy(name, space, seed + 1);
  };
  const auto report = replay(folder.file("db"), other_seed);
  ASSERT_TRUE(report.is_ok()) << report.message();
  ASSERT_TRUE(report->difference.has_value());
  const ReplayDifference& d = *report->difference;
  EXPECT_EQ(d.proposal, 3)
      << "the first two are the default and the answer of the database, whatever the seed";
  EXPECT_EQ(d.trial, "j1.3");
  EXPECT_NE(d.expected.what, d.found.what);
  EXPECT_EQ(d.expected.rng_counter, d.found.rng_counter);

  const auto other_search = [](std::string_view, const SearchSpace& space, uint64_t seed) {
    return make_strategy("grid", space, seed);
  };
  EXPECT_TRUE(replay(folder.file("db"), other_search)->difference.has_value());
}

TEST(Replay, SaysWhyAJobCannotBePlayed) {
  TemporaryFolder folder;
  const std::string db = folder.file("db");
  {
    const auto store = Store::open(db, Store::Mode::kWrite).value();
    ASSERT_TRUE(store->add_job(job_row("random", 4, 1, 1)).is_ok());
    EXPECT_EQ(replay(db)->trials, 0);  // nothing proposed, nothing to differ
    std::vector<TrialRow> old(1);
    old[0].job_id = "j1";
    old[0].template_name = "analytic";
    old[0].config = "a=0 b=0 c=0 d=1";
    ASSERT_TRUE(store->add_trials(old).is_ok());
  }
  EXPECT_EQ(
      replay(db).message(),
      "job j1 cannot be replayed: its 1 trials are from before proposals were stored (schema version 1), or "
      "imported");
  const auto store = Store::open(db, Store::Mode::kWrite).value();
  std::vector<TrialRow> row(1);
  row[0].job_id = "j1";
  row[0].template_name = "analytic";
  row[0].template_version = 7;
  row[0].config = "a=0 b=0 c=0 d=1";
  ProposalRow proposal{.job_id = "j1", .task_index = 0, .asked = 1};
  ASSERT_TRUE(store->add_trials(row, &proposal).is_ok());
  EXPECT_THAT(replay(db).message(),
              HasSubstr("is of version 7 of template analytic, this program has version 1"));
}

}  // namespace
}  // namespace tuner
