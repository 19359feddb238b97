// A worker that lies beside one that does not: no answer changes, no honest trial is cut or closed.
#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <functional>
#include <limits>

#include "db/quarantine.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/daemon/tables/belief.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::HasSubstr;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;

// What becomes of a lie.
enum class Fate {
  kQuarantined,  // kept for people, its trial is measured elsewhere
  kRefused,      // not leased to its sender, or unreadable: stored nowhere
  kHarmless,     // stored as what it is, or no claim at all
};

// What a liar can see: its own lease, one of the honest worker, and a trial that nobody has yet.
struct Scene {
  v1::Lease own, others, next;
  std::string queued_trial;
};

struct Lie {
  const char* name;
  Fate fate;
  std::function<void(const Scene&, v1::SyncRequest&)> tell;
};

// A result for the own lease with the given times.
v1::MeasureRecord& claim(const Scene& scene, v1::SyncRequest& request, std::vector<double> run_ns) {
  v1::MeasureRecord& r = *request.add_results();
  r.set_trial_id(scene.own.trial_id());
  r.set_attempt(scene.own.attempt());
  r.set_outcome(v1::OK);
  for (const double ns : run_ns) r.add_run_ns(ns);
  r.mutable_environment()->set_hardware("formula");
  r.mutable_environment()->set_harness_abi(1);
  r.mutable_environment()->set_worker_id("liar");
  r.mutable_environment()->set_worker_incarnation("1");
  return r;
}
// A plausible, very good time: it wins if it is believed.
constexpr double kGood = 400;
v1::MeasureRecord& good(const Scene& scene, v1::SyncRequest& request) {
  return claim(scene, request, {kGood, kGood, kGood});
}

const std::vector<Lie>& lies() {
  const double inf = std::numeric_limits<double>::infinity();
  static const std::vector<Lie> all = {
      {"0.001 ns", Fate::kQuarantined,
       [](auto& s, auto& q) {
         claim(s, q, {0.001, 0.001});
       }},
      {"one fast sample among slow ones", Fate::kQuarantined,
       [](auto& s, auto& q) {
         claim(s, q, {9e3, 9e3, 1});
       }},
      {"three times faster than a core's units", Fate::kQuarantined,
       [](auto& s, auto& q) {
         claim(s, q, {50, 50, 50});
       }},
      {"5e-324 ns", Fate::kRefused, [](auto& s, auto& q) { claim(s, q, {5e-324}); }},
      {"a denormal", Fate::kRefused,
       [](auto& s, auto& q) {
         claim(s, q, {1e-310, 1e-310});
       }},
      {"inf", Fate::kRefused, [inf](auto& s, auto& q) { claim(s, q, {inf}); }},
      {"nan", Fate::kRefused, [](auto& s, auto& q) { claim(s, q, {std::nan("")}); }},
      {"a negative time", Fate::kRefused, [](auto& s, auto& q) { claim(s, q, {-5}); }},
      {"zero", Fate::kRefused, [](auto& s, auto& q) { claim(s, q, {0.0}); }},
      {"ok without a sample", Fate::kRefused, [](auto& s, auto& q) { claim(s, q, {}); }},
      {"an outcome of the future", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).set_outcome(static_cast<v1::Outcome>(77)); }},
      {"an outcome of nothing", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).set_outcome(v1::OUTCOME_UNSPECIFIED); }},
      {"attempt 999", Fate::kRefused, [](auto& s, auto& q) { good(s, q).set_attempt(999); }},
      {"attempt 0", Fate::kRefused, [](auto& s, auto& q) { good(s, q).set_attempt(0); }},
      {"another's trial", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).set_trial_id(s.others.trial_id()); }},
      {"another's trial under its name", Fate::kRefused,
       [](auto& s, auto& q) {
         v1::MeasureRecord& r = good(s, q);
         r.set_trial_id(s.others.trial_id());
         r.mutable_environment()->set_worker_id("honest");
       }},
      {"another's name on the own trial", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).mutable_environment()->set_worker_id("honest"); }},
      {"another life", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).mutable_environment()->set_worker_incarnation("0"); }},
      {"a trial that nobody has", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).set_trial_id(s.queued_trial); }},
      {"a trial that does not exist", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).set_trial_id("t999999"); }},
      {"a trial that is none", Fate::kRefused, [](auto& s, auto& q) { good(s, q).set_trial_id("j1"); }},
      {"more samples than asked for", Fate::kQuarantined,
       [](auto& s, auto& q) { claim(s, q, std::vector<double>(500, kGood)); }},
      {"a run longer than the lease", Fate::kQuarantined,
       [](auto& s, auto& q) { good(s, q).set_run_ms(3.6e6); }},
      {"a build longer than the lease", Fate::kQuarantined,
       [](auto& s, auto& q) { good(s, q).set_build_ms(3.6e6); }},
      {"a queue longer than the lease", Fate::kQuarantined,
       [](auto& s, auto& q) { good(s, q).set_queue_ms(1e12); }},
      {"samples longer than the lease", Fate::kQuarantined,
       [](auto& s, auto& q) {
         claim(s, q, {1e13, kGood, kGood});
       }},
      {"samples longer than their run", Fate::kQuarantined,
       [](auto& s, auto& q) {
         claim(s, q, {1e9, kGood, kGood}).set_run_ms(2);
       }},
      {"a peak of 1e9", Fate::kQuarantined, [](auto& s, auto& q) { good(s, q).set_peak_gflops(1e9); }},
      {"a bandwidth of 1e9", Fate::kQuarantined, [](auto& s, auto& q) { good(s, q).set_read_gbps(1e9); }},
      {"a negative peak", Fate::kRefused, [](auto& s, auto& q) { good(s, q).set_peak_gflops(-1); }},
      {"a negative sentinel", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).set_sentinel_before_ns(-1); }},
      {"right with an error of 7 tolerances", Fate::kQuarantined,
       [](auto& s, auto& q) { good(s, q).set_max_error(7); }},
      {"right with an infinite error", Fate::kQuarantined,
       [inf](auto& s, auto& q) { good(s, q).set_max_error(inf); }},
      {"a digest that is none", Fate::kRefused,
       [](auto& s, auto& q) { good(s, q).set_artifact_digest("../../etc/passwd\n"); }},
      {"fast, but cut", Fate::kQuarantined,
       [](auto& s, auto& q) {
         claim(s, q, {1, 1}).set_cut(true);
       }},
      {"two results of one attempt, the second impossible", Fate::kQuarantined,
       [](auto& s, auto& q) {
         claim(s, q, {9e3, 9e3});
         claim(s, q, {1, 1});
       }},
      {"a result of a race that it does not have", Fate::kRefused,
       [](auto& s, auto& q) {
         v1::RaceResult& r = *q.add_races();
         r.set_race_id("race j1/1 @1");
         r.set_attempt(1);
         r.set_winner(s.own.trial_id());
       }},
      {"leases that it does not have", Fate::kHarmless,
       [](auto& s, auto& q) { FarmByHand::add_held(s.others, v1::RUNNING, q); }},
      {"returns another's lease", Fate::kHarmless,
       [](auto& s, auto& q) {
         FarmByHand::add_held(s.others, v1::WAITING, q);
         *q.add_returned() = q.held(0);
         q.clear_held();
       }},
      {"could not measure another's trial", Fate::kRefused,
       [](auto& s, auto& q) {
         v1::MeasureRecord& r = claim(s, q, {});
         r.set_trial_id(s.others.trial_id());
         r.set_outcome(v1::DEVICE_LOST);
       }},
      {"an unreadable result of another's trial", Fate::kRefused,
       [](auto& s, auto& q) { claim(s, q, {-1}).set_trial_id(s.others.trial_id()); }},
  };
  return all;
}

class Lies : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }
};

TEST_P(Lies, ChangeNoAnswerAndCutNoHonestTrial) {
  const Lie& lie = lies().at(GetParam());
  SCOPED_TRACE(lie.name);
  FarmByHand farm;
  const std::string job = farm.submit(40);
  const std::string honest = farm.enter("honest"), liar = farm.enter("liar");
  farm.work(honest, 8);
  farm.clock.now += 100;

  Scene scene;
  const v1::SyncReply lied = farm.sync(liar, 1);
  ASSERT_EQ(lied.leases_size(), 1);
  scene.own = lied.leases(0);
  const v1::SyncReply held = farm.sync(honest, 1);
  ASSERT_EQ(held.leases_size(), 1);
  scene.others = held.leases(0);
  for (const TrialWithRecord& t : farm.trials(job))
    if (t.trial.state == TrialState::kQueued) scene.queued_trial = t.trial.id;
  ASSERT_FALSE(scene.queued_trial.empty());
  const TunedConfig before = farm.store->best(kAnalyticKey, kAnalyticTarget).value();
  const auto told_best = [&] {
    v1::SyncRequest request;
    FarmByHand::add_held(scene.others, v1::RUNNING, request);
    const v1::SyncReply reply = farm.sync(honest, 0, request);
    EXPECT_EQ(reply.revoked_size(), 0) << "the honest trial is taken away";
    return reply.best_size() == 1 ? reply.best(0).best_ns() : -1;
  };
  const double best_ns = told_best();
  ASSERT_GT(best_ns, kGood);

  v1::SyncRequest request;
  lie.tell(scene, request);
  farm.clock.now += 100;
  const v1::SyncReply reply = farm.sync(liar, 0, request);
  EXPECT_EQ(reply.acks_size() > 0,
            request.results_size() + request.races_size() + request.returned_size() > 0)
      << "it is to forget what it sent";

  const TunedConfig after = farm.store->best(kAnalyticKey, kAnalyticTarget).value();
  EXPECT_EQ(after.trial_id, before.trial_id);
  EXPECT_EQ(after.time_ns, before.time_ns);
  EXPECT_EQ(told_best(), best_ns) << "by this times honest trials are cut";
  EXPECT_EQ(farm.store->trial(scene.others.trial_id())->trial.state, TrialState::kLeased);
  EXPECT_EQ(farm.store->trial(scene.others.trial_id())->trial.worker_id, "honest");
  EXPECT_EQ(farm.store->trial(scene.queued_trial)->trial.state, TrialState::kQueued);
  const std::vector<QuarantineRow> kept = *farm.store->quarantine("");
  EXPECT_EQ(kept.size(), lie.fate == Fate::kQuarantined ? 1u : 0u);
  for (const QuarantineRow& row : kept) {
    EXPECT_EQ(row.worker_id, "liar");
    EXPECT_EQ(row.lease_id, scene.own.trial_id());
    EXPECT_FALSE(row.why.empty());
  }

  // The rest of the job, without the liar: every trial has its own time, and the best of them answers.
  v1::SyncRequest last;
  *last.add_results() = FarmByHand::honest(scene.others);
  farm.sync(honest, 0, last);
  for (int i = 0; i < 4; ++i) {
    farm.work(honest);
    farm.pass(9'000);  // what the liar still has runs out
  }
  farm.work(honest);
  EXPECT_EQ(farm.state(job), JobState::kFinished) << farm.store->job(job)->message;
  for (const TrialWithRecord& t : farm.trials(job)) {
    ASSERT_TRUE(t.record) << t.trial.id;
    if (t.record->environment.worker_id == "liar") continue;
    EXPECT_EQ(t.record->environment.worker_id, "honest") << t.trial.id << ": " << t.record->message;
    const MeasureRecord right = testing::analytic_record(t.trial.id, 1, t.trial.config);
    EXPECT_EQ(t.record->run_ns, right.run_ns) << t.trial.id;
  }
  EXPECT_GE(farm.store->best(kAnalyticKey, kAnalyticTarget)->time_ns, 1'000) << "the bottom of the bowl";
}

std::string name_of(const ::testing::TestParamInfo<size_t>& info) {
  std::string name;
  for (const char c : std::string(lies().at(info.param).name)) name += std::isalnum(c) != 0 ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, Lies, ::testing::Range(size_t{0}, lies().size()), name_of);

TEST(LiesTable, HasAtLeastTwentyKinds) { EXPECT_GE(lies().size(), 20u); }

// The fault as it was seen: 0.001 ns became the record, and 59 honest trials were cut to one sample each.
TEST(Belief, SeenAWorkerThatReports0Point001NsBecomesNoRecordAndCutsNothing) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  const std::string job = farm.submit(60);
  const std::string liar = farm.enter("liar"), honest = farm.enter("honest");
  const v1::SyncReply first = farm.sync(liar, 1);
  ASSERT_EQ(first.leases_size(), 1);
  for (const double ns : {0.001, 5e-324}) {
    v1::SyncRequest request;
    claim({.own = first.leases(0)}, request, {ns, ns, ns});
    farm.sync(liar, 0, request);
    farm.pass(9'000);
  }
  double told = 0;
  v1::SyncRequest request;
  for (int i = 0; i < 200 && farm.state(job) == JobState::kRunning; ++i) {
    const v1::SyncReply reply = farm.sync(honest, 8, std::exchange(request, {}));
    for (const v1::Lease& lease : reply.leases()) {
      told = lease.best_ns();
      EXPECT_TRUE(told == 0 || told >= 1'000) << "an honest trial is to be cut by " << told << " ns";
      *request.add_results() = FarmByHand::honest(lease);
    }
    farm.pass(250);
  }
  EXPECT_EQ(farm.state(job), JobState::kFinished);
  EXPECT_GT(told, 0);
  EXPECT_GE(farm.store->best(kAnalyticKey, kAnalyticTarget)->time_ns, 1'000);
  EXPECT_EQ(farm.store->quarantine("")->size(), 1u) << "the other could not even be read";
  EXPECT_EQ(farm.coordinator->metrics().results_quarantined.value(), 1u);
  spdlog::set_level(spdlog::level::info);
}

// The fault as it was seen: any session could close another's lease, with attempt 999.
TEST(Belief, SeenASessionThatClosesAnothersLeaseWithAttempt999) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  farm.submit(16);
  const std::string honest = farm.enter("honest"), liar = farm.enter("liar");
  const v1::SyncReply held = farm.sync(honest, 1);
  ASSERT_EQ(held.leases_size(), 1);
  v1::SyncRequest request;
  v1::MeasureRecord& r = *request.add_results() = FarmByHand::honest(held.leases(0));
  r.set_attempt(999);
  EXPECT_EQ(farm.sync(liar, 0, request).acks_size(), 1);
  EXPECT_FALSE(farm.store->trial(r.trial_id())->record);
  EXPECT_EQ(farm.coordinator->metrics().results_not_leased.value(), 1u);
  EXPECT_EQ(farm.coordinator->now().leased, 1u);
  v1::SyncRequest own;
  *own.add_results() = FarmByHand::honest(held.leases(0));
  farm.sync(honest, 0, own);
  EXPECT_EQ(farm.store->trial(r.trial_id())->record->environment.worker_id, "honest");
  spdlog::set_level(spdlog::level::info);
}

// --- what is legitimate stays so ---

TEST(Belief, ALateResultOfAnAttemptThatWasGrantedStillClosesTheTrial) {
  FarmByHand farm;
  farm.submit(16);
  const std::string slow = farm.enter("slow"), other = farm.enter("other");
  const v1::Lease lease = farm.sync(slow, 1).leases(0);
  farm.pass(9'000);  // it has run out, and is leased again
  v1::SyncReply again = farm.sync(other, 1);
  ASSERT_EQ(again.leases_size(), 1);
  EXPECT_EQ(again.leases(0).trial_id(), lease.trial_id());
  v1::SyncRequest request;
  *request.add_results() = FarmByHand::honest(lease);
  EXPECT_EQ(farm.sync(slow, 0, request).acks_size(), 1);
  const TrialWithRecord trial = *farm.store->trial(lease.trial_id());
  ASSERT_TRUE(trial.record);
  EXPECT_EQ(trial.record->attempt, 1);
  EXPECT_EQ(trial.record->environment.worker_id, "slow");
}

TEST(Belief, ASpooledResultCountsAfterRestartsOfWorkerAndDaemonAndNobodyElseMaySendIt) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  farm.submit(16);
  const v1::Lease lease = farm.sync(farm.enter("w", "1"), 1).leases(0);
  v1::SyncRequest spooled;
  *spooled.add_results() = FarmByHand::honest(lease);
  spooled.mutable_results(0)->mutable_environment()->set_worker_id("w");
  spooled.mutable_results(0)->mutable_environment()->set_worker_incarnation("1");
  farm.restart();
  EXPECT_EQ(farm.sync(farm.enter("thief", "1"), 0, spooled).acks_size(), 1);
  EXPECT_FALSE(farm.store->trial(lease.trial_id())->record) << "another worker's";
  const std::string again = farm.enter("w", "2");
  v1::SyncRequest as_this_life = spooled;
  as_this_life.mutable_results(0)->mutable_environment()->set_worker_incarnation("2");
  farm.sync(again, 0, as_this_life);
  EXPECT_FALSE(farm.store->trial(lease.trial_id())->record) << "this life never had it";
  farm.sync(again, 0, spooled);
  const TrialWithRecord trial = *farm.store->trial(lease.trial_id());
  ASSERT_TRUE(trial.record);
  EXPECT_EQ(trial.record->environment.worker_incarnation, "1");
  spdlog::set_level(spdlog::level::info);
}

TEST(Belief, AResultSentTwiceIsStoredOnceAlsoWhenTheSecondSaysSomethingElse) {
  FarmByHand farm;
  farm.submit(16);
  const std::string worker = farm.enter("w");
  const v1::Lease lease = farm.sync(worker, 1).leases(0);
  v1::SyncRequest request;
  *request.add_results() = FarmByHand::honest(lease);
  EXPECT_EQ(farm.sync(worker, 0, request).acks_size(), 1);
  request.mutable_results(0)->set_outcome(v1::OK);
  request.mutable_results(0)->mutable_run_ns()->Clear();
  request.mutable_results(0)->add_run_ns(kGood);
  EXPECT_EQ(farm.sync(worker, 0, request).acks_size(), 1);
  EXPECT_EQ(farm.store->records(lease.trial_id())->size(), 1u);
}

// With one worker only, its trial must end all the same.
TEST(Belief, ATrialOfWhichOnlyImpossibleResultsComeEndsAsNotMeasured) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  const std::string job = farm.submit(1);
  const std::string liar = farm.enter("liar");
  std::string trial;
  for (int i = 0; i < 100 && farm.state(job) == JobState::kRunning; ++i) {
    const v1::SyncReply reply = farm.sync(liar, 4);
    if (reply.leases_size() == 0) {
      farm.pass(1'000);
      continue;
    }
    v1::SyncRequest request;
    trial = reply.leases(0).trial_id();
    claim({.own = reply.leases(0)}, request, {0.001});
    farm.sync(liar, 0, request);
  }
  EXPECT_EQ(farm.state(job), JobState::kFailed) << "no right answer was timed";
  const TrialWithRecord t = *farm.store->trial(trial);
  ASSERT_TRUE(t.record);
  EXPECT_EQ(t.record->outcome, Outcome::kDeviceLost);
  EXPECT_THAT(t.record->message, HasSubstr("its result cannot be: a call of 0.001 ns"));
  EXPECT_EQ(farm.store->quarantine(trial)->size(), 5u);
  spdlog::set_level(spdlog::level::info);
}

TEST(Belief, AWorkerIsSetAsideAfterThreeAndTheListSaysWhy) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  farm.submit(16);
  const std::string liar = farm.enter("liar");
  for (int i = 0; i < 3; ++i) {
    const v1::SyncReply reply = farm.sync(liar, 1);
    ASSERT_EQ(reply.leases_size(), 1) << i;
    v1::SyncRequest request;
    claim({.own = reply.leases(0)}, request, {0.001});
    farm.sync(liar, 0, request);
  }
  EXPECT_EQ(farm.sync(liar, 4).leases_size(), 0);
  EXPECT_EQ(farm.sync(farm.enter("liar", "2"), 4).leases_size(), 0) << "a restart does not help";
  v1::ListWorkersReply list;
  ASSERT_TRUE(farm.coordinator->list_workers(&list).is_ok());
  ASSERT_EQ(list.workers_size(), 1);
  EXPECT_EQ(list.workers(0).quarantined(), 3);
  EXPECT_NEAR(list.workers(0).paused_s(), 30, 1) << "the only worker";
  farm.sync(farm.enter("other"), 0);
  list.Clear();
  ASSERT_TRUE(farm.coordinator->list_workers(&list).is_ok());
  ASSERT_EQ(list.workers_size(), 2);
  EXPECT_NEAR(list.workers(0).paused_s(), 600, 1);
  EXPECT_THAT(list.workers(0).paused_why(),
              HasSubstr("3 results that cannot be; the last: a call of 0.001 ns"));
  spdlog::set_level(spdlog::level::info);
}

TEST(Belief, WhoWasNotBelievedIsNotForgottenOverARestart) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  farm.submit(16);
  const std::string liar = farm.enter("liar");
  for (int i = 0; i < 3; ++i) {
    v1::SyncRequest request;
    claim({.own = farm.sync(liar, 1).leases(0)}, request, {0.001});
    farm.sync(liar, 0, request);
  }
  farm.restart();
  farm.enter("other");
  EXPECT_EQ(farm.sync(farm.enter("liar"), 4).leases_size(), 0);
  EXPECT_GT(farm.sync(farm.enter("third"), 4).leases_size(), 0);
  // For a day.
  constexpr int64_t kHourMs = 3'600'000;
  farm.clock.now += 23 * kHourMs;
  farm.restart();
  farm.enter("other");
  EXPECT_EQ(farm.sync(farm.enter("liar", "3"), 1).leases_size(), 0);
  farm.clock.now += 2 * kHourMs;
  farm.restart();
  farm.enter("other");
  EXPECT_EQ(farm.sync(farm.enter("liar", "4"), 1).leases_size(), 1);
  spdlog::set_level(spdlog::level::info);
}

// Two workers; one's sentinel takes three times as long from some trial on.
TEST(Belief, AWorkerThatDriftsIsLeftAloneUntilItIsCalmAndTheOnlyOneIsNot) {
  spdlog::set_level(spdlog::level::off);
  for (const bool others : {true, false}) {
    FarmByHand farm;
    farm.submit(400);
    v1::RegisterRequest hello = farm.hello("drifts", "1", false);
    hello.set_sentinel_ns(100'000);
    const std::string drifts = farm.enter(hello);
    const std::string other = others ? farm.enter("other") : "";
    const auto measure = [&](double sentinel_ns) {
      v1::SyncRequest request;
      const v1::SyncReply reply = farm.sync(drifts, 1);
      for (const v1::Lease& lease : reply.leases()) {
        *request.add_results() = FarmByHand::honest(lease);
        request.mutable_results(0)->set_sentinel_before_ns(sentinel_ns);
        request.mutable_results(0)->set_sentinel_after_ns(1.1 * sentinel_ns);
      }
      farm.clock.now += 10;
      if (others) farm.sync(other, 0);
      farm.sync(drifts, 0, request);
      return request.results_size();
    };
    for (int i = 0; i < 16; ++i) EXPECT_EQ(measure(300'000), 1) << i;
    EXPECT_EQ(measure(300'000), others ? 0 : 1);
    v1::ListWorkersReply list;
    ASSERT_TRUE(farm.coordinator->list_workers(&list).is_ok());
    const std::string& why = list.workers(0).paused_why();
    if (!others) {
      EXPECT_EQ(why, "");
      continue;
    }
    EXPECT_THAT(why, HasSubstr("its machine has become slower: fixed work takes 300 % of its calm time"));
    const auto pass = [&](int64_t ms) {
      for (int64_t done = 0; done < ms; done += 5'000)
        farm.clock.now += 5'000, farm.sync(other, 0), farm.sync(drifts, 0);
    };
    pass(25'000);
    EXPECT_EQ(measure(300'000), 1) << "one, to see";
    EXPECT_EQ(measure(300'000), 0);
    pass(25'000);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(measure(101'000), 1);
      pass(25'000);
    }
    EXPECT_EQ(measure(101'000), 1);
    EXPECT_EQ(measure(101'000), 1) << "calm: no pause any more";
  }
  spdlog::set_level(spdlog::level::info);
}

TEST(Belief, AWorkerThatRegistersWithAPeakOf1e9GetsNothing) {
  spdlog::set_level(spdlog::level::off);
  FarmByHand farm;
  farm.submit(16);
  v1::RegisterRequest hello = farm.hello("liar", "1", false);
  hello.set_peak_gflops(1e9);
  EXPECT_EQ(farm.sync(farm.enter(hello), 4).leases_size(), 0);
  v1::ListWorkersReply list;
  ASSERT_TRUE(farm.coordinator->list_workers(&list).is_ok());
  EXPECT_THAT(list.workers(0).unfit(), HasSubstr("it registered with a peak of 1e+09 GFLOP/s"));
  hello.set_incarnation("2");
  hello.set_peak_gflops(180);
  hello.set_read_gbps(400);
  hello.set_sentinel_ns(1e5);
  EXPECT_GT(farm.sync(farm.enter(hello), 4).leases_size(), 0);
  hello.set_sentinel_ns(std::nan(""));
  v1::RegisterReply reply;
  EXPECT_THAT(farm.coordinator->register_worker(hello, &reply).message(), HasSubstr("sentinel_ns: expected"));
  spdlog::set_level(spdlog::level::info);
}

}  // namespace
}  // namespace tuner
