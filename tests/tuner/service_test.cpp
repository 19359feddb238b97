// The daemon over the wire, with workers that answer from a formula: jobs, leases, events, and how calls end.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <set>
#include <sstream>
#include <thread>

#include "measure.grpc.pb.h"
#include "proto/convert.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/server.h"
#include "tuning.grpc.pb.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::analytic_record;
using testing::analytic_space;
using ::testing::HasSubstr;
using testing::kAnalyticKey;
using testing::kAnalyticTarget;

void limit(grpc::ClientContext& context, std::chrono::milliseconds time = 60s) {
  context.set_deadline(std::chrono::system_clock::now() + time);
}

// A daemon on a free loopback port.
class Daemon {
 public:
  explicit Daemon(
      const std::string& db, bool resume = false, int64_t ttl_ms = 15'000, int64_t take_over_ms = 0,
      const TaskSpaceFactory& make_space = [](const JobRow::Task&) { return analytic_space(6); }) {
    store = Store::open(db, Store::Mode::kWrite).value();
    CoordinatorOptions options;
    options.resume_jobs = resume;
    options.leases.ttl_ms = options.leases.restart_grace_ms = ttl_ms;
    options.take_over_ms = take_over_ms;
    options.no_worker_hint_ms = 200;
    options.make_space = make_space;
    options.check_task = [](const JobRow::Task& task) {
      return task.target == kAnalyticTarget ? Status::ok() : not_found("no template serves it");
    };
    coordinator = std::make_unique<Coordinator>(*store, clock, options);
    EXPECT_TRUE(coordinator->start().is_ok());
    server = Server::start(*coordinator, {"127.0.0.1:0"}).value();
    channel = grpc::CreateChannel(server->addresses()[0], grpc::InsecureChannelCredentials());
    jobs = v1::Jobs::NewStub(channel);
    workers = v1::Workers::NewStub(channel);
  }
  ~Daemon() {
    coordinator->stop("test is over");
    server->stop();
  }
  grpc::Status submit(v1::SubmitReply* reply, int trials, const std::string& request_id, bool fresh = false,
                      const std::string& search = "genetic") {
    v1::SubmitRequest request;
    request.set_request_id(request_id);
    v1::TaskSpec* task = request.add_tasks();
    task->set_workload_key(kAnalyticKey);
    task->set_target(kAnalyticTarget);
    request.set_trials(trials);
    request.set_search(search);
    request.set_fresh(fresh);
    grpc::ClientContext context;
    limit(context);
    return jobs->Submit(&context, request, reply);
  }
  grpc::Status watch(const std::string& job, std::vector<v1::JobEvent>* events, int64_t after = 0) {
    v1::WatchRequest request;
    request.set_job_id(job);
    request.set_after_seq(after);
    grpc::ClientContext context;
    limit(context);
    const auto reader = jobs->Watch(&context, request);
    v1::JobEvent event;
    while (reader->Read(&event)) events->push_back(event);
    return reader->Finish();
  }
  std::string register_worker(const std::string& id, const std::string& incarnation,
                              const std::string& target = kAnalyticTarget) {
    v1::RegisterRequest request;
    request.set_worker_id(id);
    request.set_incarnation(incarnation);
    request.set_protocol(1);
    request.add_targets(target);
    request.set_max_threads(4);
    v1::RegisterReply reply;
    grpc::ClientContext context;
    limit(context);
    EXPECT_TRUE(workers->Register(&context, request, &reply).ok());
    return reply.session();
  }
  grpc::Status sync(const v1::SyncRequest& request, v1::SyncReply* reply) {
    grpc::ClientContext context;
    limit(context);
    return workers->Sync(&context, request, reply);
  }
  v1::SyncReply lease(const std::string& session, int slots, int wait_ms = 5000) {
    v1::SyncRequest request;
    request.set_session(session);
    request.set_free_slots(slots);
    request.set_wait_ms(wait_ms);
    v1::SyncReply reply;
    EXPECT_TRUE(sync(request, &reply).ok());
    return reply;
  }

  SteadyClock clock;
  std::unique_ptr<Store> store;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Jobs::Stub> jobs;
  std::unique_ptr<v1::Workers::Stub> workers;
};

v1::MeasureRecord answer(const v1::Lease& lease) {
  v1::MeasureRecord message;
  to_proto(analytic_record(lease.trial_id(), lease.attempt(), lease.config()), &message);
  return message;
}

// A worker in a thread: leases, answers from the formula, repeats results until they are acknowledged.
class FakeWorker {
 public:
  FakeWorker(Daemon& daemon, const std::string& id) : thread_([this, &daemon, id] { run(daemon, id); }) {}
  ~FakeWorker() {
    stop_ = true;
    thread_.join();
  }
  std::atomic<int> measured{0};

 private:
  void run(Daemon& daemon, const std::string& id) {
    v1::SyncRequest request;
    request.set_session(daemon.register_worker(id, "1"));
    request.set_free_slots(4);
    request.set_wait_ms(200);
    while (!stop_) {
      v1::SyncReply reply;
      if (!daemon.sync(request, &reply).ok()) return;
      request.clear_results();  // every reply acknowledges what was sent: the fake never loses one
      for (const v1::Lease& lease : reply.leases()) {
        *request.add_results() = answer(lease);
        ++measured;
      }
    }
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(Service, AJobRunsToItsEndAndTellsItsWatcher) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  FakeWorker worker(daemon, "w1");
  v1::SubmitReply submitted;
  ASSERT_TRUE(daemon.submit(&submitted, 80, "r1").ok());
  EXPECT_EQ(submitted.job_id(), "j1");
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.watch("j1", &events).ok());
  EXPECT_EQ(events.back().state(), v1::FINISHED);
  EXPECT_EQ(worker.measured, 80);
  int tuned = 0;
  v1::Progress last;
  for (const v1::JobEvent& e : events) {
    if (e.has_progress()) last = e.progress();
    if (!e.has_tuned()) continue;
    ++tuned;
    EXPECT_EQ(e.tuned().workload_key(), kAnalyticKey);
    EXPECT_EQ(e.tuned().trials(), 80);
    EXPECT_GT(e.tuned().gflops(), 0);
  }
  EXPECT_EQ(tuned, 1);
  EXPECT_EQ(last.trials_done(), 80);
  EXPECT_EQ(last.trials_total(), 80);
  EXPECT_GT(last.best_ns(), 0);
}

TEST(Service, WhatHappensIsCountedAndListedFromMemory) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"), false, /*ttl_ms=*/1'000);
  v1::SubmitReply submitted;
  ASSERT_TRUE(daemon.submit(&submitted, 80, "r1").ok());
  v1::SyncReply leases = daemon.lease(daemon.register_worker("lost", "1"), 2);
  ASSERT_EQ(leases.leases_size(), 2);
  EXPECT_EQ(daemon.coordinator->now().leased, 2u);
  EXPECT_EQ(daemon.coordinator->now().workers_here, 1u);
  std::vector<v1::JobEvent> events;
  {
    FakeWorker worker(daemon, "w1");
    ASSERT_TRUE(daemon.watch("j1", &events).ok());
  }
  const DaemonMetrics& metrics = daemon.coordinator->metrics();
  EXPECT_EQ(metrics.results_stored(), 80u);
  EXPECT_EQ(metrics.leases_lost[static_cast<size_t>(LostWhy::kExpired)].value(), 2u);
  EXPECT_GE(metrics.leases_granted.value(), 82u);
  EXPECT_GT(metrics.syncs_answered.value(), 1u);
  EXPECT_GT(metrics.result_commit_s.up_to(metrics.result_commit_s.buckets()), 0u);
  EXPECT_GT(metrics.search_turn_s.up_to(metrics.search_turn_s.buckets()), 0u);
  EXPECT_FALSE(metrics.commit_failed);
  v1::ListRequest request;
  request.set_known(true);
  v1::ListReply list;
  grpc::ClientContext context;
  limit(context);
  ASSERT_TRUE(daemon.jobs->List(&context, request, &list).ok());
  ASSERT_EQ(list.jobs_size(), 1);
  EXPECT_EQ(list.jobs(0).progress().trials_done(), 80);
  EXPECT_EQ(list.jobs(0).state(), v1::FINISHED);
  EXPECT_EQ(list.daemon().results(), 80);
  EXPECT_EQ(list.daemon().leased(), 0);
}

TEST(Service, TheSameJobAgainIsAnsweredFromTheStoreAndMoreTrialsContinueIt) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  FakeWorker worker(daemon, "w1");
  v1::SubmitReply first, again, more, fresh;
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.submit(&first, 32, "r1").ok());
  ASSERT_TRUE(daemon.watch(first.job_id(), &events).ok());
  ASSERT_TRUE(daemon.submit(&again, 32, "r2").ok());
  EXPECT_EQ(again.job_id(), first.job_id());
  EXPECT_TRUE(again.already_finished());
  EXPECT_EQ(worker.measured, 32);
  ASSERT_TRUE(daemon.submit(&more, 48, "r3").ok());
  EXPECT_EQ(more.job_id(), first.job_id());
  EXPECT_TRUE(more.continued());
  EXPECT_FALSE(more.already_finished());
  events.clear();
  ASSERT_TRUE(daemon.watch(first.job_id(), &events).ok());
  EXPECT_EQ(events.back().state(), v1::FINISHED);
  EXPECT_EQ(worker.measured, 48);
  ASSERT_TRUE(daemon.submit(&fresh, 16, "r4", /*fresh=*/true).ok());
  EXPECT_NE(fresh.job_id(), first.job_id());
}

TEST(Service, ARepeatedSubmitCallMakesOneJob) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply first, again;
  ASSERT_TRUE(daemon.submit(&first, 32, "r1", /*fresh=*/true).ok());
  ASSERT_TRUE(daemon.submit(&again, 32, "r1", /*fresh=*/true).ok());
  EXPECT_EQ(first.job_id(), again.job_id());
}

TEST(Service, ARepeatedSubmitCallFindsItsJobBehindNewerOnesAndAfterARestart) {
  TemporaryFolder folder;
  v1::SubmitReply reply;
  {
    Daemon daemon(folder.file("db"));
    for (const char* request : {"r1", "r2"}) {
      ASSERT_TRUE(daemon.submit(&reply, 32, request, /*fresh=*/true).ok());
      reply.Clear();
    }
    ASSERT_TRUE(daemon.submit(&reply, 32, "r1").ok());
    EXPECT_EQ(reply.job_id(), "j1") << "not the latest of the same search";
  }
  Daemon daemon(folder.file("db"));
  ASSERT_TRUE(daemon.submit(&reply, 32, "r2", /*fresh=*/true).ok());
  EXPECT_EQ(reply.job_id(), "j2");
  EXPECT_TRUE(reply.continued());
  reply.Clear();
  ASSERT_TRUE(daemon.submit(&reply, 32, "r3", /*fresh=*/true).ok());
  EXPECT_EQ(reply.job_id(), "j3") << "jobs are numbered on";
  EXPECT_FALSE(reply.continued());
}

TEST(Service, WrongRequestsAreRefusedWithTheField) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply reply;
  const grpc::Status no_trials = daemon.submit(&reply, 0, "r1");
  EXPECT_EQ(no_trials.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(no_trials.error_message(), HasSubstr("trials"));
  const grpc::Status search = daemon.submit(&reply, 8, "r2", false, "luck");
  EXPECT_EQ(search.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(search.error_message(), HasSubstr("search: found \"luck\", expected one of"));
  std::vector<v1::JobEvent> events;
  EXPECT_EQ(daemon.watch("j9", &events).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(Service, AnUnknownSessionMustRegisterAgain) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SyncRequest request;
  request.set_session("yesterday's");
  v1::SyncReply reply;
  EXPECT_EQ(daemon.sync(request, &reply).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST(Service, ASyncWithoutWorkWaitsAndWorkEndsTheWait) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  const std::string session = daemon.register_worker("w1", "1");
  EXPECT_EQ(daemon.lease(session, 4, 300).leases_size(), 0);
  std::thread later([&] {
    std::this_thread::sleep_for(100ms);
    v1::SubmitReply reply;
    EXPECT_TRUE(daemon.submit(&reply, 16, "r1").ok());
  });
  EXPECT_GT(daemon.lease(session, 4, 15'000).leases_size(), 0);
  later.join();
}

TEST(Service, LeasesOfALostReplyComeAgainWithTheSameAttempt) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply reply;
  ASSERT_TRUE(daemon.submit(&reply, 16, "r1").ok());
  const std::string session = daemon.register_worker("w1", "1");
  const v1::SyncReply lost = daemon.lease(session, 2);
  ASSERT_EQ(lost.leases_size(), 2);
  const v1::SyncReply again = daemon.lease(session, 2);
  ASSERT_EQ(again.leases_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(again.leases(i).trial_id(), lost.leases(i).trial_id());
    EXPECT_EQ(again.leases(i).attempt(), lost.leases(i).attempt());
    EXPECT_EQ(again.leases(i).fencing(), lost.leases(i).fencing());
  }
}

TEST(Service, ARepeatedResultIsAcknowledgedAgainAndStoredOnce) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply reply;
  ASSERT_TRUE(daemon.submit(&reply, 16, "r1").ok());
  v1::SyncRequest request;
  request.set_session(daemon.register_worker("w1", "1"));
  const v1::SyncReply leased = daemon.lease(request.session(), 1);
  ASSERT_EQ(leased.leases_size(), 1);
  *request.add_results() = answer(leased.leases(0));
  for (int i = 0; i < 3; ++i) {
    v1::SyncReply acked;
    ASSERT_TRUE(daemon.sync(request, &acked).ok());
    ASSERT_EQ(acked.acks_size(), 1);
    EXPECT_EQ(acked.acks(0).trial_id(), leased.leases(0).trial_id());
  }
  int records = 0;
  ASSERT_TRUE(
      daemon.store->for_each_record("", [&](const TrialWithRecord&) { return ++records < 100; }).is_ok());
  EXPECT_EQ(records, 1);
}

TEST(Service, AWorkerThatRestartsLosesItsLeasesToTheNextAtOnce) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply reply;
  ASSERT_TRUE(daemon.submit(&reply, 1, "r1").ok());
  const v1::SyncReply first = daemon.lease(daemon.register_worker("w1", "1"), 1);
  ASSERT_EQ(first.leases_size(), 1);
  const v1::SyncReply second = daemon.lease(daemon.register_worker("w1", "2"), 1);
  ASSERT_EQ(second.leases_size(), 1);
  EXPECT_EQ(second.leases(0).trial_id(), first.leases(0).trial_id());
  EXPECT_EQ(second.leases(0).attempt(), 2);
  EXPECT_GT(second.leases(0).fencing(), first.leases(0).fencing());
}

// Issue 18, "What was seen", 4: two workers with one id evicted each other for ever.
TEST(Service, Seen4ASecondProcessWithTheSameIdWaitsUntilTheFirstHasGone) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"), /*resume=*/false, /*ttl_ms=*/15'000, /*take_over_ms=*/60'000);
  v1::SyncRequest request;
  request.set_session(daemon.register_worker("w1", "1"));
  request.set_wait_ms(20'000);
  grpc::ClientContext context;
  limit(context);
  v1::SyncReply reply;
  std::thread waiting([&] { (void)daemon.workers->Sync(&context, request, &reply); });
  const auto enter = [&](const std::string& incarnation) {
    v1::RegisterRequest hello;
    hello.set_worker_id("w1");
    hello.set_incarnation(incarnation);
    hello.set_protocol(1);
    hello.add_targets(kAnalyticTarget);
    v1::RegisterReply welcome;
    grpc::ClientContext call;
    limit(call);
    return daemon.workers->Register(&call, hello, &welcome);
  };
  for (int i = 0; i < 20; ++i) {
    const grpc::Status refused = enter("2");
    ASSERT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
    EXPECT_THAT(refused.error_message(), HasSubstr("worker w1 is here already"));
    std::this_thread::sleep_for(10ms);
  }
  context.TryCancel();  // the first one's connection closes
  waiting.join();
  bool entered = false;
  for (int i = 0; i < 500 && !entered; ++i) {
    entered = enter("2").ok();
    if (!entered) std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(entered) << "it takes over at once, long before a minute of silence";
}

// Issue 18, "What was seen", 6: one worker with a full disk made trials terminal beside a healthy one.
TEST(Service, Seen6WhatOneWorkerCouldNotMeasureAnotherDoes) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply submitted;
  ASSERT_TRUE(daemon.submit(&submitted, 64, "r1").ok());
  v1::SyncRequest request;
  request.set_session(daemon.register_worker("sick", "1"));
  request.set_free_slots(2);
  request.set_wait_ms(100);
  std::atomic<bool> done{false};
  std::atomic<int> failed{0};
  std::thread sick([&] {
    while (!done) {
      v1::SyncReply reply;
      if (!daemon.sync(request, &reply).ok()) return;
      request.clear_results();
      for (const v1::Lease& lease : reply.leases()) {
        v1::MeasureRecord record = answer(lease);
        record.set_outcome(v1::DEVICE_LOST);
        record.set_message("write: No space left on device");
        record.clear_run_ns();
        record.clear_cpu_ns();
        *request.add_results() = record;
        ++failed;
      }
    }
  });
  for (int i = 0; i < 1000 && failed < 3; ++i) std::this_thread::sleep_for(10ms);
  const FakeWorker healthy(daemon, "healthy");
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(daemon.watch("j1", &events).ok());
  done = true;
  sick.join();
  EXPECT_GE(failed, 3);
  EXPECT_LE(failed, 8) << "it is left alone after five in a row";
  int lost = 0, records = 0;
  EXPECT_TRUE(daemon.store
                  ->for_each_record("j1",
                                    [&](const TrialWithRecord& t) {
                                      ++records;
                                      lost += t.record->outcome == Outcome::kDeviceLost ? 1 : 0;
                                      return true;
                                    })
                  .is_ok());
  EXPECT_EQ(records, 64);
  EXPECT_EQ(lost, 0);
}

TEST(Service, ASilentWorkersTrialGoesToAnotherAndItsLateResultCounts) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"), /*resume=*/false, /*ttl_ms=*/1'000);
  v1::SubmitReply reply;
  ASSERT_TRUE(daemon.submit(&reply, 1, "r1").ok());
  v1::SyncRequest silent;
  silent.set_session(daemon.register_worker("w1", "1"));
  const v1::SyncReply first = daemon.lease(silent.session(), 1);
  ASSERT_EQ(first.leases_size(), 1);
  const std::string other = daemon.register_worker("w2", "1");
  const v1::SyncReply second = daemon.lease(other, 1, 10'000);
  ASSERT_EQ(second.leases_size(), 1);
  EXPECT_EQ(second.leases(0).attempt(), 2);
  *silent.add_results() = answer(first.leases(0));
  v1::SyncReply acked;
  ASSERT_TRUE(daemon.sync(silent, &acked).ok());
  EXPECT_EQ(acked.acks_size(), 1);
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.watch("j1", &events).ok());
  EXPECT_EQ(events.back().state(), v1::FINISHED);
  v1::SyncRequest busy;
  busy.set_session(other);
  v1::HeldLease* held = busy.add_held();
  held->set_trial_id(second.leases(0).trial_id());
  held->set_attempt(2);
  held->set_fencing(second.leases(0).fencing());
  v1::SyncReply told;
  ASSERT_TRUE(daemon.sync(busy, &told).ok());
  EXPECT_EQ(told.revoked_size(), 1) << "somebody else finished it";
}

TEST(Service, ADaemonThatRestartsGoesOnWithTheSameLeases) {
  TemporaryFolder folder;
  v1::SyncReply before;
  {
    Daemon daemon(folder.file("db"), true);
    v1::SubmitReply reply;
    ASSERT_TRUE(daemon.submit(&reply, 20, "r1").ok());
    before = daemon.lease(daemon.register_worker("w1", "1"), 2);
    ASSERT_EQ(before.leases_size(), 2);
  }
  Daemon daemon(folder.file("db"), true);
  v1::SyncRequest request;
  request.set_session(daemon.register_worker("w1", "1"));
  for (const v1::Lease& lease : before.leases()) {
    v1::HeldLease* held = request.add_held();
    held->set_trial_id(lease.trial_id());
    held->set_attempt(lease.attempt());
    held->set_fencing(lease.fencing());
  }
  v1::SyncReply reply;
  ASSERT_TRUE(daemon.sync(request, &reply).ok());
  EXPECT_EQ(reply.revoked_size(), 0);
  request.clear_held();
  for (const v1::Lease& lease : before.leases()) *request.add_results() = answer(lease);
  ASSERT_TRUE(daemon.sync(request, &reply).ok());
  FakeWorker worker(daemon, "w2");
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.watch("j1", &events).ok());
  EXPECT_EQ(events.back().state(), v1::FINISHED);
  EXPECT_EQ(worker.measured, 18);
}

// Issue 18, "What was seen", 8: after a restart a large job leased nothing until its search stood again.
TEST(Service, Seen8AfterARestartOpenTrialsAreLeasedBeforeTheSearchStandsAgain) {
  TemporaryFolder folder;
  {
    Daemon daemon(folder.file("db"), true);
    v1::SubmitReply reply;
    ASSERT_TRUE(daemon.submit(&reply, 20, "r1").ok());
    ASSERT_EQ(daemon.lease(daemon.register_worker("w1", "1"), 2).leases_size(), 2);
  }
  std::promise<void> go_on;
  const std::shared_future<void> told = go_on.get_future().share();
  Daemon daemon(folder.file("db"), true, 15'000, 0, [&](const JobRow::Task&) {
    told.wait();
    return analytic_space(6);
  });
  const std::string session = daemon.register_worker("w1", "2");
  v1::SyncRequest request;
  request.set_session(session);
  const v1::SyncReply leased = daemon.lease(session, 4, 20'000);
  EXPECT_EQ(leased.leases_size(), 4) << "the search has not even a space yet";
  for (const v1::Lease& lease : leased.leases()) *request.add_results() = answer(lease);
  v1::SyncReply reply;
  ASSERT_TRUE(daemon.sync(request, &reply).ok());
  EXPECT_EQ(reply.acks_size(), 4);
  go_on.set_value();
  const FakeWorker worker(daemon, "w2");
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.watch("j1", &events).ok());
  EXPECT_EQ(events.back().state(), v1::FINISHED);
  EXPECT_EQ(daemon.store->trials_done("j1").value(), 20);
}

// Issue 18, "What was seen", 9: every Sync woke all that waited, and each looked at every open trial.
TEST(Service, Seen9ASyncWakesNobodyElse) {
  constexpr int kWaiting = 20, kSyncs = 50;
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  std::vector<std::thread> waiting;
  for (int i = 0; i < kWaiting; ++i)
    waiting.emplace_back([&, session = daemon.register_worker(str("w", i), "1")] {
      v1::SyncRequest request;
      request.set_session(session);
      request.set_free_slots(1);
      request.set_wait_ms(60'000);
      v1::SyncReply reply;
      static_cast<void>(daemon.sync(request, &reply));  // until the daemon stops
    });
  const DaemonMetrics& metrics = daemon.coordinator->metrics();
  for (int i = 0; i < 2'000 && metrics.syncs_waiting < kWaiting; ++i) std::this_thread::sleep_for(10ms);
  ASSERT_EQ(metrics.syncs_waiting, kWaiting);
  const uint64_t answered = metrics.syncs_answered.value();
  const std::string session = daemon.register_worker("busy", "1");
  for (int i = 0; i < kSyncs; ++i) EXPECT_EQ(daemon.lease(session, 1, /*wait_ms=*/1).leases_size(), 0);
  EXPECT_EQ(metrics.syncs_answered.value(), answered + kSyncs);
  EXPECT_EQ(metrics.syncs_waiting, kWaiting);
  daemon.coordinator->stop("test is over");
  for (std::thread& t : waiting) t.join();
}

// Issue 18, "What was seen", 10: a full disk filled the log as well.
TEST(Service, Seen10AResultThatTheDiskRefusesIsOneLineHoweverOftenItComes) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply submitted;
  ASSERT_TRUE(daemon.submit(&submitted, 8, "r1").ok());
  const std::string session = daemon.register_worker("w1", "1");
  v1::SyncRequest request;
  request.set_session(session);
  const v1::SyncReply leased = daemon.lease(session, 4);
  for (const v1::Lease& lease : leased.leases()) *request.add_results() = answer(lease);
  ASSERT_GT(request.results_size(), 0);

  std::ostringstream lines;
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("daemon", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines)));
  // From here on no file grows.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit kept{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &kept), 0);
  const rlimit full{.rlim_cur = 1, .rlim_max = kept.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  for (int i = 0; i < 200; ++i) {
    v1::SyncReply reply;
    EXPECT_TRUE(daemon.sync(request, &reply).ok());
    EXPECT_EQ(reply.acks_size(), 0) << "it comes again";
  }
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &kept), 0);
  daemon.coordinator->stop("test is over");
  spdlog::set_default_logger(before);
  const std::string log = lines.str();
  EXPECT_THAT(log, HasSubstr("is not stored"));
  EXPECT_LT(std::ranges::count(log, '\n'), 10) << log;
}

TEST(Service, CancelEndsTheJobAndRevokesItsLeases) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply reply;
  ASSERT_TRUE(daemon.submit(&reply, 1000, "r1").ok());
  v1::SyncRequest busy;
  busy.set_session(daemon.register_worker("w1", "1"));
  const v1::SyncReply leased = daemon.lease(busy.session(), 1);
  ASSERT_EQ(leased.leases_size(), 1);
  v1::CancelRequest request;
  request.set_job_id("j1");
  v1::CancelReply cancelled;
  grpc::ClientContext context;
  limit(context);
  ASSERT_TRUE(daemon.jobs->Cancel(&context, request, &cancelled).ok());
  EXPECT_EQ(cancelled.state(), v1::CANCELLED);
  v1::HeldLease* held = busy.add_held();
  held->set_trial_id(leased.leases(0).trial_id());
  held->set_attempt(1);
  v1::SyncReply told;
  ASSERT_TRUE(daemon.sync(busy, &told).ok());
  EXPECT_EQ(told.revoked_size(), 1);
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.watch("j1", &events).ok());
  EXPECT_EQ(events.back().state(), v1::CANCELLED);
}

TEST(Service, AJobNobodyCanMeasureSaysSo) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  daemon.register_worker("w1", "1", "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1");
  v1::SubmitReply reply;
  ASSERT_TRUE(daemon.submit(&reply, 8, "r1").ok());
  v1::WatchRequest request;
  request.set_job_id("j1");
  grpc::ClientContext context;
  limit(context);
  const auto reader = daemon.jobs->Watch(&context, request);
  v1::JobEvent event;
  std::string hint;
  while (hint.empty() && reader->Read(&event))
    if (event.message().starts_with("no worker")) hint = event.message();
  EXPECT_THAT(
      hint,
      HasSubstr("no worker measures \"llvm -mcpu=haswell -threads=1\" (here: w1: llvm -mcpu=cortex-a72"));
  context.TryCancel();
  reader->Finish();
}

TEST(Service, RerunMeasuresATrialOnceMoreAndKeepsBothResults) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  FakeWorker worker(daemon, "w1");
  v1::SubmitReply reply;
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.submit(&reply, 8, "r1").ok());
  ASSERT_TRUE(daemon.watch("j1", &events).ok());
  v1::RerunRequest request;
  request.set_trial_id(daemon.store->trials("j1").value().at(0).trial.id);
  v1::MeasureRecord record;
  grpc::ClientContext context;
  limit(context);
  const grpc::Status status = daemon.jobs->Rerun(&context, request, &record);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(record.trial_id(), request.trial_id());
  EXPECT_EQ(worker.measured, 9);
  EXPECT_EQ(daemon.store->trial(request.trial_id()).value().record->attempt, 1)
      << "the job's own result stands";
}

TEST(Service, ThreeWorkersShareAJobAndNoTrialIsMeasuredTwice) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  FakeWorker a(daemon, "a"), b(daemon, "b"), c(daemon, "c");
  v1::SubmitReply reply;
  std::vector<v1::JobEvent> events;
  ASSERT_TRUE(daemon.submit(&reply, 200, "r1", false, "random").ok());
  ASSERT_TRUE(daemon.watch("j1", &events).ok());
  EXPECT_EQ(a.measured + b.measured + c.measured, 200);
  const std::vector<TrialWithRecord> trials = daemon.store->trials("j1").value();
  std::set<std::string> configs;
  for (const TrialWithRecord& t : trials) EXPECT_TRUE(configs.insert(t.trial.config).second);
  EXPECT_EQ(configs.size(), 200u);
}

TEST(Service, StoppingEndsWaitingCallsSoonAndTellsTheWatcherWhy) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply reply;
  ASSERT_TRUE(daemon.submit(&reply, 16, "r1").ok());
  grpc::Status ended;
  std::thread watcher([&] {
    std::vector<v1::JobEvent> events;
    ended = daemon.watch("j1", &events);
  });
  const std::string session =
      daemon.register_worker("w1", "1", "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1");
  std::thread poller([&] {
    v1::SyncRequest request;
    request.set_session(session);
    request.set_wait_ms(20'000);
    v1::SyncReply told;
    EXPECT_EQ(daemon.sync(request, &told).error_code(), grpc::StatusCode::UNAVAILABLE)
        << "it is to try again";
  });
  std::this_thread::sleep_for(300ms);
  daemon.coordinator->stop("the host command has ended");
  daemon.server->stop();
  watcher.join();
  poller.join();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ended.error_message(), "the host command has ended");
  EXPECT_EQ(daemon.store->job("j1").value().state, JobState::kQueued) << "to be continued";
}

TEST(ListenAddress, OnlyLoopbackAndSocketsAreServedInPlainText) {
  EXPECT_TRUE(check_listen_address("127.0.0.1:7070").is_ok());
  EXPECT_TRUE(check_listen_address("localhost:0").is_ok());
  EXPECT_TRUE(check_listen_address("[::1]:7070").is_ok());
  EXPECT_TRUE(check_listen_address("unix:/run/tuner.sock").is_ok());
  EXPECT_THAT(check_listen_address("0.0.0.0:7070").message(), HasSubstr("only loopback"));
  EXPECT_THAT(check_listen_address("farm.example:7070").message(), HasSubstr("only loopback"));
  EXPECT_THAT(check_listen_address("127.0.0.1").message(), HasSubstr("expected HOST:PORT"));
  EXPECT_THAT(check_listen_address("127.0.0.1:port").message(), HasSubstr("expected HOST:PORT"));
  EXPECT_THAT(check_listen_address("127.evil.example:1").message(), HasSubstr("only loopback"));
}

TEST(ListenAddress, WithTlsAnyAddressIsServed) {
  for (const char* good : {"tls:0.0.0.0:7070", "tls:[::]:7070", "tls:farm.example:0", "tls:127.0.0.1:7070"})
    EXPECT_TRUE(check_listen_address(good).is_ok()) << good;
  EXPECT_THAT(check_listen_address("0.0.0.0:7070").message(),
              HasSubstr("With it: `tuner admin ca`, then --listen tls:0.0.0.0:7070"));
  for (const char* bad :
       {"tls:", "tls:7070", "tls:0.0.0.0", "tls:0.0.0.0:70700", "tls:unix:/x", "TLS:0.0.0.0:1"})
    EXPECT_FALSE(check_listen_address(bad).is_ok()) << bad;
  EXPECT_FALSE(check_loopback("tls:127.0.0.1:1").is_ok()) << "pages are plain text";
}

}  // namespace
}  // namespace tuner
