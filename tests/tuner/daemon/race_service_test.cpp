// Races in the daemon: who is asked, what is stored, and what the loss of a worker costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "proto/convert.h"
#include "tests/db/resolve_fixture.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/analytic_task.h"
#include "tests/tuner/daemon/sync_now.h"
#include "tuner/daemon/coordinator.h"

namespace tuner {
namespace {

using testing::analytic_record;
using testing::analytic_space;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;
using ::testing::SizeIs;

class Daemon {
 public:
  explicit Daemon(int64_t race_wait_ms = 30'000) { start(race_wait_ms, /*resume=*/false); }
  void restart() {
    coordinator->stop("restart");
    coordinator.reset();
    store.reset();
    store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
    start(30'000, /*resume=*/true);
  }
  void start(int64_t race_wait_ms, bool resume) {
    CoordinatorOptions options;
    options.resume_jobs = resume;
    options.race_wait_ms = race_wait_ms;
    options.take_over_ms = 0;  // a worker that died and is back
    options.leases.max_faults = 2;
    options.make_space = [](const JobRow::Task&) { return analytic_space(6); };
    options.check_task = [](const JobRow::Task&) { return Status::ok(); };
    coordinator = std::make_unique<Coordinator>(*store, clock, options);
    EXPECT_TRUE(coordinator->start().is_ok());
  }
  ~Daemon() { coordinator->stop("test is over"); }

  void submit(int trials) {
    v1::SubmitRequest request;
    request.set_request_id("r1");
    v1::TaskSpec* task = request.add_tasks();
    task->set_workload_key(kAnalyticKey);
    task->set_target(kAnalyticTarget);
    request.set_trials(trials);
    request.set_search("random");
    v1::SubmitReply reply;
    const Status status = coordinator->submit(request, &reply);
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
  std::string enter(const std::string& worker, bool races, const std::string& incarnation = "1") {
    v1::RegisterRequest request;
    request.set_worker_id(worker);
    request.set_incarnation(incarnation);
    request.set_protocol(1);
    request.add_targets(kAnalyticTarget);
    request.set_max_threads(4);
    request.set_races(races);
    v1::RegisterReply reply;
    EXPECT_TRUE(coordinator->register_worker(request, &reply).is_ok());
    return reply.session();
  }
  v1::SyncReply sync(v1::SyncRequest request, const std::string& session, int slots = 4, int wait_ms = 100) {
    request.set_session(session);
    request.set_free_slots(slots);
    request.set_wait_ms(wait_ms);
    v1::SyncReply reply;
    const Status status = testing::sync_now(*coordinator, request, &reply);
    EXPECT_TRUE(status.is_ok()) << status.message();
    return reply;
  }
  // Answers trials until a race is leased, or the job has ended; then the race's lease, or one without
  // finalists.
  v1::Lease work_until_race(const std::string& session) {
    v1::SyncRequest request;
    for (int i = 0; i < 300 && !ended(); ++i) {
      const v1::SyncReply reply = sync(request, session);
      request.Clear();
      for (const v1::Lease& lease : reply.leases()) {
        if (lease.finalists_size() > 0) return lease;
        to_proto(analytic_record(lease.trial_id(), lease.attempt(), lease.config()), request.add_results());
      }
    }
    return {};
  }
  bool ended() const {
    const JobState state = store->job("j1")->state;
    return state != JobState::kQueued && state != JobState::kRunning;
  }
  bool wait_for_end() const {
    return wait_until(std::chrono::seconds(30), [&] { return ended(); });
  }
  std::string events() const {
    std::string all;
    const auto events = store->events("j1", 0, 1000).value();
    for (const auto& [seq, json] : events) all += json + "\n";
    return all;
  }

  TemporaryFolder folder;
  SteadyClock clock;
  std::unique_ptr<Store> store = Store::open(folder.file("db"), Store::Mode::kWrite).value();
  std::unique_ptr<Coordinator> coordinator;
};

// The finalist at `winner` takes 500 ns, the others 600.
v1::SyncRequest won_by(const v1::Lease& lease, int winner) {
  v1::SyncRequest request;
  v1::RaceResult* r = request.add_races();
  r->set_race_id(lease.trial_id());
  r->set_attempt(lease.attempt());
  for (int i = 0; i < lease.finalists_size(); ++i) {
    v1::RaceFinalist* f = r->add_finalists();
    f->set_trial_id(lease.finalists(i).trial_id());
    for (int process = 0; process < 3; ++process) {
      f->add_samples_ns(i == winner ? 500 : 600);
      f->add_sentinel_ns(250);
      f->add_process(process);
    }
  }
  r->set_winner(lease.finalists(winner).trial_id());
  r->add_tie_set(r->winner());
  r->set_time_ns(500);
  r->set_time_low_ns(495);
  r->set_time_high_ns(505);
  r->set_ratio(2);
  r->set_ratio_low(1.98);
  r->set_ratio_high(2.02);
  r->set_regret_bound(0.001);
  *r->mutable_options() = lease.race();
  to_proto(Environment{.hardware = "formula", .toolchain = "none", .host = "h"}, r->mutable_environment());
  return request;
}

v1::SyncRequest holding(const v1::Lease& lease, v1::LeasePhase phase) {
  v1::SyncRequest request;
  v1::HeldLease* held = request.add_held();
  held->set_trial_id(lease.trial_id());
  held->set_attempt(lease.attempt());
  held->set_fencing(lease.fencing());
  held->set_phase(phase);
  return request;
}

TEST(RaceService, TheBestTrialsRaceAndTheWinnerIsTheAnswer) {
  Daemon daemon;
  daemon.submit(64);
  const std::string session = daemon.enter("w1", /*races=*/true);
  const v1::Lease race = daemon.work_until_race(session);
  ASSERT_GE(race.finalists_size(), 3);
  EXPECT_LE(race.finalists_size(), 16);
  EXPECT_EQ(race.race().processes(), RaceOptions{}.processes);
  // Fastest first, and every one of them right.
  double before = 0;
  for (const v1::RaceCandidate& c : race.finalists()) {
    const TrialWithRecord trial = daemon.store->trial(c.trial_id()).value();
    EXPECT_EQ(trial.record->outcome, Outcome::kOk);
    EXPECT_EQ(trial.trial.config, c.config());
    EXPECT_GE(record_time_ns(*trial.record), before);
    before = record_time_ns(*trial.record);
  }
  EXPECT_FALSE(daemon.ended()) << "the job waits for its race";
  const v1::SyncReply reply = daemon.sync(won_by(race, 2), session);
  ASSERT_EQ(reply.acks_size(), 1);
  EXPECT_EQ(reply.acks(0).trial_id(), race.trial_id());
  ASSERT_TRUE(daemon.wait_for_end());

  v1::QueryRequest query;
  query.mutable_task()->set_workload_key(kAnalyticKey);
  query.mutable_task()->set_target(kAnalyticTarget);
  v1::QueryReply answer;
  ASSERT_TRUE(daemon.coordinator->answers().query(query, &answer).is_ok());
  EXPECT_EQ(answer.tuned().trial_id(), race.finalists(2).trial_id());
  EXPECT_EQ(answer.tuned().time_ns(), 500);
  EXPECT_EQ(answer.tuned().time_high_ns(), 505);
  EXPECT_EQ(answer.tuned().ratio_low(), 1.98);
  EXPECT_EQ(answer.tuned().finalists(), race.finalists_size());
  EXPECT_EQ(answer.tuned().tied(), 1);
  const std::vector<RaceRow> races = daemon.store->races("j1").value();
  ASSERT_THAT(races, SizeIs(1));
  EXPECT_THAT(races[0].finalists[2].samples_ns, ElementsAre(500, 500, 500));
  EXPECT_THAT(daemon.events(), HasSubstr("finalists race"));
}

TEST(RaceService, WhoWatchesHearsHowFarARaceIs) {
  Daemon daemon;
  daemon.submit(32);
  const std::string session = daemon.enter("w1", /*races=*/true);
  const v1::Lease race = daemon.work_until_race(session);
  ASSERT_GE(race.finalists_size(), 3);
  v1::WatchRequest watch;
  watch.set_job_id("j1");
  // The first progress in which this is so.
  const auto progress_when = [&](const auto& so) {
    std::optional<v1::Progress> found;
    (void)daemon.coordinator->watch(
        watch,
        [&](const v1::JobEvent& event) {
          if (event.has_progress() && so(event.progress())) found = event.progress();
          return !found;
        },
        [] { return false; });
    return found;
  };
  const auto leased = progress_when([](const v1::Progress& p) { return p.races_size() == 1; });
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->races(0).course().finalists(), race.finalists_size());
  EXPECT_EQ(leased->races(0).course().most_processes(), 0) << "it has not begun";
  EXPECT_GT(leased->default_ns(), 0);

  v1::SyncRequest request;
  v1::HeldLease* held = request.add_held();
  held->set_trial_id(race.trial_id());
  held->set_attempt(race.attempt());
  held->set_fencing(race.fencing());
  held->set_phase(v1::RUNNING);
  held->mutable_race()->set_finalists(race.finalists_size());
  held->mutable_race()->set_racing(2);
  held->mutable_race()->set_processes(4);
  held->mutable_race()->set_most_processes(9);
  daemon.sync(request, session, /*slots=*/0, /*wait_ms=*/1);
  const auto running = progress_when(
      [](const v1::Progress& p) { return p.races_size() == 1 && p.races(0).course().processes() > 0; });
  ASSERT_TRUE(running);
  EXPECT_EQ(running->races(0).task_index(), 0);
  EXPECT_EQ(running->races(0).course().racing(), 2);
  EXPECT_EQ(running->races(0).course().most_processes(), 9);
  daemon.sync(won_by(race, 0), session);
  EXPECT_TRUE(progress_when([](const v1::Progress& p) { return p.races_size() == 0; }));
  ASSERT_TRUE(daemon.wait_for_end());
}

TEST(RaceService, AWorkerThatCannotRaceIsNotAskedTo) {
  Daemon daemon;
  daemon.submit(32);
  EXPECT_EQ(daemon.work_until_race(daemon.enter("old", /*races=*/false)).finalists_size(), 0);
  ASSERT_TRUE(daemon.wait_for_end());
  EXPECT_EQ(daemon.store->job("j1")->state, JobState::kFinished);
  EXPECT_THAT(daemon.events(), HasSubstr("not raced: no worker here can"));
  EXPECT_EQ(daemon.store->best(kAnalyticKey, kAnalyticTarget)->race_id, 0);
}

TEST(RaceService, ARaceLostWithItsWorkerIsGivenToAnother) {
  Daemon daemon;
  daemon.submit(32);
  const v1::Lease lost = daemon.work_until_race(daemon.enter("w1", true));
  ASSERT_GT(lost.finalists_size(), 0);
  const std::string session = daemon.enter("w1", true, /*incarnation=*/"2");  // it died and is back
  const v1::Lease again = daemon.work_until_race(session);
  EXPECT_EQ(again.trial_id(), lost.trial_id());
  EXPECT_GT(again.fencing(), lost.fencing());
  EXPECT_EQ(again.attempt(), lost.attempt() + 1);
  daemon.sync(won_by(again, 0), session);
  ASSERT_TRUE(daemon.wait_for_end());
  EXPECT_NE(daemon.store->best(kAnalyticKey, kAnalyticTarget)->race_id, 0);
}

TEST(RaceService, TwoWorkersLostOnItMakeItPoisonAndTheTrialsTimesStand) {
  Daemon daemon;
  daemon.submit(32);
  for (const std::string worker : {"w1", "w2"}) {
    const std::string session = daemon.enter(worker, true);
    const v1::Lease race = daemon.work_until_race(session);
    ASSERT_GT(race.finalists_size(), 0);
    daemon.sync(holding(race, v1::RUNNING), session, /*slots=*/0, /*wait_ms=*/0);
    daemon.enter(worker, false, "2");  // it died
  }
  ASSERT_TRUE(daemon.wait_for_end());
  EXPECT_EQ(daemon.store->job("j1")->state, JobState::kFinished);
  EXPECT_THAT(daemon.events(), HasSubstr("its race has no result (poison: workers were lost 2 times"));
}

TEST(RaceService, WithItsLastRacingWorkerGoneAJobDoesNotWaitForEver) {
  Daemon daemon(/*race_wait_ms=*/300);
  daemon.submit(32);
  ASSERT_GT(daemon.work_until_race(daemon.enter("w1", true)).finalists_size(), 0);
  daemon.enter("w1", /*races=*/false, "2");  // an older program took its place
  ASSERT_TRUE(daemon.wait_for_end());
  EXPECT_THAT(daemon.events(), HasSubstr("the workers that could have run it have gone"));
}

// Issue 18, "What was seen", 7: a restart during a race published the unraced answer.
TEST(RaceService, Seen7ARaceOutlivesItsDaemonAndItsWorkersResultCounts) {
  Daemon daemon;
  daemon.submit(32);
  const std::string session = daemon.enter("w1", true);
  const v1::Lease race = daemon.work_until_race(session);
  ASSERT_GT(race.finalists_size(), 0);
  daemon.restart();
  EXPECT_THAT(daemon.store->open_races("j1").value(), SizeIs(1));
  // Long enough for a daemon that publishes what it has: the worker is not back yet.
  let_pass(std::chrono::milliseconds(400));
  EXPECT_THAT(daemon.events(), ::testing::Not(HasSubstr("is tuned")));
  const std::string again = daemon.enter("w1", true);
  EXPECT_EQ(daemon.sync(holding(race, v1::RUNNING), again, /*slots=*/4, /*wait_ms=*/300).leases_size(), 0)
      << "it is under way: not given away a second time";
  EXPECT_EQ(daemon.sync(won_by(race, 1), again).acks_size(), 1);
  ASSERT_TRUE(daemon.wait_for_end());
  const std::vector<RaceRow> races = daemon.store->races("j1").value();
  ASSERT_THAT(races, SizeIs(1));
  EXPECT_EQ(races[0].winner_trial_id, race.finalists(1).trial_id());
  EXPECT_EQ(daemon.store->best(kAnalyticKey, kAnalyticTarget)->race_id, races[0].id);
  EXPECT_THAT(daemon.store->open_races("j1").value(), SizeIs(0));
}

TEST(RaceService, ARaceThatNobodyHadIsGivenOutAfterARestart) {
  Daemon daemon;
  daemon.submit(32);
  const v1::Lease lost = daemon.work_until_race(daemon.enter("w1", true));
  daemon.enter("w1", /*races=*/false, "2");  // it died and cannot race any more: the race is queued
  daemon.restart();
  const std::string session = daemon.enter("w2", true);
  const v1::Lease race = daemon.work_until_race(session);
  EXPECT_EQ(race.trial_id(), lost.trial_id());
  EXPECT_GT(race.fencing(), lost.fencing());
  daemon.sync(won_by(race, 0), session);
  ASSERT_TRUE(daemon.wait_for_end());
  EXPECT_THAT(daemon.store->races("j1").value(), SizeIs(1));
}

TEST(RaceService, AResultSentTwiceIsStoredOnceAndOneThatContradictsItselfNever) {
  Daemon daemon;
  daemon.submit(32);
  const std::string session = daemon.enter("w1", true);
  const v1::Lease race = daemon.work_until_race(session);
  v1::SyncRequest request = won_by(race, 0);
  *request.add_races() = request.races(0);
  EXPECT_EQ(daemon.sync(request, session).acks_size(), 2);
  EXPECT_EQ(daemon.sync(won_by(race, 1), session).acks_size(), 1) << "late, and forgotten by its worker";
  ASSERT_TRUE(daemon.wait_for_end());
  EXPECT_THAT(daemon.store->races("j1").value(), SizeIs(1));

  Daemon other;
  other.submit(32);
  const std::string liar = other.enter("w1", true);
  v1::SyncRequest wrong = won_by(other.work_until_race(liar), 0);
  wrong.mutable_races(0)->mutable_finalists(1)->add_process(3);
  EXPECT_EQ(other.sync(wrong, liar).acks_size(), 1);
  ASSERT_TRUE(other.wait_for_end());
  EXPECT_THAT(other.store->races("j1").value(), SizeIs(0));
  EXPECT_THAT(other.events(), HasSubstr("expected as many sentinel times and processes as samples"));
}

TEST(RaceService, ARemeasurementIsAnsweredAndNotStored) {
  Daemon daemon;
  daemon.submit(32);
  const std::string session = daemon.enter("w1", true);
  const v1::Lease race = daemon.work_until_race(session);
  daemon.sync(won_by(race, 0), session);
  ASSERT_TRUE(daemon.wait_for_end());
  v1::RemeasureRequest request;
  request.set_trial_id(race.finalists(0).trial_id());
  request.mutable_options()->set_processes(3);
  v1::RaceResult result;
  Status status;
  std::thread caller([&] { status = daemon.coordinator->remeasure(request, &result, [] { return false; }); });
  v1::SyncReply reply;
  for (int i = 0; i < 100 && reply.leases_size() == 0; ++i) reply = daemon.sync({}, session);
  ASSERT_EQ(reply.leases_size(), 1);
  EXPECT_EQ(reply.leases(0).race().processes(), 3);
  ASSERT_EQ(reply.leases(0).finalists_size(), 1);
  daemon.sync(won_by(reply.leases(0), 0), session);
  caller.join();
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(result.ratio(), 2);
  EXPECT_THAT(daemon.store->races("j1").value(), SizeIs(1));
}

TEST(RaceService, CancellingAJobRevokesItsRace) {
  Daemon daemon;
  daemon.submit(32);
  const std::string session = daemon.enter("w1", true);
  const v1::Lease race = daemon.work_until_race(session);
  v1::CancelRequest cancel;
  cancel.set_job_id("j1");
  v1::CancelReply cancelled;
  ASSERT_TRUE(daemon.coordinator->cancel(cancel, &cancelled).is_ok());
  const v1::SyncReply reply = daemon.sync(holding(race, v1::RUNNING), session);
  ASSERT_EQ(reply.revoked_size(), 1);
  EXPECT_EQ(reply.revoked(0).trial_id(), race.trial_id());
}

// A daemon of the real templates and the real resolver, on a database that answers before any trial of the
// job.
class KnownAnswers : public ResolveFixture {
 protected:
  // Submits the task, measures its trials and wins no race: whatever is known is ten times as slow as all
  // else, so that only its name brings it into the race. Returns the race's lease.
  v1::Lease race_after(const std::string& known) {
    CoordinatorOptions options;
    options.by_hand = true;
    coordinator_ = std::make_unique<Coordinator>(*store_, clock_, options);
    EXPECT_TRUE(coordinator_->start().is_ok());
    v1::SubmitRequest request;
    request.set_request_id("r");
    v1::TaskSpec* const task = request.add_tasks();
    task->set_workload_key(asked_.key());
    task->set_target(cpu_.name());
    request.set_trials(12);
    request.set_search("random");
    request.set_fresh(true);
    v1::SubmitReply reply;
    const Status submitted = coordinator_->submit(request, &reply);
    EXPECT_TRUE(submitted.is_ok()) << submitted.message();
    coordinator_->turn();
    job_ = reply.job_id();
    v1::RegisterRequest hello;
    hello.set_worker_id("w");
    hello.set_incarnation("1");
    hello.set_protocol(1);
    hello.add_targets(cpu_.name());
    hello.set_max_threads(1);
    hello.set_races(true);
    v1::RegisterReply here;
    EXPECT_TRUE(coordinator_->register_worker(hello, &here).is_ok());
    v1::SyncRequest news;
    for (int round = 0; round < 50; ++round) {
      news.set_session(here.session());
      news.set_free_slots(2);
      v1::SyncReply told;
      Status status;
      coordinator_->sync(news, &told, [&](const Status& s) { status = s; });
      clock_.now += 100;
      coordinator_->turn();
      EXPECT_TRUE(status.is_ok()) << status.message();
      news.Clear();
      for (const v1::Lease& lease : told.leases()) {
        if (lease.finalists_size() > 0) return lease;
        const double ns = lease.config() == known ? 1e6 : 1e5 + 5e3 * static_cast<double>(round);
        MeasureRecord record = ok_record(lease.trial_id(), {ns, ns, ns});
        record.attempt = lease.attempt();
        record.environment = {.hardware = "cpu X", .toolchain = "llvm 22", .host = "h"};
        to_proto(record, news.add_results());
      }
    }
    ADD_FAILURE() << "no race was leased";
    return {};
  }
  // The job's trials in the order in which they were proposed.
  std::vector<TrialRow> trials() const {
    std::vector<TrialRow> rows;
    const std::vector<TrialWithRecord> all = store_->trials(job_).value();
    for (const TrialWithRecord& t : all) rows.push_back(t.trial);
    return rows;
  }
  // That `known` was this job's second trial, and races as the answer so far.
  void expect_raced(const std::string& known) {
    const v1::Lease race = race_after(known);
    const std::vector<TrialRow> mine = trials();
    ASSERT_GE(mine.size(), 2u);
    EXPECT_NE(mine[0].config, known) << "the default comes first";
    EXPECT_EQ(mine[1].config, known) << "then what was known";
    std::vector<std::string> configs;
    for (const v1::RaceCandidate& c : race.finalists()) configs.push_back(c.config());
    EXPECT_THAT(configs, ::testing::Contains(known)) << "however slow it was";
    EXPECT_EQ(race.default_trial(), mine[0].id);
    stored_ = race.stored_trial();
    second_ = mine[1].id;
  }

  struct : Clock {
    int64_t now = 1'000'000;
    int64_t now_ms() const override { return now; }
  } clock_;
  const Workload asked_ = product(16, 16, 16);
  std::unique_ptr<Coordinator> coordinator_;
  std::string job_, stored_, second_;
};

TEST_F(KnownAnswers, OfTheTaskItselfIsTriedSecondAndRaced) {
  const std::string known = other_config(asked_, cpu_);
  tuned(asked_, cpu_, {{known, 9e4}});
  expect_raced(known);
}

TEST_F(KnownAnswers, OfARelativeIsTriedSecondAndRacesAsTheAnswerSoFar) {
  const std::string known = other_config(asked_, cpu_);
  tuned(product(16, 16, 16, /*bias=*/true), cpu_, {{known, 9e4}});
  ASSERT_EQ(Resolver(store_.get()).resolve(asked_, cpu_)->kind, AnswerKind::kSameFamily);
  expect_raced(known);
  EXPECT_EQ(stored_, second_);
}

TEST_F(KnownAnswers, OfACoverSetIsTriedSecondAndRacesAsTheAnswerSoFar) {
  const std::string known = other_config(asked_, cpu_);
  LearnedRow row{.kind = "cover", .op = "matmul", .target = cpu_.name()};
  row.document = str(R"({"version": 1, "op": "matmul", "target": ")", cpu_.name(),
                     R"(", "configs": [{"template": "matmul_cpu", "template_version": )", matmul().version(),
                     R"(, "config": ")", known,
                     R"("}], "tree": [{"use": 0}], "columns": 8, "worst": 0.8, "mean": 0.9})");
  ASSERT_TRUE(store_->add_learned(row).is_ok());
  ASSERT_EQ(Resolver(store_.get()).resolve(asked_, cpu_)->kind, AnswerKind::kPortable);
  expect_raced(known);
  EXPECT_EQ(stored_, second_);
}

TEST_F(KnownAnswers, WhereNothingIsKnownTheSearchBeginsAfterTheDefault) {
  const v1::Lease race = race_after("");
  EXPECT_EQ(race.stored_trial(), "");
  EXPECT_EQ(race.default_trial(), trials()[0].id);
  const std::vector<ProposalRow> proposals = store_->proposals(job_).value();
  for (const ProposalRow& p : proposals) EXPECT_GT(p.asked, 0);
}

}  // namespace
}  // namespace tuner
