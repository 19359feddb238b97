// The daemon over the wire, with workers that answer from a formula: jobs, events, and how calls end.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "proto/grpc_status.h"
#include "tests/support/http2_attack.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/daemon/served_daemon.h"
#include "tuner/client/daemon_client.h"
#include "tuner/client/job_list.h"
#include "tuner/daemon/call_threads.h"
#include "tuner/daemon/daemon_host.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::Daemon;
using testing::FakeWorker;
using ::testing::HasSubstr;
using testing::kAnalyticKey;
using testing::limit;

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

// Whoever asks for a trial again wants all of its samples, whatever the job cut short.
TEST(Service, ARerunCutsNothingShort) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::SubmitReply reply;
  {
    FakeWorker worker(daemon, "w1");
    std::vector<v1::JobEvent> events;
    ASSERT_TRUE(daemon.submit(&reply, 8, "r1").ok());
    ASSERT_TRUE(daemon.watch("j1", &events).ok());
  }
  v1::RerunRequest request;
  request.set_trial_id(daemon.store->trials("j1").value().at(0).trial.id);
  grpc::Status status;
  std::thread caller([&] {
    v1::MeasureRecord record;
    grpc::ClientContext context;
    limit(context);
    status = daemon.jobs->Rerun(&context, request, &record);
  });
  v1::SyncRequest work;
  work.set_session(daemon.register_worker("w2", "1"));
  const v1::SyncReply given = daemon.lease(work.session(), 4);
  for (const v1::Lease& lease : given.leases()) {
    EXPECT_EQ(lease.trial_id(), request.trial_id());
    EXPECT_LT(lease.options().cut_factor(), 0);
    EXPECT_LT(lease.options().precision(), 0) << "below 0 is none: 0 would be the default";
    EXPECT_EQ(lease.options().repeats(), 9);
    *work.add_results() = testing::answer(lease);
  }
  EXPECT_EQ(given.leases_size(), 1);
  v1::SyncReply told;
  EXPECT_TRUE(daemon.sync(work, &told).ok());
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
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
  std::atomic<bool> watching{false};
  std::thread watcher([&] {
    std::vector<v1::JobEvent> events;
    ended = daemon.watch("j1", &events, 0, &watching);
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
  ASSERT_TRUE(wait_until(30s, [&] { return watching && daemon.coordinator->metrics().syncs_waiting == 1; }));
  daemon.coordinator->stop("the host command has ended");
  daemon.server->stop();
  watcher.join();
  poller.join();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ended.error_message(), "the host command has ended");
  EXPECT_EQ(daemon.store->job("j1").value().state, JobState::kQueued) << "to be continued";
}

// What docs/farm.md and the folder's README promise without anybody asking for it; other tests set numbers of
// their own.
TEST(Defaults, AreThoseOfThePages) {
  const LeaseOptions leases;
  EXPECT_EQ(leases.ttl_ms, 8'000);
  EXPECT_EQ(leases.restart_grace_ms, 15'000);
  EXPECT_EQ(leases.max_faults, 5);
  EXPECT_EQ(leases.max_failed_workers, 3);
  const CoordinatorOptions options;
  EXPECT_EQ(options.max_wait_ms, 20'000);
  EXPECT_EQ(options.take_over_ms, 5'000);
  EXPECT_EQ(options.no_worker_hint_ms, 5'000);
  EXPECT_EQ(options.rerun_limit_ms, 300'000);
  EXPECT_EQ(options.race_wait_ms, 30'000);
  EXPECT_FALSE(options.resume_jobs);
  EXPECT_EQ(options.blobs, nullptr);
  const HealthOptions health;
  EXPECT_EQ(health.turn_limit_ms, 5'000);
  EXPECT_EQ(health.probe_every_ms, 3'000);
  EXPECT_EQ(health.probe_limit_ms, 3'000);
  EXPECT_EQ(health.probed_limit_ms, 15'000);
  const IntegrityCheck::Pace check;
  EXPECT_EQ(check.first, 30s);
  EXPECT_EQ(check.every, 24h);
  EXPECT_EQ(check.share, 0.1);
  const DaemonHostOptions host;
  EXPECT_EQ(host.artifact_bytes, 4'294'967'296);
  EXPECT_FALSE(host.own_worker);
  EXPECT_FALSE(host.resume_jobs);
  const CallThreads::Limits calls;
  EXPECT_EQ(calls.short_threads, 4);
  EXPECT_EQ(calls.heavy_at_once, 2);
  EXPECT_EQ(calls.most_short, 256u);
  EXPECT_EQ(calls.most_heavy, 64u);
  EXPECT_EQ(calls.heavy_bytes, 16'777'216u);
  EXPECT_EQ(calls.most_long, 160);
}

// More jobs than fit one message: the client asks until it has all of them.
TEST(Client, ListsAllJobsHoweverManyThereAre) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  constexpr int kJobs = 11;
  for (int i = 1; i <= kJobs; ++i) {
    JobRow job{.id = str("j", i),
               .tasks = {{kAnalyticKey, testing::kAnalyticTarget}},
               .trials = i,
               .search = "random"};
    job.request_id = job.id;
    job.tasks[0].algorithms = std::string(60'000, 'x');
    job.tasks.resize(8, job.tasks[0]);  // half a MiB of the list
    ASSERT_TRUE(daemon.store->add_job(job).is_ok());
  }
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = daemon.server->addresses()[0]});
  ASSERT_TRUE(client.is_ok()) << client.message();
  const Result<std::vector<ListedJob>> jobs = listed_jobs(*client, /*counted=*/false);
  ASSERT_TRUE(jobs.is_ok()) << jobs.message();
  ASSERT_EQ(jobs->size(), static_cast<size_t>(kJobs));
  for (int i = 0; i < kJobs; ++i) EXPECT_EQ((*jobs)[static_cast<size_t>(i)].job.trials, i + 1);
}

TEST(Client, TellsWhatIsWrongByItsKind) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  const Result<DaemonClient> client = DaemonClient::connect({.daemon = daemon.server->addresses()[0]});
  ASSERT_TRUE(client.is_ok()) << client.message();
  EXPECT_EQ(client->cancel("j99").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(client->rerun("t99").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(client->drain("nobody").message(),
            "worker nobody is not here; `tuner workers` lists those that are");
  JobRow job{.tasks = {{kAnalyticKey, testing::kAnalyticTarget}}, .trials = 8, .search = "luck"};
  EXPECT_EQ(client->submit(job, false).status().code(), StatusCode::kInvalidArgument);
  job.search = "random";
  const Result<v1::SubmitReply> first = client->submit(job, /*fresh=*/true),
                                second = client->submit(job, /*fresh=*/true);
  EXPECT_NE(first.value().job_id(), second.value().job_id()) << "each has a request id of its own";
}

// The pairs that clients of other releases know, in both directions.
TEST(GrpcStatus, HasTheCodesOfTheWire) {
  using grpc::StatusCode;
  constexpr auto kText = "why";
  for (const auto& [ours, wire] :
       {std::pair(tuner::StatusCode::kInvalidArgument, StatusCode::INVALID_ARGUMENT),
        std::pair(tuner::StatusCode::kNotFound, StatusCode::NOT_FOUND),
        std::pair(tuner::StatusCode::kUnavailable, StatusCode::UNAVAILABLE),
        std::pair(tuner::StatusCode::kDeadlineExceeded, StatusCode::DEADLINE_EXCEEDED),
        std::pair(tuner::StatusCode::kAborted, StatusCode::FAILED_PRECONDITION),
        std::pair(tuner::StatusCode::kFailed, StatusCode::RESOURCE_EXHAUSTED)}) {
    EXPECT_EQ(to_grpc(Status(ours, kText)).error_code(), wire);
    EXPECT_EQ(to_grpc(Status(ours, kText)).error_message(), kText);
    EXPECT_EQ(from_grpc(grpc::Status(wire, kText), "farm").code(), ours);
  }
  EXPECT_EQ(from_grpc(grpc::Status(StatusCode::UNAVAILABLE, kText), "farm").message(), "farm: why");
  EXPECT_EQ(from_grpc(grpc::Status(StatusCode::PERMISSION_DENIED, kText), "farm").message(), "farm: why");
  EXPECT_TRUE(from_grpc(to_grpc(Status::ok()), "farm").is_ok());
}

// As the server announces it: 100 streams of a connection, and headers of 16 KiB.
TEST(Service, AnnouncesHowMuchOneConnectionMayHave) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  testing::http2::Http2Attack client(daemon.server->addresses()[0]);
  client.send(testing::http2::preface() + testing::http2::settings());
  ASSERT_TRUE(wait_until(30s, [&] { return client.received().size() >= 9 || client.is_closed(); }));
  ASSERT_FALSE(client.is_closed());
  const auto byte = [&](size_t at) {
    return static_cast<uint32_t>(static_cast<uint8_t>(client.received().at(at)));
  };
  const auto number = [&](size_t at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | byte(at + i);
    return value;
  };
  ASSERT_EQ(byte(3), 4u) << "SETTINGS comes first";
  std::map<uint32_t, uint32_t> settings;
  for (size_t at = 9; at < 9 + number(0, 3); at += 6) settings[number(at, 2)] = number(at + 2, 4);
  EXPECT_EQ(settings[3], 100u) << "SETTINGS_MAX_CONCURRENT_STREAMS";
  EXPECT_EQ(settings[6], 16'384u) << "SETTINGS_MAX_HEADER_LIST_SIZE";
}

TEST(Service, AMessageOfMoreThanFourMebibytesIsRefusedInWords) {
  TemporaryFolder folder;
  Daemon daemon(folder.file("db"));
  v1::QueryRequest request;
  for (const auto& [bytes, code] : {std::pair(4'000'000, grpc::StatusCode::INVALID_ARGUMENT),
                                    std::pair(4'300'000, grpc::StatusCode::RESOURCE_EXHAUSTED)}) {
    request.mutable_task()->set_workload_key(std::string(static_cast<size_t>(bytes), 'x'));
    v1::QueryReply reply;
    grpc::ClientContext context;
    limit(context);
    EXPECT_EQ(daemon.jobs->Query(&context, request, &reply).error_code(), code) << bytes;
  }
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
}

TEST(PagesAddress, PlainTextStaysOnLoopback) {
  for (const char* good : {"127.0.0.1:0", "[::1]:9470", "localhost:9470", "tls:0.0.0.0:9470", "tls:[::]:0"})
    EXPECT_TRUE(check_pages_address(good).is_ok()) << good;
  EXPECT_THAT(check_pages_address("0.0.0.0:9470").message(),
              AllOf(HasSubstr("ssh -L 9470:127.0.0.1:9470"), HasSubstr("then tls:0.0.0.0:9470")));
  for (const char* bad : {"", "9470", "unix:/x", "tls:9470", "tls:", "0.0.0.0", "127.0.0.1:70000"})
    EXPECT_FALSE(check_pages_address(bad).is_ok()) << bad;
}

}  // namespace
}  // namespace tuner
