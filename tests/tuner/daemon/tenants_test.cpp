// Tenants of one farm: each sees its own jobs, a flood of one takes nothing from the other, limits are kept;
// and workers that an administrator drains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/tuner/daemon/search_room.h"
#include "tests/tuner/farm_by_hand.h"
#include "tuner/daemon/rooms/desk.h"
#include "tuner/daemon/rooms/farm_view.h"
#include "tuner/daemon/rooms/job_desk.h"

namespace tuner {
namespace {

using testing::FarmByHand;
using ::testing::HasSubstr;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;

constexpr int kMostHeld = 1024;  // leases that one Sync may name

const Coordinator::Cancelled kNever = [] { return false; };

struct Wish {
  std::string tenant, request;
  int trials = 20, priority = 0;
  bool fresh = true;
};

Result<v1::SubmitReply> submit(FarmByHand& farm, const Wish& wish) {
  v1::SubmitRequest request;
  request.set_request_id(wish.request);
  v1::TaskSpec* const task = request.add_tasks();
  task->set_workload_key(kAnalyticKey);
  task->set_target(kAnalyticTarget);
  request.set_trials(wish.trials);
  request.set_search("random");
  request.set_fresh(wish.fresh);
  request.set_priority(wish.priority);
  v1::SubmitReply reply;
  RETURN_IF_ERROR(farm.coordinator->submit(request, &reply, wish.tenant));
  farm.coordinator->turn();
  return reply;
}

// Workers that have two leases and work at one of them, each trial as long as its tenant's take.
class Devices {
 public:
  Devices(FarmByHand& farm, int workers, std::map<std::string, int64_t> run_ms_by_job)
      : farm_(farm), run_ms_(std::move(run_ms_by_job)) {
    for (int i = 0; i < workers; ++i) devices_.push_back({farm.enter(str("w", i)), farm.clock.now});
  }
  void run_for(int64_t ms) {
    const int64_t end = farm_.clock.now + ms;
    while (farm_.clock.now < end) {
      Device& next = *std::ranges::min_element(devices_, {}, &Device::free_ms);
      farm_.clock.now = std::max(farm_.clock.now, next.free_ms);
      step(next);
    }
  }

 private:
  struct Device {
    std::string session;
    int64_t free_ms = 0;
    std::deque<v1::Lease> held;
    bool working = false;
  };
  void step(Device& device) {
    v1::SyncRequest request;
    if (device.working) {
      v1::MeasureRecord& result = *request.add_results();
      result = FarmByHand::honest(device.held.front());
      result.set_run_ms(static_cast<double>(duration(device.held.front())));
      device.held.pop_front();
    }
    for (const v1::Lease& lease : device.held) FarmByHand::add_held(lease, v1::WAITING, request);
    const v1::SyncReply reply = farm_.sync(device.session, 2 - static_cast<int>(device.held.size()), request);
    for (const v1::Lease& lease : reply.leases()) device.held.push_back(lease);
    device.working = !device.held.empty();
    device.free_ms = farm_.clock.now + (device.working ? duration(device.held.front()) : 20);
  }
  int64_t duration(const v1::Lease& lease) {
    const auto [it, added] = job_of_.try_emplace(lease.trial_id());
    if (added) it->second = farm_.store->trial(lease.trial_id())->trial.job_id;
    return run_ms_.at(it->second);
  }

  FarmByHand& farm_;
  std::map<std::string, int64_t> run_ms_;
  std::map<std::string, std::string> job_of_;
  std::vector<Device> devices_;
};

std::map<std::string, double> device_seconds(FarmByHand& farm) {
  v1::ListRequest request;
  request.set_known(true);
  v1::ListReply reply;
  EXPECT_TRUE(farm.coordinator->list(request, &reply).is_ok());
  std::map<std::string, double> seconds;
  for (const v1::TenantSummary& tenant : reply.daemon().tenants())
    seconds[tenant.tenant()] = tenant.device_s();
  return seconds;
}

// Ten jobs of one tenant against one of the other, whose trials take three times as long.
void expect_shares_in_a_flood(double weight, double expected) {
  FarmByHand farm(/*width=*/14);
  farm.coordinator->set_shares({{"flooded", {.weight = weight}}});
  std::map<std::string, int64_t> run_ms;
  for (int i = 0; i < 10; ++i) run_ms[submit(farm, {"flood", str("f", i), 3000}).value().job_id()] = 30;
  run_ms[submit(farm, {"flooded", "one", 3000}).value().job_id()] = 90;
  Devices devices(farm, 4, run_ms);
  devices.run_for(40'000);
  const std::map<std::string, double> used = device_seconds(farm);
  const double share = used.at("flooded") / (used.at("flood") + used.at("flooded"));
  EXPECT_NEAR(share / expected, 1, 0.05)
      << used.at("flooded") << " of " << used.at("flood") << " device-seconds";
}

TEST(Tenants, AFloodOfTenJobsTakesNothingFromTheOther) { expect_shares_in_a_flood(1, 0.5); }
TEST(Tenants, AFloodAgainstAHeavierTenant) { expect_shares_in_a_flood(3, 0.75); }
TEST(Tenants, AFloodAgainstALighterTenant) { expect_shares_in_a_flood(0.25, 0.2); }

TEST(Tenants, ALimitOfLeasesHoldsAlsoAlone) {
  FarmByHand farm(/*width=*/14);
  farm.coordinator->set_shares({{"small", {.most_leases = 3}}});
  ASSERT_TRUE(submit(farm, {"small", "r", 100}).is_ok());
  const std::string session = farm.enter("w");
  EXPECT_EQ(farm.sync(session, 8).leases_size(), 3);
}

TEST(Tenants, UnfinishedJobsAreLimited) {
  FarmByHand farm;
  farm.coordinator->set_shares({{"a", {.most_jobs = 2}}});
  ASSERT_TRUE(submit(farm, {"a", "r1"}).is_ok());
  ASSERT_TRUE(submit(farm, {"a", "r2"}).is_ok());
  const Result<v1::SubmitReply> third = submit(farm, {"a", "r3"});
  EXPECT_EQ(
      third.message(),
      "tenant a has 2 unfinished jobs, and may have 2: wait for one to end, or cancel it (tuner cancel)");
  EXPECT_TRUE(submit(farm, {"b", "r4"}).is_ok());
}

// A job that has ended and is continued is an unfinished one again.
TEST(Tenants, AJobThatIsContinuedCountsToo) {
  FarmByHand farm;
  farm.coordinator->set_shares({{"a", {.most_jobs = 1}}});
  const std::string first = submit(farm, {"a", "r1", 10}).value().job_id();
  farm.work(farm.enter("w"));
  ASSERT_EQ(farm.state(first), JobState::kFinished);
  ASSERT_TRUE(submit(farm, {"a", "r2", 10}).is_ok());
  EXPECT_TRUE(submit(farm, {"a", "r1", 10}).value().already_finished()) << "it is asked, not continued";
  EXPECT_EQ(
      submit(farm, {"a", "r1", 20}).message(),
      "tenant a has 1 unfinished jobs, and may have 1: wait for one to end, or cancel it (tuner cancel)");
  farm.work(farm.enter("w", "2"));
  EXPECT_TRUE(submit(farm, {"a", "r1", 20}).value().continued());
}

TEST(Continuing, TakesHowToMeasureFromTheLatestSubmission) {
  FarmByHand farm;
  const auto submit_with = [&](int trials, int repeats) {
    v1::SubmitRequest request;
    request.set_request_id("r");
    v1::TaskSpec* const task = request.add_tasks();
    task->set_workload_key(kAnalyticKey);
    task->set_target(kAnalyticTarget);
    request.set_trials(trials);
    request.set_search("random");
    request.mutable_options()->set_repeats(repeats);
    v1::SubmitReply reply;
    EXPECT_TRUE(farm.coordinator->submit(request, &reply).is_ok());
    farm.coordinator->turn();
    return farm.sync(farm.enter("w"), 1).leases(0).options().repeats();
  };
  EXPECT_EQ(submit_with(4, 7), 7);
  farm.work(farm.enter("w"));
  ASSERT_EQ(farm.state("j1"), JobState::kFinished);
  EXPECT_EQ(submit_with(8, 5), 5);
}

TEST(Tenants, AnothersJobIsNotThere) {
  FarmByHand farm;
  const std::string job = submit(farm, {"a", "r1"}).value().job_id();
  const std::string session = farm.enter("w");
  farm.work(session);
  const std::string trial = farm.trials(job).front().trial.id;
  const std::string refusal = "job " + job + " is not one of tenant b; `tuner jobs` lists those that are";

  v1::CancelRequest cancel;
  cancel.set_job_id(job);
  v1::CancelReply cancelled;
  EXPECT_EQ(farm.coordinator->cancel(cancel, &cancelled, "b").message(), refusal);
  v1::WatchRequest watch;
  watch.set_job_id(job);
  EXPECT_EQ(farm.coordinator
                ->watch(
                    watch, [](const v1::JobEvent&) { return true; }, kNever, "b")
                .message(),
            refusal);
  v1::RerunRequest rerun;
  rerun.set_trial_id(trial);
  v1::MeasureRecord record;
  EXPECT_EQ(farm.coordinator->rerun(rerun, &record, kNever, "b").message(), refusal);
  v1::RemeasureRequest remeasure;
  remeasure.set_trial_id(trial);
  v1::RaceResult race;
  EXPECT_EQ(farm.coordinator->remeasure(remeasure, &race, kNever, "b").message(), refusal);
  for (const bool known : {false, true}) {
    v1::ListRequest list;
    list.set_known(known);
    v1::ListReply own, others, all;
    ASSERT_TRUE(farm.coordinator->list(list, &own, "a").is_ok());
    ASSERT_TRUE(farm.coordinator->list(list, &others, "b").is_ok());
    ASSERT_TRUE(farm.coordinator->list(list, &all).is_ok());
    EXPECT_EQ(own.jobs_size(), 1);
    EXPECT_EQ(own.jobs(0).tenant(), "a");
    EXPECT_EQ(others.jobs_size(), 0);
    EXPECT_EQ(all.jobs_size(), 1);
    // What tenants use is shown to themselves and to the administrator.
    if (!known) continue;
    EXPECT_EQ(own.daemon().tenants_size(), 1);
    EXPECT_EQ(others.daemon().tenants_size(), 0);
    EXPECT_EQ(all.daemon().tenants_size(), 1);
  }
  EXPECT_EQ(farm.state(job), JobState::kFinished);
}

TEST(Tenants, TheSameSearchOfTwoTenantsIsTwoJobs) {
  FarmByHand farm;
  const std::string a = submit(farm, {"a", "r1", 10, 0, false}).value().job_id();
  const std::string b = submit(farm, {"b", "r2", 10, 0, false}).value().job_id();
  EXPECT_NE(a, b);
  const v1::SubmitReply again = submit(farm, {"a", "r3", 10, 0, false}).value();
  EXPECT_EQ(again.job_id(), a);
  EXPECT_TRUE(again.continued());
  EXPECT_THAT(submit(farm, {"b", "r1", 10, 0, false}).message(), HasSubstr("a job of another tenant has it"));
}

TEST(Tenants, TenantAndPriorityOutliveARestart) {
  FarmByHand farm;
  const std::string job = submit(farm, {"a", "r1", 10, 1}).value().job_id();
  farm.restart();
  EXPECT_EQ(farm.store->job(job)->tenant, "a");
  EXPECT_EQ(farm.store->job(job)->priority, 1);
  const std::string session = farm.enter("w");
  ASSERT_GT(farm.sync(session, 2).leases_size(), 0);
  v1::ListRequest request;
  request.set_known(true);
  v1::ListReply reply;
  ASSERT_TRUE(farm.coordinator->list(request, &reply).is_ok());
  ASSERT_EQ(reply.daemon().tenants_size(), 1);
  EXPECT_EQ(reply.daemon().tenants(0).tenant(), "a");
  EXPECT_EQ(reply.daemon().tenants(0).leased(), 2);
}

TEST(Tenants, AJobOfHighPriorityIsMeasuredFirst) {
  FarmByHand farm(/*width=*/14);
  const std::string usual = submit(farm, {"a", "r1", 50}).value().job_id();
  const std::string high = submit(farm, {"a", "r2", 50, 1}).value().job_id();
  const std::string session = farm.enter("w");
  const v1::SyncReply reply = farm.sync(session, 4);
  EXPECT_EQ(reply.leases_size(), 4);
  for (const v1::Lease& lease : reply.leases())
    EXPECT_EQ(farm.store->trial(lease.trial_id())->trial.job_id, high);
  EXPECT_NE(usual, high);
}

TEST(Tenants, WhatTenantsUsedIsInTheStore) {
  FarmByHand farm(/*width=*/14);
  std::map<std::string, int64_t> run_ms;
  run_ms[submit(farm, {"a", "r1", 40}).value().job_id()] = 50;
  run_ms[submit(farm, {"b", "r2", 20}).value().job_id()] = 100;
  Devices(farm, 2, run_ms).run_for(20'000);
  const std::vector<UsageRow> usage = farm.store->usage().value();
  ASSERT_EQ(usage.size(), 2u);
  EXPECT_EQ(usage[0].tenant, "a");
  EXPECT_EQ(usage[0].trials, 40);
  EXPECT_NEAR(usage[0].device_s, 2, 1e-9);
  EXPECT_EQ(usage[1].jobs, 1);
  EXPECT_NEAR(usage[1].device_s, 2, 1e-9);
}

// A worker that asks for more than it could ever name gets that much; the sum of what it holds and wants is a
// number.
TEST(Workers, NobodyGetsTheWholeQueue) {
  FarmByHand farm(/*width=*/14);
  ASSERT_TRUE(submit(farm, {"a", "r1", 20'000}).is_ok());
  const std::string session = farm.enter("greedy");
  v1::SyncRequest holding;
  int held = 0;
  for (int i = 0; i < 8; ++i) {
    const v1::SyncReply reply = farm.sync(session, std::numeric_limits<int>::max(), holding);
    held += reply.leases_size();
    for (const v1::Lease& lease : reply.leases()) FarmByHand::add_held(lease, v1::WAITING, holding);
    farm.pass(500);  // the search proposes for what was asked for
  }
  EXPECT_GT(held, 100);
  EXPECT_LE(held, kMostHeld);
}

TEST(Drain, AWorkerThatDrainsGetsNothingMoreAndIsToldOnceAtOnce) {
  FarmByHand farm;
  ASSERT_TRUE(submit(farm, {"a", "r1"}).is_ok());
  const std::string session = farm.enter("w"), other = farm.enter("other");
  const v1::SyncReply first = farm.sync(session, 1);
  ASSERT_EQ(first.leases_size(), 1);
  EXPECT_FALSE(first.drain());
  v1::DrainRequest drain;
  drain.set_worker_id("w");
  v1::DrainReply reply;
  ASSERT_TRUE(farm.coordinator->drain(drain, &reply).is_ok());
  EXPECT_EQ(reply.leases(), 1);
  v1::SyncRequest holding;
  FarmByHand::add_held(first.leases(0), v1::RUNNING, holding);
  const v1::SyncReply second = farm.sync(session, 3, holding);
  EXPECT_TRUE(second.drain());
  EXPECT_EQ(second.leases_size() + second.revoked_size(), 0);
  v1::SyncRequest done;
  *done.add_results() = FarmByHand::honest(first.leases(0));
  EXPECT_EQ(farm.sync(session, 0, done).acks_size(), 1);
  EXPECT_GT(farm.sync(other, 1).leases_size(), 0);
}

TEST(Drain, AWorkerThatIsNotThereIsNamed) {
  FarmByHand farm;
  v1::DrainRequest drain;
  drain.set_worker_id("nobody");
  v1::DrainReply reply;
  const Status status = farm.coordinator->drain(drain, &reply);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "worker nobody is not here; `tuner workers` lists those that are");
}

// The desk, of a farm's state and a store alone.
class DeskAlone : public testing::FarmRoom {
 protected:
  DeskAlone() : FarmRoom({.by_hand = true}) { desk_.start(); }
  struct Call {
    v1::SyncRequest request;
    v1::SyncReply reply;
    std::vector<Status> answers;
    uint64_t id = 0;
  };
  // A Sync that holds trial_, so that nothing is news, and waits ten seconds at most.
  void begin(Call& call, const std::string& session = "session") {
    call.request.set_session(session);
    call.request.set_free_slots(1);
    call.request.set_wait_ms(10'000);
    v1::HeldLease& held = *call.request.add_held();
    held.set_trial_id(trial_);
    held.set_attempt(1);
    held.set_fencing(1);
    call.id = desk_.sync(call.request, &call.reply,
                         [&call](const Status& status) { call.answers.push_back(status); });
  }

  BuildOffice builds_{farm_, clock_, options_, documents_, [] {}};
  Referee referee_{*store_, farm_, clock_, options_, metrics_};
  LossOffice losses_{*store_, farm_, options_, metrics_, news_, wake()};
  ResultIntake results_{{*store_, farm_, clock_, options_, metrics_, referee_, losses_, news_}, wake()};
  Leasing leasing_{{*store_, farm_, clock_, metrics_, news_, builds_}};
  Desk desk_{{farm_, clock_, options_, metrics_, news_, builds_, losses_, results_, leasing_}};
};

TEST_F(DeskAlone, ASyncWithoutNewsWaitsForWorkAndIsAnsweredOnce) {
  Call call;
  begin(call);
  EXPECT_TRUE(desk_.some_came());
  desk_.turn();
  EXPECT_FALSE(desk_.some_came());
  EXPECT_TRUE(call.answers.empty());
  queue_trial("b=1");
  desk_.wake();
  EXPECT_TRUE(desk_.some_came());
  desk_.turn();
  desk_.turn();
  ASSERT_EQ(call.answers.size(), 1u);
  EXPECT_TRUE(call.answers[0].is_ok());
  EXPECT_EQ(call.reply.leases_size(), 1);
}

TEST_F(DeskAlone, ASyncIsAnsweredWhenItsTimeIsOverAndWhatItHoldsHasLivedOnMeanwhile) {
  Call call;
  begin(call);
  desk_.turn();
  for (int i = 0; i < 39; ++i) clock_.now += 250, desk_.turn();
  EXPECT_TRUE(call.answers.empty());
  clock_.now += 250;
  desk_.turn();
  ASSERT_EQ(call.answers.size(), 1u);
  EXPECT_EQ(call.reply.leases_size() + call.reply.revoked_size(), 0);
  EXPECT_EQ(Locked(farm_)->leases.leased(), 1) << "its lease has not run out, which takes 8 s";
  for (int i = 0; i < 40; ++i) clock_.now += 250, desk_.turn();
  EXPECT_EQ(Locked(farm_)->leases.leased(), 0) << "nobody waits any more";
  EXPECT_EQ(row().state, TrialState::kQueued);
}

TEST_F(DeskAlone, ANewerSyncOfTheSessionTakesOver) {
  Call older, newer;
  begin(older);
  desk_.turn();
  begin(newer);
  desk_.turn();
  ASSERT_EQ(older.answers.size(), 1u);
  EXPECT_EQ(older.answers[0].code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(newer.answers.empty());
  newer.answers.clear();
  desk_.cancel_sync(newer.id);
  desk_.turn();
}

TEST_F(DeskAlone, ACallerThatHasGoneIsLeasedNothing) {
  Call waits, comes;
  begin(waits);
  desk_.turn();
  desk_.cancel_sync(waits.id);
  queue_trial("b=1");
  desk_.turn();
  ASSERT_EQ(waits.answers.size(), 1u);
  EXPECT_EQ(waits.answers[0].code(), StatusCode::kAborted);
  begin(comes);
  desk_.cancel_sync(comes.id);
  desk_.turn();
  ASSERT_EQ(comes.answers.size(), 1u);
  EXPECT_EQ(Locked(farm_)->leases.queued(), 1);
}

TEST_F(DeskAlone, AnUnknownSessionIsToRegisterAgain) {
  Call call;
  begin(call, "yesterday's");
  desk_.turn();
  ASSERT_EQ(call.answers.size(), 1u);
  EXPECT_EQ(call.answers[0].code(), StatusCode::kAborted);
  EXPECT_THAT(call.answers[0].message(), ::testing::HasSubstr("register again"));
}

TEST_F(DeskAlone, StoppingAnswersWhoWaitsAndRefusesWhoComesLater) {
  CoordinatorOptions threaded = options_;
  threaded.by_hand = false;
  Desk desk({farm_, clock_, threaded, metrics_, news_, builds_, losses_, results_, leasing_});
  desk.start();
  v1::SyncRequest request;
  request.set_session("session");
  request.set_wait_ms(10'000);
  request.add_held()->set_trial_id(trial_);
  request.mutable_held(0)->set_attempt(1);
  request.mutable_held(0)->set_fencing(1);
  v1::SyncReply reply;
  std::vector<Status> answers;
  const auto done = [&](const Status& status) { answers.push_back(status); };
  desk.sync(request, &reply, done);
  {
    const Locked farm(farm_);
    farm->stop_reason = "closing time";
    farm->stopping = true;
  }
  desk.stop();
  desk.sync(request, &reply, done);
  ASSERT_EQ(answers.size(), 2u);
  for (const Status& status : answers) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_EQ(status.message(), "closing time");
  }
}

// Jobs come and are taken back, of a farm's state and a store alone.
class JobDeskAlone : public testing::SearchRoom {
 protected:
  Result<v1::SubmitReply> submit(const std::string& request_id, bool fresh = true, const Scope& tenant = {}) {
    v1::SubmitRequest request;
    request.set_request_id(request_id);
    request.add_tasks()->set_workload_key(kAnalyticKey);
    request.mutable_tasks(0)->set_target(kAnalyticTarget);
    request.set_trials(20);
    request.set_search("random");
    request.set_fresh(fresh);
    v1::SubmitReply reply;
    RETURN_IF_ERROR(jobs_.submit(request, &reply, tenant));
    return reply;
  }
  v1::JobState cancel(const std::string& id) {
    v1::CancelRequest request;
    request.set_job_id(id);
    v1::CancelReply reply;
    const Status status = jobs_.cancel(request, &reply, {});
    EXPECT_TRUE(status.is_ok()) << status.message();
    return reply.state();
  }
  JobDesk jobs_{{*store_, farm_, clock_, options_, news_, races_, search_, documents_}};
};

TEST_F(JobDeskAlone, AJobIsInTheStoreAndHasATurnAndTheSameCallAgainIsTheSameJob) {
  EXPECT_EQ(submit("r1")->job_id(), "j1");
  EXPECT_EQ(store_->job("j1")->state, JobState::kQueued);
  EXPECT_TRUE(search_.take_turn());
  EXPECT_EQ(job("j1")->state(), JobState::kRunning);
  const v1::SubmitReply again = submit("r1").value();
  EXPECT_EQ(again.job_id(), "j1");
  EXPECT_TRUE(again.continued());
  EXPECT_EQ(submit("r2", /*fresh=*/false)->job_id(), "j1") << "the same search";
  EXPECT_EQ(submit("r3")->job_id(), "j2");
  EXPECT_EQ(store_->jobs()->size(), 2u);
}

TEST_F(JobDeskAlone, ATenantWithAsManyJobsAsItMayHaveIsRefusedAndNothingIsStored) {
  Locked(farm_)->leases.set_shares({{"a", {.most_jobs = 1}}});
  ASSERT_TRUE(submit("r1", true, "a"));
  EXPECT_THAT(submit("r2", true, "a").status().message(), HasSubstr("has 1 unfinished jobs, and may have 1"));
  EXPECT_TRUE(submit("r3", true, "b"));
  EXPECT_EQ(store_->jobs()->size(), 2u);
}

TEST_F(JobDeskAlone, AJobThatThisDaemonDoesNotRunIsCancelledInTheStore) {
  ASSERT_TRUE(
      store_->add_job({.id = "j7", .tasks = {{kAnalyticKey, kAnalyticTarget}}, .search = "random"}).is_ok());
  EXPECT_EQ(cancel("j7"), v1::CANCELLED);
  EXPECT_EQ(store_->job("j7")->state, JobState::kCancelled);
  EXPECT_EQ(submit("r1")->job_id(), "j8") << "numbers go on behind those of the store";
}

TEST_F(JobDeskAlone, AfterARestartUnfinishedJobsGoOnWithTheirOpenTrials) {
  submit("r1").value();
  submit("r2").value();
  while (search_.take_turn()) {
  }
  ASSERT_TRUE(store_->set_job_state("j2", JobState::kFinished, "").is_ok());
  const size_t open = open_trials("j1").size();
  ASSERT_GT(open, 0u);
  Guarded<FarmState> anew{options_};
  const Wake none{.desk = [] {}, .search = [](const std::string&) {}};
  LossOffice losses(*store_, anew, options_, metrics_, news_, none);
  RaceOffice races({*store_, anew, clock_, options_, news_, answers_}, none);
  SearchThreads search(
      {*store_, anew, clock_, options_, metrics_, news_, answers_, learner_, builds_, losses, races},
      none.desk);
  ASSERT_TRUE(
      JobDesk({*store_, anew, clock_, options_, news_, races, search, documents_}).resume_jobs().is_ok());
  const Locked farm(anew);
  EXPECT_NE(farm->jobs.find("j1"), nullptr);
  EXPECT_EQ(farm->jobs.find("j2"), nullptr);
  EXPECT_EQ(farm->leases.queued(), open);
}

TEST_F(JobDeskAlone, WhoAsksWhileTheDaemonStopsIsToldSo) {
  {
    const Locked farm(farm_);
    farm->stop_reason = "closing time";
    farm->stopping = true;
  }
  EXPECT_EQ(submit("r1").status().message(), "closing time");
}

TEST_F(JobDeskAlone, AListShowsEachTenantItsOwnAndCountsWhatWaits) {
  submit("r1", true, "a").value();
  submit("r2", true, "b").value();
  while (search_.take_turn()) {
  }
  const Locked farm(farm_);
  farm->started_ms = clock_.now - 60'000;
  const DaemonNow now = now_of(*farm, nullptr, clock_.now);
  EXPECT_EQ(now.jobs_running, 2u);
  EXPECT_EQ(now.queued, open_trials("j1").size() + open_trials("j2").size());
  v1::ListReply all, own;
  list_known(*farm, {}, now, /*results=*/3, &all);
  list_known(*farm, "b", now, /*results=*/3, &own);
  EXPECT_EQ(all.jobs_size(), 2);
  ASSERT_EQ(own.jobs_size(), 1);
  EXPECT_EQ(own.jobs(0).job_id(), "j2");
  EXPECT_EQ(all.daemon().up_s(), 60);
  EXPECT_EQ(all.daemon().results(), 3);
  ASSERT_EQ(own.daemon().tenants_size(), 1);
  EXPECT_EQ(own.daemon().tenants(0).tenant(), "b");
}

}  // namespace
}  // namespace tuner
