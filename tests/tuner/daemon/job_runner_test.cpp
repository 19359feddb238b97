// A job's search: what it proposes, when it ends, and what a crash at any moment leaves.
#include "tuner/daemon/search/job_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <span>

#include "tests/random_seed.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/tables/finalists.h"
#include "tuner/search/task_allocator.h"

namespace tuner {
namespace {

using testing::analytic_record;
using testing::analytic_space;
using ::testing::HasSubstr;
using ::testing::SizeIs;

JobRow job_row(const std::string& search, int trials, uint64_t seed, int tasks = 1) {
  JobRow job;
  job.id = "j1";
  job.request_id = "r1";
  for (int i = 0; i < tasks; ++i) job.tasks.push_back({str("workload ", i), "device"});
  job.trials = trials;
  job.search = search;
  job.seed = seed;
  return job;
}

// The daemon's part around a JobRunner, with a worker that answers from the formula.
class Life {
 public:
  Life(const std::string& db, const JobRow& job, int width, StrategyFactory make_search = make_strategy,
       KnownAnswer known_answer = nullptr) {
    store = Store::open(db, Store::Mode::kWrite).value();
    EXPECT_TRUE(store->add_job(job).is_ok());
    runner = std::make_unique<JobRunner>(
        *store, store->job(job.id).value(), job.trials,
        [width](const JobRow::Task&) { return analytic_space(width); }, make_search, known_answer);
    EXPECT_TRUE(runner->start().is_ok());
    for (const TrialRow& t : runner->open_trials()) {
      if (t.state == TrialState::kLeased) {
        EXPECT_TRUE(store->requeue_trial(t.id, t.attempt).is_ok());
      }
      queue.push_back(t);
    }
  }
  // One step of the pipeline chosen by `dice`: propose, lease, measure or observe. False when the job is
  // finished.
  bool step(std::mt19937_64& dice) {
    if (runner->finished()) return false;
    switch (dice() % 4) {
      case 0: {
        const std::vector<TrialRow> rows = runner->propose(8).value();
        queue.insert(queue.end(), rows.begin(), rows.end());
        break;
      }
      case 1:
        if (!queue.empty() && leased.size() < 4) {
          leased.push_back(store->lease_trials({queue.front().id}, "w").value().at(0));
          queue.pop_front();
        }
        break;
      case 2:
        if (!leased.empty()) {
          const size_t which = dice() % leased.size();
          const TrialRow trial = leased[which];
          leased.erase(leased.begin() + static_cast<int64_t>(which));
          const MeasureRecord record = analytic_record(trial.id, trial.attempt, trial.config);
          EXPECT_TRUE(store->add_records({record}).is_ok());
        }
        break;
      default:
        EXPECT_TRUE(runner->observe().is_ok());
    }
    return true;
  }

  std::unique_ptr<Store> store;
  std::unique_ptr<JobRunner> runner;
  std::deque<TrialRow> queue;
  std::vector<TrialRow> leased;
};

std::vector<std::string> configs_in_order(Store& store) {
  std::vector<std::string> configs;
  const std::vector<TrialWithRecord> trials = store.trials("j1").value();
  for (const TrialWithRecord& t : trials) configs.push_back(t.trial.config);
  return configs;
}

// The trial of the task's default config: of the config that the job proposed first for it, the trial with a
// record if there is one. Null when nothing was proposed. `trials` are the job's, in seq order.
const TrialWithRecord* default_trial(std::span<const TrialWithRecord> trials, int task_index) {
  const TrialWithRecord* found = nullptr;
  for (const TrialWithRecord& t : trials) {
    if (t.trial.task_index != task_index) continue;
    if (found == nullptr) found = &t;
    // One that was cancelled may have been given again.
    const bool same = t.trial.template_name == found->trial.template_name &&
                      t.trial.template_version == found->trial.template_version &&
                      t.trial.config == found->trial.config;
    if (same && t.record) return &t;
  }
  return found;
}

TEST(JobRunner, EndsAtItsTrialsAndKnowsTheBest) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("genetic", 60, 1), 6);
  std::mt19937_64 dice(1);
  while (life.step(dice)) {
  }
  const std::vector<TrialWithRecord> trials = life.store->trials("j1").value();
  ASSERT_THAT(trials, SizeIs(60));
  double best = 1e18;
  int64_t ok = 0;
  for (const TrialWithRecord& t : trials) {
    ASSERT_TRUE(t.record.has_value());
    if (t.record->outcome != Outcome::kOk) continue;
    ++ok;
    best = std::min(best, record_time_ns(*t.record));
  }
  JobProgress p = life.runner->progress();
  EXPECT_EQ(p.trials_done, 60);
  EXPECT_EQ(p.trials_total, 60);
  EXPECT_EQ(p.best_ns, best);
  EXPECT_EQ(p.outcomes[Outcome::kOk], ok);
  EXPECT_EQ(p.outcomes[Outcome::kCrashed], 60 - ok);
  EXPECT_THAT(life.runner->take_finished_tasks(), ::testing::ElementsAre(0));
  EXPECT_THAT(life.runner->take_finished_tasks(), ::testing::IsEmpty());
}

// Runs a job to its end in batches, every task's times multiplied by its factor (0: all its configs fail).
void run_to_end(Life& life, const std::vector<double>& factors) {
  while (!life.runner->finished()) {
    const std::vector<TrialRow> proposed = life.runner->propose(0).value();
    ASSERT_FALSE(proposed.empty());
    for (const TrialRow& row : proposed) {
      const TrialRow leased = life.store->lease_trials({row.id}, "w").value().at(0);
      MeasureRecord record = analytic_record(leased.id, leased.attempt, leased.config);
      const double factor = factors[static_cast<size_t>(row.task_index)];
      for (double& ns : record.run_ns) ns *= factor;
      if (factor == 0 && record.outcome == Outcome::kOk) {
        record.outcome = Outcome::kCrashed;
        record.run_ns = record.cpu_ns = {};
      }
      ASSERT_TRUE(life.store->add_records({record}).is_ok());
    }
    ASSERT_TRUE(life.runner->observe().is_ok());
  }
}

std::vector<int64_t> trials_of_tasks(Store& store, size_t tasks) {
  std::vector<int64_t> trials(tasks);
  const std::vector<TrialWithRecord> all = store.trials("j1").value();
  for (const TrialWithRecord& t : all) ++trials[static_cast<size_t>(t.trial.task_index)];
  return trials;
}

TEST(JobRunner, TrialsGoWhereTheMostIsGainedAndEveryTaskGetsItsFloor) {
  TemporaryFolder folder;
  JobRow job = job_row("random", 100, 3, 3);
  job.tasks[2].uses = 50;
  Life life(folder.file("db"), job, 12);
  run_to_end(life, {1, 1, 1});
  const std::vector<int64_t> trials = trials_of_tasks(*life.store, 3);
  EXPECT_EQ(trials[0] + trials[1] + trials[2], 300);
  EXPECT_GE(trials[0], allocation_floor(100));
  EXPECT_GE(trials[1], allocation_floor(100));
  EXPECT_GT(trials[2], 2 * trials[0]);
  EXPECT_GT(trials[2], 2 * trials[1]);
}

const char* const kDefaultConfig = "a=0 b=0 c=0 d=1";  // of analytic_space

TEST(JobRunner, ThreeTasksWithFourTrialsEachGetFourEachAndTheirDefaultsFirst) {
  for (const std::string& search : strategy_names()) {
    SCOPED_TRACE(search);
    TemporaryFolder folder;
    JobRow job = job_row(search, 4, 3, 3);
    job.tasks[1].uses = 3;
    Life life(folder.file("db"), job, 6);
    run_to_end(life, {1, 0, 1});
    EXPECT_EQ(trials_of_tasks(*life.store, 3), (std::vector<int64_t>{4, 4, 4}));
    const std::vector<TrialWithRecord> trials = life.store->trials("j1").value();
    std::vector<int> first;
    for (size_t i = 0; i < 3; ++i) {
      first.push_back(trials[i].trial.task_index);
      EXPECT_EQ(trials[i].trial.config, kDefaultConfig);
      EXPECT_EQ(default_trial(trials, first.back()), &trials[i]);
    }
    EXPECT_THAT(first, ::testing::ElementsAre(1, 0, 2)) << "the most used one first";
    EXPECT_EQ(default_trial(trials, 3), nullptr);
  }
}

TEST(JobRunner, ARestartAmongTheFirstTrialsGoesOnWithTheTasksThatHaveNone) {
  TemporaryFolder folder;
  const JobRow job = job_row("bayesian", 4, 3, 5);
  {
    Life life(folder.file("db"), job, 6);
    EXPECT_THAT(life.runner->propose(1).value(), SizeIs(2));
    ASSERT_TRUE(life.runner->some_task_is_untried());
  }
  {
    Life life(folder.file("db"), job, 6);
    const std::vector<TrialRow> next = life.runner->propose(3).value();
    ASSERT_THAT(next, SizeIs(2));
    EXPECT_EQ(next[0].task_index, 2);
    EXPECT_EQ(next[1].task_index, 3);
    EXPECT_EQ(next[1].config, kDefaultConfig);
    ASSERT_TRUE(life.store->cancel_open_trials("j1").is_ok());
  }
  // None was measured: each is given again, then the fifth task's, and only then come others.
  Life life(folder.file("db"), job, 6);
  const std::vector<TrialRow> again = life.runner->propose(4).value();
  ASSERT_THAT(again, SizeIs(5));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(again[i].task_index, static_cast<int>(i));
    EXPECT_EQ(again[i].config, kDefaultConfig);
  }
  life.queue.assign(again.begin(), again.end());
  std::mt19937_64 dice(1);
  while (life.step(dice)) {
  }
  EXPECT_FALSE(life.runner->some_task_is_untried());
  const std::vector<TrialWithRecord> trials = life.store->trials("j1").value();
  EXPECT_EQ(default_trial(trials, 1)->trial.id, again[1].id) << "the one with a record";
}

TEST(JobRunner, WithdrawnTrialsAreNotWaitedForAndComeAgainWhenTheJobGoesOn) {
  TemporaryFolder folder;
  const JobRow job = job_row("random", 16, 1);
  std::vector<std::string> ids;
  {
    Life life(folder.file("db"), job, 6);
    const std::vector<TrialRow> proposed = life.runner->propose(8).value();
    ASSERT_THAT(proposed, SizeIs(16));
    for (const TrialRow& t : proposed) ids.push_back(t.id);
    ids.erase(ids.begin());
    life.runner->end_proposals();
    life.runner->withdraw(ids);
    EXPECT_FALSE(life.runner->finished()) << "one is with a worker";
    ASSERT_TRUE(life.store->add_records({analytic_record(proposed[0].id, 1, proposed[0].config)}).is_ok());
    EXPECT_EQ(life.runner->observe().value(), 1u);
    EXPECT_TRUE(life.runner->finished());
    EXPECT_EQ(life.runner->progress().trials_total, 1);
    ASSERT_TRUE(life.store->cancel_open_trials("j1").is_ok());
  }
  Life life(folder.file("db"), job, 6);
  std::mt19937_64 dice(4);
  while (life.step(dice)) {
  }
  EXPECT_EQ(life.runner->progress().trials_done, 16);
  const std::vector<std::string> configs = configs_in_order(*life.store);
  EXPECT_EQ(std::vector(configs.begin() + 1, configs.begin() + 16),
            std::vector(configs.begin() + 16, configs.end()));
}

TEST(JobRunner, ATaskWhoseFirstBatchesFailedIsTriedAgain) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("random", 200, 3, 2), 12);
  run_to_end(life, {1, 0});
  const std::vector<int64_t> trials = trials_of_tasks(*life.store, 2);
  EXPECT_EQ(trials[0] + trials[1], 400);
  EXPECT_GT(trials[1], allocation_floor(200) + 2 * kProposalBatch);
  EXPECT_GT(trials[0], trials[1]);
}

// Where its budget is used up anyway, nothing is stopped, and --stop-below 0 would add nothing.
TEST(JobRunner, ATaskThatUsedItsBudgetIsNotSaidToStop) {
  int stopped = 0, used_up = 0;
  for (int budget = 16; budget <= 160; budget += 16) {
    TemporaryFolder folder;
    JobRow job = job_row("annealing", budget, 1);
    job.stop.below = 1;  // as soon as the chance is known
    Life life(folder.file("db"), job, 7);
    run_to_end(life, {1});
    const bool all = life.runner->progress().trials_done == budget;
    EXPECT_THAT(life.runner->take_notes(), SizeIs(all ? 0 : 1)) << budget;
    ++(all ? used_up : stopped);
  }
  EXPECT_GT(stopped, 0);
  EXPECT_GT(used_up, 0);
}

TEST(JobRunner, AConvergedTaskStopsAndSaysSoAndLeavesItsTrialsUnused) {
  TemporaryFolder folder;
  JobRow job = job_row("annealing", 1500, 1);
  job.stop.below = 0.05;
  Life life(folder.file("db"), job, 7);  // 2401 configs, the best is found soon
  run_to_end(life, {1});
  const JobProgress p = life.runner->progress();
  EXPECT_LT(p.trials_done, 1000);
  EXPECT_EQ(p.trials_total, p.trials_done);
  EXPECT_LE(p.best_ns, 1010);
  const std::vector<std::string> notes = life.runner->take_notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], HasSubstr("task 1 of 1 stops after"));
  EXPECT_THAT(notes[0], HasSubstr("below 5 %. To go on: --stop-below 0"));

  // Begun again from the store it stands where it stood: nothing more is proposed.
  JobRunner again(
      *life.store, life.store->job("j1").value(), 1500, [](const JobRow::Task&) { return analytic_space(7); },
      make_strategy);
  ASSERT_TRUE(again.start().is_ok());
  EXPECT_THAT(again.propose(64).value(), ::testing::IsEmpty());
  EXPECT_TRUE(again.finished());
}

TEST(JobRunner, NothingIsProposedAfterTheEndOfProposals) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("random", 100, 1, 2), 6);
  const size_t open = life.runner->propose(20)->size();
  life.runner->end_proposals();
  EXPECT_THAT(life.runner->propose(100).value(), ::testing::IsEmpty());
  EXPECT_FALSE(life.runner->finished());
  EXPECT_EQ(life.runner->progress().trials_total, static_cast<int64_t>(open));
}

TEST(JobRunner, EndsWhenTheSpaceIsExhausted) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("random", 1000, 1), 2);  // 16 configs
  std::mt19937_64 dice(2);
  while (life.step(dice)) {
  }
  EXPECT_THAT(life.store->trials("j1").value(), SizeIs(16));
  EXPECT_EQ(life.runner->progress().trials_total, 16);
}

TEST(JobRunner, KeepsAboutAsManyTrialsOpenAsAskedAndProposesInBatches) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("random", 100, 1), 6);
  EXPECT_THAT(life.runner->propose(0).value(), SizeIs(1)) << "the default";
  EXPECT_THAT(life.runner->propose(8).value(), SizeIs(16));
  EXPECT_THAT(life.runner->propose(8).value(), SizeIs(0));
  EXPECT_THAT(life.runner->propose(40).value(), SizeIs(32));
  EXPECT_THAT(life.runner->propose(4096).value(), SizeIs(51)) << "never more than the job's trials";
}

TEST(JobRunner, BeginsTheNextTaskWhileTheLastTrialsOfTheOneBeforeRun) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("random", 16, 1, /*tasks=*/2), 6);
  EXPECT_THAT(life.runner->propose(8).value(), SizeIs(1 + 1 + 15));
  std::vector<MeasureRecord> nine;
  for (const TrialRow& t : life.runner->open_trials())
    if (nine.size() < 9) nine.push_back(analytic_record(t.id, 1, t.config));
  ASSERT_TRUE(life.store->add_records(nine).is_ok());
  EXPECT_EQ(life.runner->observe().value(), 9u);
  const std::vector<TrialRow> next = life.runner->propose(8).value();
  ASSERT_THAT(next, SizeIs(15));
  EXPECT_EQ(next[0].task_index, 1);
  EXPECT_THAT(life.runner->take_finished_tasks(), SizeIs(0)) << "8 of the first are open";
}

TEST(JobRunner, TheSameSeedAndResultsGiveTheSameTrials) {
  for (const char* search :
       {"random", "grid", "genetic", "annealing", "coordinate-descent", "bayesian", "xgb-annealing"}) {
    std::vector<std::string> configs[2];
    for (std::vector<std::string>& c : configs) {
      TemporaryFolder folder;
      Life life(folder.file("db"), job_row(search, 48, 7), 6);
      std::mt19937_64 dice(3);
      while (life.step(dice)) {
      }
      c = configs_in_order(*life.store);
    }
    EXPECT_EQ(configs[0], configs[1]) << search;
  }
}

TEST(JobRunner, ObservingTheSameResultTwiceCountsItOnce) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("random", 16, 1), 6);
  const std::vector<TrialRow> proposed = life.runner->propose(8).value();
  const TrialRow& trial = proposed[0];
  const MeasureRecord record = analytic_record(trial.id, 1, trial.config);
  ASSERT_TRUE(life.store->add_records({record}).is_ok());
  EXPECT_EQ(life.runner->observe().value(), 1u);
  MeasureRecord late = record;
  late.attempt = 2;
  ASSERT_TRUE(life.store->add_records({record, late}).is_ok());
  EXPECT_EQ(life.runner->observe().value(), 0u);
  EXPECT_EQ(life.runner->progress().trials_done, 1);
}

TEST(JobRunner, ASearchThatIsNotKnownEndsTheJobWithTheReason) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("guess", 16, 1), 6);
  EXPECT_THAT(life.runner->propose(8).message(), HasSubstr("guess"));
}

// Killed at random moments and resumed from the file alone: no config is measured twice, no result is lost,
// and the job ends with exactly its trials.
TEST(JobRunner, SurvivesCrashesAtAnyMoment) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/6)) {
    const char* const searches[] = {"random", "grid", "genetic", "annealing", "xgb-genetic", "xgb-annealing"};
    const JobRow job = job_row(searches[seed % 6], 64, seed);
    TemporaryFolder folder;
    std::mt19937_64 dice(seed);
    std::map<std::string, std::string> recorded;  // trial -> config, as acknowledged before each crash
    bool finished = false;
    for (int crash = 0; !finished; ++crash) {
      Life life(folder.file("db"), job, 6);
      for (const auto& [id, config] : recorded)
        ASSERT_TRUE(life.store->trial(id).value().record.has_value()) << id << " was acknowledged, then lost";
      const int64_t done = life.runner->progress().trials_done;
      EXPECT_EQ(done, static_cast<int64_t>(recorded.size()));
      int64_t steps = crash < 6 ? static_cast<int64_t>(dice() % 120) : 1'000'000;
      while (steps-- > 0 && !finished) finished = !life.step(dice);
      std::map<std::string, int> times_measured;
      recorded.clear();
      const std::vector<TrialWithRecord> trials = life.store->trials("j1").value();
      for (const TrialWithRecord& t : trials) {
        if (!t.record) continue;
        recorded[t.trial.id] = t.trial.config;
        EXPECT_EQ(++times_measured[t.trial.config], 1) << t.trial.config << " was measured twice";
      }
    }
    EXPECT_EQ(recorded.size(), 64u);
  }
}

// The configs a search gives when it is shown and asked what the stored proposals say, call by call.
std::vector<std::string> played_again(Store& store, const JobRow& job, int width) {
  const TaskSpace space = analytic_space(width).value();
  const auto search = make_strategy(job.search, space.search, job.seed).value();
  const std::vector<ObservedRecord> records = store.records_after(job.id, 0).value();
  const std::vector<TrialWithRecord> trials = store.trials(job.id).value();
  std::map<std::string, Candidate> candidates;
  for (const TrialWithRecord& t : trials)
    for (size_t i = 0; i < space.search.parts.size(); ++i)
      if (space.search.parts[i].template_name == t.trial.template_name)
        candidates[t.trial.id] = {
            static_cast<int>(i),
            space.search.parts[i].space->index_of(*config_from_text(t.trial.config)).value()};
  std::vector<std::string> configs;
  size_t seen = 0;
  const std::vector<ProposalRow> proposals = store.proposals(job.id).value();
  for (const ProposalRow& p : proposals) {
    std::vector<Observation> results;
    for (; seen < records.size() && records[seen].record_id <= p.observed_record_id; ++seen) {
      const MeasureRecord& r = records[seen].record;
      results.push_back({candidates.at(r.trial_id), r.outcome == Outcome::kOk, record_time_ns(r), r.cut});
    }
    if (!results.empty()) search->observe(results);
    for (const Candidate& c : search->propose(static_cast<size_t>(p.asked)))
      configs.push_back(space.search.parts[c.template_index].space->at(c.config).to_text());
  }
  return configs;
}

// Results come in any order and the daemon dies at any moment; the stored proposals and records are enough to
// have the same search give the same trials in the same order.
TEST(JobRunner, ASearchCanBePlayedAgainFromTheStoreBitForBit) {
  for (const std::string& search : strategy_names()) {
    SCOPED_TRACE(search);
    const JobRow job = job_row(search, 80, 11);
    TemporaryFolder folder;
    std::mt19937_64 dice(5);
    bool more = true;
    for (int crash = 0; more; ++crash) {
      Life life(folder.file("db"), job, 6);
      for (int steps = crash < 4 ? 70 : 1'000'000; more && steps > 0; --steps) more = life.step(dice);
      EXPECT_THAT(life.runner->take_notes(), ::testing::IsEmpty());
    }
    const auto store = Store::open(folder.file("db"), Store::Mode::kRead).value();
    const std::vector<std::string> now = played_again(*store, job, 6), then = configs_in_order(*store);
    EXPECT_THAT(then, SizeIs(80));
    EXPECT_EQ(now, then);
  }
}

TEST(JobRunner, ASearchThatWouldNotGiveTheSameAgainStartsAnewFromTheResultsAndSaysSo) {
  const JobRow job = job_row("genetic", 64, 3);
  TemporaryFolder folder;
  std::mt19937_64 dice(9);
  {
    Life life(folder.file("db"), job, 6);
    for (int i = 0; i < 150; ++i) life.step(dice);
    ASSERT_GT(life.runner->progress().trials_done, 0);
  }
  Life life(folder.file("db"), job, 6, [](std::string_view name, const SearchSpace& space, uint64_t seed) {
    return make_strategy(name, space, seed + 1);  // another version of it, say
  });
  while (life.step(dice)) {
  }
  EXPECT_THAT(life.runner->take_notes(),
              ::testing::ElementsAre(HasSubstr("task 1: its search does not propose again what it did")));
  std::map<std::string, int> times;
  for (const std::string& config : configs_in_order(*life.store)) EXPECT_EQ(++times[config], 1) << config;
  EXPECT_EQ(life.runner->progress().trials_done, 64);
}

TEST(JobRunner, CancelledTrialsAreGivenAgainWhenTheJobGoesOn) {
  const JobRow job = job_row("random", 16, 1);  // of a space with 16 configs: nothing else is left to give
  TemporaryFolder folder;
  {
    Life life(folder.file("db"), job, 2);
    EXPECT_THAT(life.runner->propose(8).value(), SizeIs(16));
    ASSERT_TRUE(life.store->cancel_open_trials("j1").is_ok());
  }
  std::mt19937_64 dice(4);
  Life life(folder.file("db"), job, 2);
  EXPECT_EQ(life.runner->open_count(), 0u);
  while (life.step(dice)) {
  }
  EXPECT_EQ(life.runner->progress().trials_done, 16);
}

// The database's answer for every task of these tests.
const char* const kAnswer = "a=2 b=3 c=4 d=5";
Result<std::optional<KnownConfig>> known_answer(const JobRow::Task& /*task*/) {
  return std::optional(KnownConfig{.template_name = "analytic", .config = kAnswer});
}

TEST(JobRunner, TheDatabasesAnswerIsTriedRightAfterTheDefault) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("bayesian", 20, 1, 2), 6, make_strategy, known_answer);
  run_to_end(life, {1, 1});
  const std::vector<TrialWithRecord> trials = life.store->trials("j1").value();
  const std::vector<ProposalRow> proposals = life.store->proposals("j1").value();
  for (int task = 0; task < 2; ++task) {
    std::vector<std::string> configs;
    for (const TrialWithRecord& t : trials)
      if (t.trial.task_index == task) configs.push_back(t.trial.config);
    ASSERT_GE(configs.size(), 2u);
    EXPECT_EQ(configs[1], kAnswer);
    EXPECT_EQ(std::ranges::count(configs, kAnswer), 1) << "the search gave it again";
    const std::set<std::string> answers = answers_tried(trials, proposals, task);
    ASSERT_THAT(answers, SizeIs(1));
    EXPECT_EQ(life.store->trial(*answers.begin())->trial.config, kAnswer);
  }
}

TEST(JobRunner, AnAnswerThatIsTheDefaultOrUnknownHereIsNoTrialOfItsOwn) {
  const std::string plain = analytic_space(6)
                                ->search.parts[0]
                                .space->at(analytic_space(6)->search.parts[0].space->default_index())
                                .to_text();
  for (const std::string& answer : {plain, std::string("a=99 b=3 c=4 d=5")}) {
    TemporaryFolder folder;
    Life life(folder.file("db"), job_row("random", 20, 1), 6, make_strategy, [&](const JobRow::Task&) {
      return std::optional(KnownConfig{.template_name = "analytic", .config = answer});
    });
    run_to_end(life, {1});
    EXPECT_THAT(life.store->trials("j1").value(), SizeIs(20));
    const std::vector<ProposalRow> proposals = life.store->proposals("j1").value();
    for (const ProposalRow& p : proposals) EXPECT_GT(p.asked, 0) << answer;
  }
}

TEST(JobRunner, AJobGoesOnWithoutAnAnswerThatCannotBeLookedUp) {
  TemporaryFolder folder;
  Life life(folder.file("db"), job_row("random", 20, 1), 6, make_strategy,
            [](const JobRow::Task&) -> Result<std::optional<KnownConfig>> { return failed("no disk"); });
  run_to_end(life, {1});
  EXPECT_THAT(life.store->trials("j1").value(), SizeIs(20));
  EXPECT_THAT(life.runner->take_notes(), ::testing::Contains(HasSubstr("(no disk)")));
}

// Killed anywhere, also between the default and the answer.
TEST(JobRunner, AnAnswerIsTriedOnceWhateverCrashes) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/6)) {
    const JobRow job = job_row(strategy_names()[seed % strategy_names().size()], 40, seed);
    TemporaryFolder folder;
    std::mt19937_64 dice(seed);
    bool more = true;
    for (int crash = 0; more; ++crash) {
      Life life(folder.file("db"), job, 6, make_strategy, known_answer);
      for (uint64_t steps = crash < 8 ? dice() % 20 : 1'000'000; more && steps > 0; --steps)
        more = life.step(dice);
      EXPECT_THAT(life.runner->take_notes(), ::testing::IsEmpty());
    }
    const auto store = Store::open(folder.file("db"), Store::Mode::kRead).value();
    const std::vector<std::string> configs = configs_in_order(*store);
    EXPECT_THAT(configs, SizeIs(40));
    EXPECT_EQ(std::ranges::count(configs, kAnswer), 1);
    EXPECT_EQ(configs[1], kAnswer);
  }
}

// A search whose proposals do not depend on results proposes after a crash exactly what it would have
// proposed without.
TEST(JobRunner, ACrashDoesNotChangeWhatARandomSearchMeasures) {
  const JobRow job = job_row("random", 48, 5);
  std::vector<std::string> whole, resumed;
  {
    TemporaryFolder folder;
    Life life(folder.file("db"), job, 6);
    std::mt19937_64 dice(1);
    while (life.step(dice)) {
    }
    whole = configs_in_order(*life.store);
  }
  TemporaryFolder folder;
  std::mt19937_64 dice(1);
  for (bool more = true; more;) {
    Life life(folder.file("db"), job, 6);
    for (int i = 0; i < 60 && more; ++i) more = life.step(dice);
    resumed = configs_in_order(*life.store);
  }
  std::sort(whole.begin(), whole.end());
  std::sort(resumed.begin(), resumed.end());
  EXPECT_EQ(whole, resumed);
}

}  // namespace
}  // namespace tuner
