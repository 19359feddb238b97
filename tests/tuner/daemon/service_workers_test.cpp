// The daemon over the wire, seen by its workers: sessions, leases, results that are lost, late or repeated.
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
#include <sstream>
#include <thread>

#include "tests/tuner/daemon/served_daemon.h"

#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::analytic_space;
using testing::answer;
using testing::Daemon;
using testing::FakeWorker;
using ::testing::HasSubstr;
using testing::kAnalyticTarget;
using testing::limit;

TEST(ServiceWorkers, AnUnknownSessionMustRegisterAgain) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SyncRequest request;
  request.set_session("yesterday's");
  v1::SyncReply reply;
  EXPECT_EQ(daemon.sync(request, &reply).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST(ServiceWorkers, ASyncWithoutWorkWaitsAndWorkEndsTheWait) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  const std::string session = daemon.register_worker("w1", "1");
  EXPECT_EQ(daemon.lease(session, 4, 300).leases_size(), 0);
  std::thread later([&] {
    let_pass(100ms);
    v1::SubmitReply reply;
    EXPECT_TRUE(daemon.submit(&reply, 16, "r1").ok());
  });
  EXPECT_GT(daemon.lease(session, 4, 15'000).leases_size(), 0);
  later.join();
}

TEST(ServiceWorkers, LeasesOfALostReplyComeAgainWithTheSameAttempt) {
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

TEST(ServiceWorkers, ARepeatedResultIsAcknowledgedAgainAndStoredOnce) {
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

TEST(ServiceWorkers, AWorkerThatRestartsLosesItsLeasesToTheNextAtOnce) {
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
TEST(ServiceWorkers, Seen4ASecondProcessWithTheSameIdWaitsUntilTheFirstHasGone) {
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
    let_pass(10ms);
  }
  context.TryCancel();  // the first one's connection closes
  waiting.join();
  EXPECT_TRUE(wait_until(30s, [&] { return enter("2").ok(); }))
      << "it takes over at once, long before a minute of silence";
}

// Issue 18, "What was seen", 6: one worker with a full disk made trials terminal beside a healthy one.
TEST(ServiceWorkers, Seen6WhatOneWorkerCouldNotMeasureAnotherDoes) {
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
  EXPECT_TRUE(wait_until(30s, [&] { return failed >= 3; }));
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

TEST(ServiceWorkers, ASilentWorkersTrialGoesToAnotherAndItsLateResultCounts) {
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

TEST(ServiceWorkers, ADaemonThatRestartsGoesOnWithTheSameLeases) {
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
TEST(ServiceWorkers, Seen8AfterARestartOpenTrialsAreLeasedBeforeTheSearchStandsAgain) {
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
TEST(ServiceWorkers, Seen9ASyncWakesNobodyElse) {
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
  ASSERT_TRUE(wait_until(30s, [&] { return metrics.syncs_waiting == kWaiting; }));
  const uint64_t answered = metrics.syncs_answered.value();
  const std::string session = daemon.register_worker("busy", "1");
  for (int i = 0; i < kSyncs; ++i) EXPECT_EQ(daemon.lease(session, 1, /*wait_ms=*/1).leases_size(), 0);
  EXPECT_EQ(metrics.syncs_answered.value(), answered + kSyncs);
  EXPECT_EQ(metrics.syncs_waiting, kWaiting);
  daemon.coordinator->stop("test is over");
  for (std::thread& t : waiting) t.join();
}

// Issue 18, "What was seen", 10: a full disk filled the log as well.
TEST(ServiceWorkers, Seen10AResultThatTheDiskRefusesIsOneLineHoweverOftenItComes) {
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

}  // namespace
}  // namespace tuner
