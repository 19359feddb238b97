// Jobs with a time limit, on a clock that only the worker's work moves: which tasks get trials and races, and
// what is said of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "proto/convert.h"
#include "tests/tuner/analytic_task.h"
#include "tests/tuner/daemon/search_room.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/tables/time_limit.h"

namespace tuner {
namespace {

using testing::analytic_record;
using testing::analytic_space;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::kAnalyticTarget;
using ::testing::Not;

constexpr int kTasks = 31;
constexpr int kMostUsed = 9;
constexpr double kLimitS = 20;

class WorkClock final : public Clock {
 public:
  int64_t now_ms() const override { return now_; }
  void pass(int64_t ms) { now_ += ms; }

 private:
  int64_t now_ = 1'000;
};

std::string key_of(int task) {
  return str("v1 matmul b=1 m=", 8 + task, " n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
}

// How the time is shared out: TimeLimit alone. 60 s, from 1 s on its clock.
class TimeShares : public ::testing::Test {
 protected:
  static int64_t at_s(double s) { return 1'000 + static_cast<int64_t>(1'000 * s); }
  TimeLimit limit{/*limit_s=*/60, /*now_ms=*/1'000};
};

TEST_F(TimeShares, WithoutALimitNothingEverEnds) {
  EXPECT_FALSE(TimeLimit().exists());
  EXPECT_FALSE(TimeLimit(0, 1'000).exists());
  EXPECT_FALSE(TimeLimit(0, 1'000).ends_search(5, false, 1'000'000'000));
}

TEST_F(TimeShares, TheSearchLeavesEightSecondsARaceUntilRacesTellBetter) {
  EXPECT_FALSE(limit.ends_search(/*races=*/2, /*untried=*/false, at_s(43.9)));
  EXPECT_TRUE(limit.ends_search(2, false, at_s(44)));
  EXPECT_TRUE(limit.ends_search(0, false, at_s(60)));
  limit.count_race(/*took_ms=*/2'000, /*limit_s=*/20);  // with the guess: 5 s each
  EXPECT_FALSE(limit.ends_search(2, false, at_s(49.9)));
  EXPECT_TRUE(limit.ends_search(2, false, at_s(50)));
}

TEST_F(TimeShares, RacesGetAThirdAtMostAndNothingWhileATaskIsUntried) {
  EXPECT_FALSE(limit.ends_search(/*races=*/100, /*untried=*/false, at_s(39.9)));
  EXPECT_TRUE(limit.ends_search(100, false, at_s(40)));
  EXPECT_FALSE(limit.ends_search(100, /*untried=*/true, at_s(59.9)));
  EXPECT_TRUE(limit.ends_search(100, true, at_s(60)));
}

// A race goes on for half a second after its limit, by the guess.
TEST_F(TimeShares, RacesShareWhatIsLeft) {
  const auto share = [&](int64_t races, int racers, double from_s) {
    return limit.race_limit_s(races, racers, /*searching=*/false, /*most_s=*/20, at_s(from_s));
  };
  EXPECT_DOUBLE_EQ(share(5, 1, 40), 20.0 / 5 - 0.5);
  EXPECT_DOUBLE_EQ(share(5, 2, 40), 2 * 20.0 / 5 - 0.5) << "two run side by side";
  EXPECT_DOUBLE_EQ(share(1, 1, 10), 20) << "no more than without a limit";
  EXPECT_DOUBLE_EQ(share(100, 1, 40), 0.001) << "one heat";
  EXPECT_DOUBLE_EQ(share(1, 1, 59.6), 0) << "not even time for one heat";
  EXPECT_DOUBLE_EQ(share(1, 1, 70), 0);
}

TEST_F(TimeShares, ARaceDuringTheSearchTakesAThirdAtMost) {
  EXPECT_DOUBLE_EQ(limit.race_limit_s(1, 1, /*searching=*/true, /*most_s=*/100, at_s(0)), 20 - 0.5);
  EXPECT_DOUBLE_EQ(limit.race_limit_s(1, 1, /*searching=*/false, /*most_s=*/100, at_s(0)), 60 - 0.5);
}

TEST_F(TimeShares, HowLongRacesGoOnAfterTheirLimitIsLearnedFromThoseThatUsedItUp) {
  limit.count_race(/*took_ms=*/3'000, /*limit_s=*/20);  // it ended by itself
  EXPECT_DOUBLE_EQ(limit.race_limit_s(1, 1, false, 100, at_s(50)), 10 - 0.5);
  limit.count_race(/*took_ms=*/6'500, /*limit_s=*/5);  // 1.5 s late
  EXPECT_DOUBLE_EQ(limit.race_limit_s(1, 1, false, 100, at_s(50)), 10 - 1.0);
}

// A daemon that is turned by hand, with one worker that has one slot. A trial takes `trial_ms`, a heat of a
// race `heat_ms`, and whatever else happens takes no time.
class Daemon {
 public:
  Daemon(int64_t trial_ms, int64_t heat_ms, bool races = true)
      : trial_ms_(trial_ms), heat_ms_(heat_ms), races_(races) {
    start();
  }
  // As after kill -9: nothing is told to anybody, the store lives on.
  void restart() {
    coordinator->stop("restart");
    coordinator.reset();
    start();
  }
  void start() {
    CoordinatorOptions options;
    options.by_hand = true;
    options.resume_jobs = true;
    options.make_space = [](const JobRow::Task&) { return analytic_space(6); };
    options.check_task = [](const JobRow::Task&) { return Status::ok(); };
    coordinator = std::make_unique<Coordinator>(*store, clock, options);
    EXPECT_TRUE(coordinator->start().is_ok());
  }
  ~Daemon() { coordinator->stop("test is over"); }

  void submit(const std::string& request_id, double limit_s, int trials = 16) {
    v1::SubmitRequest request;
    request.set_request_id(request_id);
    for (int i = 0; i < kTasks; ++i) {
      v1::TaskSpec* task = request.add_tasks();
      task->set_workload_key(key_of(i));
      task->set_target(kAnalyticTarget);
      task->set_uses(i == kMostUsed ? 8 : 1);
    }
    request.set_trials(trials);
    request.set_search("random");
    request.mutable_stop()->set_time_limit_s(limit_s);
    v1::SubmitReply reply;
    const Status status = coordinator->submit(request, &reply);
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(reply.job_id(), "j1");
  }
  // Works until the job has ended; the time it took.
  double work_to_the_end() {
    const double took_s = work_for(1e9);
    if (!ended()) {
      ADD_FAILURE() << "it does not end";
      return 0;
    }
    return took_s;
  }
  // Works for so long, or until it has ended.
  double work_for(double most_s) {
    v1::RegisterRequest enter;
    enter.set_worker_id("w1");
    enter.set_incarnation("1");
    enter.set_protocol(1);
    enter.add_targets(kAnalyticTarget);
    enter.set_max_threads(4);
    enter.set_races(races_);
    v1::RegisterReply entered;
    EXPECT_TRUE(coordinator->register_worker(enter, &entered).is_ok());
    const int64_t begun_ms = clock.now_ms();
    v1::SyncRequest request;
    const auto worked_s = [&] { return static_cast<double>(clock.now_ms() - begun_ms) / 1000; };
    for (int i = 0; i < 20'000 && !ended() && worked_s() < most_s; ++i) {
      request.set_session(entered.session());
      request.set_free_slots(1);
      const v1::SyncReply reply = sync(request);
      request.Clear();
      for (const v1::Lease& lease : reply.leases()) answer(lease, request);
      if (!unfit_.empty()) {
        request.set_unfit(unfit_);
        clock.pass(50);  // nothing else moves it
      }
      if (reply.leases_size() == 0) clock.pass(kIdleMs);
    }
    return worked_s();
  }
  bool ended() const {
    const JobState state = store->job("j1")->state;
    return state != JobState::kQueued && state != JobState::kRunning;
  }
  std::vector<int64_t> trials_of_tasks() const {
    std::vector<int64_t> count(kTasks);
    const std::vector<TrialWithRecord> trials = store->trials("j1").value();
    for (const TrialWithRecord& t : trials)
      count[static_cast<size_t>(t.trial.task_index)] += t.record ? 1 : 0;
    return count;
  }
  int events_with(const std::string& words) const {
    int count = 0;
    const auto events = store->events("j1", 0, 1000).value();
    for (const auto& [seq, json] : events) count += json.find(words) != std::string::npos ? 1 : 0;
    return count;
  }

  TemporaryFolder folder;
  WorkClock clock;
  std::unique_ptr<Store> store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  std::unique_ptr<Coordinator> coordinator;
  bool all_fail = false;
  bool no_room_for_races = false;  // the worker gives its first race back, and takes nothing more

 private:
  static constexpr int64_t kIdleMs = 10;  // that pass while the worker has nothing

  v1::SyncReply sync(const v1::SyncRequest& request) {
    v1::SyncReply reply;
    bool is_answered = false;
    coordinator->sync(request, &reply, [&](const Status& status) {
      EXPECT_TRUE(status.is_ok()) << status.message();
      is_answered = true;
    });
    coordinator->turn();
    EXPECT_TRUE(is_answered) << "a Sync that waits for nothing";
    return reply;
  }
  void answer(const v1::Lease& lease, v1::SyncRequest& request) {
    if (no_room_for_races && lease.finalists_size() > 0) {
      unfit_ = "the disk is full";
      v1::HeldLease* back = request.add_returned();
      back->set_trial_id(lease.trial_id());
      back->set_attempt(lease.attempt());
      return;
    }
    if (lease.finalists_size() == 0) {
      clock.pass(trial_ms_);
      MeasureRecord record = analytic_record(lease.trial_id(), lease.attempt(), lease.config());
      if (all_fail) {
        record.outcome = Outcome::kCrashed;
        record.run_ns = record.cpu_ns = {};
      }
      return to_proto(record, request.add_results());
    }
    EXPECT_GT(lease.race().limit_s(), 0) << "0 would be the default";
    // No heat is begun after the limit.
    const auto limit_ms = static_cast<int64_t>(1000 * lease.race().limit_s());
    clock.pass((limit_ms / heat_ms_ + 1) * heat_ms_);
    v1::RaceResult* r = request.add_races();
    r->set_race_id(lease.trial_id());
    r->set_attempt(lease.attempt());
    for (const v1::RaceCandidate& c : lease.finalists()) {
      v1::RaceFinalist* f = r->add_finalists();
      f->set_trial_id(c.trial_id());
      f->add_samples_ns(5000);
      f->add_sentinel_ns(250);
      f->add_process(0);
      r->add_tie_set(c.trial_id());
    }
    r->set_winner(lease.finalists(0).trial_id());
    r->set_time_ns(5000);
    r->set_time_low_ns(4950);
    r->set_time_high_ns(5050);
    r->set_ratio(2);
    r->set_ratio_low(1.98);
    r->set_ratio_high(2.02);
    *r->mutable_options() = lease.race();
    const Environment here{.hardware = "formula", .toolchain = "none", .host = "h"};
    to_proto(here, r->mutable_environment());
  }

  const int64_t trial_ms_, heat_ms_;
  const bool races_;
  std::string unfit_;
};

TEST(TimeLimit, TasksThatWereNotReachedAreNoFailureAndTheNextSubmissionGoesOnWithThem) {
  Daemon daemon(/*trial_ms=*/1'000, /*heat_ms=*/1'000);
  daemon.submit("r1", kLimitS);
  EXPECT_NEAR(daemon.work_to_the_end(), kLimitS, 2);
  const std::vector<int64_t> trials = daemon.trials_of_tasks();
  const auto unreached = std::count(trials.begin(), trials.end(), 0);
  EXPECT_NEAR(static_cast<double>(unreached), kTasks - kLimitS, 2);
  EXPECT_EQ(std::count(trials.begin(), trials.end(), 1), kTasks - unreached);
  EXPECT_EQ(trials[kMostUsed], 1);
  const JobRow job = daemon.store->job("j1").value();
  EXPECT_EQ(job.state, JobState::kFinished) << job.message;
  EXPECT_EQ(job.message, str(unreached, " of 31 tasks were not reached within the time limit of 20 s; ",
                             "submit again to continue"));

  daemon.submit("r2", kLimitS);
  daemon.work_to_the_end();
  EXPECT_THAT(daemon.trials_of_tasks(), Not(::testing::Contains(0)));
  EXPECT_EQ(daemon.store->job("j1")->message, "");
}

TEST(TimeLimit, HoldsForTrialsAndRacesTogether) {
  Daemon daemon(/*trial_ms=*/100, /*heat_ms=*/700);
  daemon.submit("r1", kLimitS);
  EXPECT_NEAR(daemon.work_to_the_end(), kLimitS, 2);
  EXPECT_EQ(daemon.store->job("j1")->state, JobState::kFinished);
  EXPECT_EQ(daemon.store->job("j1")->message, "");
  const std::vector<int64_t> trials = daemon.trials_of_tasks();
  EXPECT_THAT(trials, Each(::testing::Ge(1)));
  EXPECT_GE(trials[kMostUsed], 16);
  // The search has two thirds of the time at least.
  EXPECT_GE(std::accumulate(trials.begin(), trials.end(), int64_t{0}), 120);
  const auto races = static_cast<int>(daemon.store->races("j1")->size());
  EXPECT_GE(races, 4);
  EXPECT_EQ(races + daemon.events_with("not raced: the time limit"), kTasks);
  EXPECT_EQ(daemon.events_with("is tuned"), kTasks);
  EXPECT_EQ(daemon.store->races("j1")->front().task_index, kMostUsed) << "where most is to be saved";
}

TEST(TimeLimit, WithTimeEnoughEveryTaskRacesAsLongAsWithoutALimit) {
  Daemon daemon(/*trial_ms=*/10, /*heat_ms=*/1'000);
  daemon.submit("r1", /*limit_s=*/10'000, /*trials=*/4);
  daemon.work_to_the_end();
  const std::vector<RaceRow> races = daemon.store->races("j1").value();
  ASSERT_EQ(races.size(), static_cast<size_t>(kTasks));
  for (const RaceRow& race : races) EXPECT_EQ(race.options.limit_s, RaceOptions{}.limit_s);
  EXPECT_THAT(daemon.trials_of_tasks(), Each(4));
}

// Killed after 8 s and after 4 s more; each time nobody is there for a minute.
TEST(TimeLimit, C3GoesOnWhereItStoodAfterARestartOfTheDaemon) {
  Daemon daemon(/*trial_ms=*/100, /*heat_ms=*/700);
  daemon.submit("r1", /*limit_s=*/15);
  double worked_s = 0;
  for (const double part_s : {8.0, 4.0}) {
    worked_s += daemon.work_for(part_s);
    ASSERT_FALSE(daemon.ended());
    daemon.clock.pass(60'000);
    daemon.restart();
  }
  const double left_s = daemon.work_to_the_end();
  EXPECT_LE(worked_s + left_s, 20);
  EXPECT_GE(left_s, 1) << "the time while nobody was there does not count";
  EXPECT_EQ(daemon.store->job("j1")->state, JobState::kFinished);
  // Who submits again begins a new run.
  daemon.submit("r2", kLimitS, /*trials=*/1'000);
  EXPECT_NEAR(daemon.work_to_the_end(), kLimitS, 2);
}

TEST(TimeLimit, NoTimeIsKeptForRacesNobodyCanRun) {
  Daemon daemon(/*trial_ms=*/100, /*heat_ms=*/1'000, /*races=*/false);
  daemon.submit("r1", kLimitS);
  EXPECT_NEAR(daemon.work_to_the_end(), kLimitS, 1);
  const std::vector<int64_t> trials = daemon.trials_of_tasks();
  EXPECT_GE(std::accumulate(trials.begin(), trials.end(), int64_t{0}), 190);
}

TEST(TimeLimit, ARaceThatNoWorkerTakesEndsWithIt) {
  Daemon daemon(/*trial_ms=*/100, /*heat_ms=*/700);
  daemon.no_room_for_races = true;
  daemon.submit("r1", kLimitS);
  EXPECT_GE(daemon.work_to_the_end(), kLimitS);
  EXPECT_EQ(daemon.store->job("j1")->state, JobState::kFinished);
  EXPECT_THAT(*daemon.store->races("j1"), ::testing::IsEmpty());
  EXPECT_EQ(daemon.events_with("its race has no result (no worker took it within the time limit)"), 1);
  EXPECT_THAT(*daemon.store->open_races("j1"), ::testing::IsEmpty());
  EXPECT_EQ(daemon.events_with("no worker takes work of"), 1) << "somebody who watches learns why it stands";
  EXPECT_EQ(daemon.events_with("(w1: the disk is full). The job goes on when one does"), 1);
}

TEST(TimeLimit, TasksThatHadTrialsButNoRightAnswerAreStillAFailure) {
  Daemon daemon(/*trial_ms=*/1'000, /*heat_ms=*/1'000);
  daemon.all_fail = true;
  daemon.submit("r1", kLimitS);
  daemon.work_to_the_end();
  const JobRow job = daemon.store->job("j1").value();
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_THAT(job.message, HasSubstr(" of 31 tasks have no right answer that was timed in full ("));
  EXPECT_THAT(job.message, HasSubstr(" of 31 tasks were not reached within the time limit of 20 s"));
}

// Turns of jobs: job j1 wants 20 trials, and no worker is there.
class SearchAlone : public testing::SearchRoom {
 protected:
  explicit SearchAlone(bool by_hand = true) : SearchRoom(by_hand) {
    EXPECT_TRUE(store_->add_job(row_).is_ok());
    Locked(farm_)->jobs.add(row_, row_.trials, clock_.now);
    search_.start();
  }
  std::string events() const {
    std::string text;
    const std::vector<v1::JobEvent> events = news_.after("j1", 0).value();
    for (const v1::JobEvent& event : events) text += event.message() + "\n";
    return text;
  }
  bool turn() { return search_.wake("j1"), search_.take_turn(); }

  const JobRow row_{
      .id = "j1", .tasks = {{testing::kAnalyticKey, kAnalyticTarget}}, .trials = 20, .search = "random"};
};

TEST_F(SearchAlone, AJobThatIsWokenHasOneTurnAfterWhichWhatIsStoredMayBeLeased) {
  EXPECT_FALSE(search_.take_turn()) << "nobody has woken it";
  search_.wake("j1");
  search_.wake("j1");
  EXPECT_TRUE(search_.take_turn());
  EXPECT_FALSE(search_.take_turn());
  EXPECT_EQ(job("j1")->state(), JobState::kRunning);
  EXPECT_EQ(store_->job("j1")->state, JobState::kRunning);
  EXPECT_GT(queued(), 0);
  EXPECT_EQ(open_trials("j1").size(), queued());
  EXPECT_GT(desk_woken_, 0);
}

TEST_F(SearchAlone, JobsThatRunHaveATurnFourTimesASecond) {
  clock_.now += 249;
  search_.tick();
  EXPECT_FALSE(search_.take_turn());
  clock_.now += 1;
  search_.tick();
  EXPECT_TRUE(search_.take_turn());
  search_.tick();
  EXPECT_FALSE(search_.take_turn());
}

TEST_F(SearchAlone, ACancelledJobEndsWithItsTurnAndLeavesNothingOpen) {
  ASSERT_TRUE(turn());
  job("j1")->ask_to_cancel();
  ASSERT_TRUE(turn());
  EXPECT_EQ(job("j1")->state(), JobState::kCancelled);
  EXPECT_EQ(store_->job("j1")->state, JobState::kCancelled);
  EXPECT_EQ(queued(), 0);
  EXPECT_TRUE(open_trials("j1").empty());
  EXPECT_THAT(events(), HasSubstr("cancelled"));
}

TEST_F(SearchAlone, AJobThatNobodyMeasuresSaysSoOnceAfterAWhile) {
  ASSERT_TRUE(turn());
  EXPECT_THAT(events(), Not(HasSubstr("no worker measures")));
  for (int i = 0; i < 3; ++i) {
    clock_.now += 5'001;
    ASSERT_TRUE(turn());
  }
  const std::string told = events(), line = "no worker measures";
  EXPECT_THAT(told, HasSubstr(line));
  EXPECT_EQ(told.find(line), told.rfind(line));
}

TEST_F(SearchAlone, WhatWasOpenBeforeARestartMayBeLeasedBeforeTheFirstTurn) {
  ASSERT_TRUE(turn());
  const size_t before = queued();
  {
    const Locked farm(farm_);
    farm->leases.forget_job("j1");
    ASSERT_EQ(farm->leases.queued(), 0);
  }
  ASSERT_TRUE(search_.queue_open_trials(*job("j1")).is_ok());
  EXPECT_EQ(queued(), before);
}

class SearchInThreads : public SearchAlone {
 protected:
  SearchInThreads() : SearchAlone(/*by_hand=*/false) {}
};

TEST_F(SearchInThreads, WakingIsEnoughAndAfterStoppingTheJobCanBeContinued) {
  search_.wake("j1");
  {
    Locked farm(farm_);
    ASSERT_TRUE(news_.wait(farm, std::chrono::seconds(60),
                           [&] { return farm->jobs.find("j1")->event_version() > 0; }));
  }
  search_.stop();
  EXPECT_EQ(store_->job("j1")->state, JobState::kQueued);
  search_.stop();
}

}  // namespace
}  // namespace tuner
