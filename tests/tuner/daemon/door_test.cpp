// The daemon's door over the wire: what each caller who may not is told, word for word, and that no secret is
// logged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <sstream>
#include <thread>

#include "build.pb.h"
#include "measure.pb.h"
#include "proto/convert.h"
#include "proto/health_check.h"
#include "tests/support/tls_client.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/guarded_daemon.h"
#include "tuner/daemon/identity_watch.h"
#include "tuner/identity/certificates.h"
#include "tuner/identity/gatekeeper.h"
#include "tuning.pb.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using identity::Role;
using identity::Roles;
using testing::GuardedDaemon;
using ::testing::HasSubstr;
using ::testing::Not;
constexpr auto kUnauthenticated = grpc::StatusCode::UNAUTHENTICATED;
constexpr auto kDenied = grpc::StatusCode::PERMISSION_DENIED;
constexpr char kAsk[] =
    ": ask the farm's administrator for credentials (tuner admin token), and give them as --daemon FILE";
constexpr char kNew[] = ": `tuner admin worker` on the daemon's host makes a new one";

class DoorTest : public ::testing::Test {
 protected:
  // A caller with a connection of his own.
  struct Caller {
    DaemonAccess access;
    std::shared_ptr<grpc::Channel> channel;

    explicit Caller(DaemonAccess a) : access(std::move(a)), channel(testing::dial(access)) {}
    grpc::Status list() const { return testing::call(access, channel, "/tuner.v1.Jobs/List"); }
    grpc::Status register_as(const std::string& id, std::string* session = nullptr) const {
      v1::RegisterRequest request;
      request.set_worker_id(id);
      request.set_incarnation("1");
      request.set_protocol(1);
      request.add_targets(testing::kAnalyticTarget);
      request.set_max_threads(4);
      v1::RegisterReply reply;
      const grpc::Status status =
          testing::call(access, channel, "/tuner.v1.Workers/Register", &request, &reply);
      if (session != nullptr) *session = reply.session();
      return status;
    }
    grpc::Status sync(const std::string& session) const {
      v1::SyncRequest request;
      request.set_session(session);
      return testing::call(access, channel, "/tuner.v1.Workers/Sync", &request);
    }
  };

  // The daemon looks at its folder once a second.
  static grpc::Status until_changed(grpc::StatusCode from, const std::function<grpc::Status()>& call) {
    grpc::Status status;
    wait_until(
        20s, [&] { return (status = call()).error_code() != from; }, 50ms);
    return status;
  }
  static void expect(const grpc::Status& status, grpc::StatusCode code, const std::string& text) {
    EXPECT_EQ(status.error_code(), code);
    EXPECT_EQ(status.error_message(), text);
  }
  // Somebody of a tenant, whom the daemon knows.
  Caller known_person(const std::string& name, const std::string& tenant) {
    Caller person(GuardedDaemon::access_of(daemon_.folder.let_in_person(
        name, Roles(Role::kQuery) | Role::kSubmit, tenant, daemon_.address(), 1)));
    EXPECT_TRUE(until_changed(kUnauthenticated, [&] { return person.list(); }).ok());
    return person;
  }
  template <class Request, class Reply>
  static grpc::Status call(const Caller& caller, const std::string& method, const Request& request,
                           Reply* reply) {
    return testing::call(caller.access, caller.channel, method, &request, reply);
  }
  static std::string submit(const Caller& caller) {
    v1::SubmitRequest request;
    request.set_request_id("of " + caller.access.token.substr(0, 12));
    v1::TaskSpec* const task = request.add_tasks();
    task->set_workload_key(testing::kAnalyticKey);
    task->set_target(testing::kAnalyticTarget);
    request.set_trials(20);
    request.set_search("random");
    v1::SubmitReply reply;
    const grpc::Status status = call(caller, "/tuner.v1.Jobs/Submit", request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.job_id();
  }
  static v1::ListReply known_to(const Caller& caller) {
    v1::ListRequest request;
    request.set_known(true);
    v1::ListReply reply;
    EXPECT_TRUE(call(caller, "/tuner.v1.Jobs/List", request, &reply).ok());
    return reply;
  }
  // The worker measures one trial; its id.
  static std::string measure_one(const Caller& worker, const std::string& session) {
    v1::SyncRequest request;
    request.set_session(session);
    request.set_free_slots(1);
    request.set_wait_ms(10'000);
    v1::SyncReply reply, told;
    EXPECT_TRUE(call(worker, "/tuner.v1.Workers/Sync", request, &reply).ok());
    EXPECT_EQ(reply.leases_size(), 1);
    if (reply.leases_size() == 0) return "";
    const v1::Lease& lease = reply.leases(0);
    to_proto(testing::analytic_record(lease.trial_id(), lease.attempt(), lease.config()),
             request.add_results());
    request.set_free_slots(0);
    request.set_wait_ms(0);
    EXPECT_TRUE(call(worker, "/tuner.v1.Workers/Sync", request, &told).ok());
    EXPECT_EQ(told.acks_size(), 1);
    return lease.trial_id();
  }
  // A worker that the daemon knows.
  Caller known_worker(const std::string& name) {
    Caller worker(daemon_.worker(name));
    const grpc::Status status = until_changed(kUnauthenticated, [&] { return worker.sync("none"); });
    expect(status, grpc::StatusCode::FAILED_PRECONDITION, "this session is unknown; register again");
    return worker;
  }

  GuardedDaemon daemon_;
};

TEST_F(DoorTest, TheDaemonsUserNeedsNothingOnTheUnixSocket) {
  EXPECT_TRUE(Caller({.address = daemon_.address(GuardedDaemon::kUnix)}).list().ok());
}

TEST_F(DoorTest, ACertificateOfAnotherFarm) {
  const identity::KeyAndCertificate authority = identity::make_authority(1).value();
  const identity::Issued theirs = identity::issue_worker(authority, "gpu1", 1).value();
  DaemonAccess access = daemon_.nobody();
  access.certificate = theirs.pem.certificate;
  access.key = theirs.pem.key;
  expect(Caller(access).register_as("gpu1"), kUnauthenticated,
         std::string(
             "the certificate is not one of this farm's, or not good any more (unable to get local issuer "
             "certificate)") +
             kNew);
}

TEST_F(DoorTest, ACertificateThatHasEnded) {
  expect(Caller(daemon_.worker("gpu1", /*days=*/-1)).register_as("gpu1"), kUnauthenticated,
         std::string(
             "the certificate is not one of this farm's, or not good any more (certificate has expired)") +
             kNew);
}

TEST_F(DoorTest, TheDaemonsOwnCertificateIsNoWorkers) {
  const identity::KeyAndCertificate daemon = daemon_.folder.daemon().value();
  DaemonAccess access = daemon_.nobody();
  access.certificate = daemon.certificate;
  access.key = daemon.key;
  expect(
      Caller(access).register_as("gpu1"), kUnauthenticated,
      std::string("the certificate is not one of this farm's, or not good any more (unsuitable certificate "
                  "purpose)") +
          kNew);
}

TEST_F(DoorTest, ARevokedCertificateEndsAlsoAnOpenSession) {
  const Caller worker = known_worker("gpu1");
  std::string session;
  ASSERT_TRUE(worker.register_as("gpu1", &session).ok());
  ASSERT_TRUE(worker.sync(session).ok());
  EXPECT_EQ(daemon_.folder.revoke("gpu1").value(), 1);
  const std::string revoked = std::string("the certificate of worker gpu1 was revoked") + kNew;
  expect(until_changed(grpc::StatusCode::OK, [&] { return worker.sync(session); }), kUnauthenticated,
         revoked);
  expect(worker.register_as("gpu1"), kUnauthenticated, revoked);
  // One that is made anew is good.
  known_worker("gpu1");
}

TEST_F(DoorTest, ATokenThatHasEnded) {
  const DaemonAccess access = daemon_.person("alice", Role::kQuery, /*days=*/0);
  const int64_t until_s = daemon_.folder.entries().value().entries.back().until_s;
  const Caller alice(access);
  grpc::Status status;
  const auto is_known = [&] {
    status = alice.list();
    return !status.error_message().starts_with("the token is not known");
  };
  EXPECT_TRUE(wait_until(20s, is_known, 50ms)) << "the daemon looks at its folder once a second";
  expect(status, kUnauthenticated, "the token of alice ended " + identity::date_text(until_s) + kAsk);
}

TEST_F(DoorTest, ARevokedToken) {
  const Caller alice(daemon_.person("alice", Role::kQuery));
  ASSERT_TRUE(until_changed(kUnauthenticated, [&] { return alice.list(); }).ok());
  (void)daemon_.folder.revoke("alice");
  expect(until_changed(grpc::StatusCode::OK, [&] { return alice.list(); }), kUnauthenticated,
         std::string("the token of alice was revoked") + kAsk);
}

TEST_F(DoorTest, ATokenOfAnotherRole) {
  const Caller alice(daemon_.person("alice", Roles(Role::kQuery) | Role::kSubmit));
  ASSERT_TRUE(until_changed(kUnauthenticated, [&] { return alice.list(); }).ok());
  expect(alice.register_as("alice"), kDenied, "alice may query,submit; Register needs the role work");
  const Caller worker = known_worker("gpu1");
  expect(worker.list(), kDenied, "worker gpu1 may work; List needs the role query");
}

TEST_F(DoorTest, AWorkerUnderAnothersName) {
  const Caller worker = known_worker("gpu1");
  const std::string denied =
      "worker gpu1 may register as gpu1 or gpu1.NAME, found another name: leave --worker-id out, or begin it "
      "so";
  for (const char* other : {"gpu2", "gpu10", "gpu1-2", ""})
    expect(worker.register_as(other), kDenied, denied);
  EXPECT_TRUE(worker.register_as("gpu1").ok());
  EXPECT_TRUE(worker.register_as("gpu1.second").ok());
}

TEST_F(DoorTest, ASessionThatAnotherWorkerReplays) {
  const Caller owner = known_worker("gpu1"), thief = known_worker("gpu2");
  std::string session;
  ASSERT_TRUE(owner.register_as("gpu1", &session).ok());
  expect(thief.sync(session), kDenied, "this session is not one of worker gpu2");
  v1::ReadBlobRequest read;
  read.set_session(session);
  v1::ReadBlobReply bytes;
  expect(call(thief, "/tuner.v1.Blobs/Read", read, &bytes), kDenied,
         "this session is not one of worker gpu2");
  v1::WriteBlobRequest write;
  write.set_session(session);
  v1::WriteBlobReply written;
  expect(call(thief, "/tuner.v1.Blobs/Write", write, &written), kDenied,
         "this session is not one of worker gpu2");
  EXPECT_TRUE(owner.sync(session).ok()) << "its owner goes on";
  const Caller clerk(daemon_.person("clerk", Role::kWork));
  expect(until_changed(kUnauthenticated, [&] { return clerk.sync(session); }), kDenied,
         "this session is not one of clerk");
}

// Each call by itself: the caller's tenant goes with all of them.
TEST_F(DoorTest, ATenantReachesItsOwnJobsOnly) {
  const Caller alice = known_person("alice", "a"), bob = known_person("bob", "b"),
               worker = known_worker("gpu1");
  const std::string job = submit(alice);
  std::string session;
  ASSERT_TRUE(worker.register_as("gpu1", &session).ok());
  const std::string trial = measure_one(worker, session);
  const std::string refusal = "job " + job + " is not one of tenant b; `tuner jobs` lists those that are";
  v1::CancelRequest cancel;
  cancel.set_job_id(job);
  v1::CancelReply cancelled;
  v1::WatchRequest watch;
  watch.set_job_id(job);
  v1::JobEvent event;
  v1::RerunRequest rerun;
  rerun.set_trial_id(trial);
  v1::MeasureRecord record;
  v1::RemeasureRequest remeasure;
  remeasure.set_trial_id(trial);
  v1::RaceResult race;
  constexpr auto kNotThere = grpc::StatusCode::NOT_FOUND;
  expect(call(bob, "/tuner.v1.Jobs/Cancel", cancel, &cancelled), kNotThere, refusal);
  expect(call(bob, "/tuner.v1.Jobs/Watch", watch, &event), kNotThere, refusal);
  expect(call(bob, "/tuner.v1.Jobs/Rerun", rerun, &record), kNotThere, refusal);
  expect(call(bob, "/tuner.v1.Jobs/Remeasure", remeasure, &race), kNotThere, refusal);
  EXPECT_EQ(known_to(alice).jobs_size(), 1);
  EXPECT_EQ(known_to(bob).jobs_size(), 0);
  EXPECT_NE(submit(bob), job) << "the same search of another tenant is a job of its own";
  EXPECT_TRUE(call(alice, "/tuner.v1.Jobs/Cancel", cancel, &cancelled).ok());
  EXPECT_EQ(cancelled.state(), v1::CANCELLED);
}

TEST_F(DoorTest, WhatATenantMayHaveFollowsTheFolderWhileTheDaemonRuns) {
  const Caller alice = known_person("alice", "a");
  submit(alice);
  const auto weight = [&] {
    const v1::ListReply known = known_to(alice);
    return known.daemon().tenants_size() == 1 ? known.daemon().tenants(0).weight() : 0;
  };
  const auto becomes = [&](double expected) {
    return wait_until(
        20s, [&] { return weight() == expected; }, 20ms);
  };
  EXPECT_TRUE(becomes(1));
  ASSERT_TRUE(daemon_.folder.change_share("a", {.weight = 3}).is_ok());
  EXPECT_TRUE(becomes(3));
}

TEST_F(DoorTest, ANewCertificateOfTheDaemonIsShownWithoutARestart) {
  const std::string address = daemon_.address();
  const auto serial = [&] {
    testing::TlsClient client(address, {});
    EXPECT_TRUE(client.shake_hands()) << client.fault();
    return client.server_serial();
  };
  const Caller alice(daemon_.person("alice", Role::kQuery));
  ASSERT_TRUE(until_changed(kUnauthenticated, [&] { return alice.list(); }).ok());
  const std::string before = serial();
  ASSERT_TRUE(daemon_.folder.renew_daemon(5).is_ok());
  EXPECT_TRUE(wait_until(
      20s,
      [&] {
        EXPECT_TRUE(alice.list().ok()) << "an open connection goes on";
        return serial() != before;
      },
      50ms));
  EXPECT_TRUE(Caller(alice.access).list().ok()) << "nobody needs new credentials";
}

// After a certificate has ended nobody gets in, so no call comes that would have the folder looked at.
TEST_F(DoorTest, ANewCertificateOfTheDaemonIsShownThoughNobodyCalls) {
  const auto serial = [&] {
    testing::TlsClient client(daemon_.address(), {});
    EXPECT_TRUE(client.shake_hands()) << client.fault();
    return client.server_serial();
  };
  const std::string before = serial();
  ASSERT_TRUE(daemon_.folder.renew_daemon(5).is_ok());
  EXPECT_TRUE(wait_until(
      20s, [&] { return serial() != before; }, 50ms));
}

// What the daemon's own probe is told: the kind of the error says whether somebody answers.
TEST_F(DoorTest, AProbeTellsACertificateThatItDoesNotTrustFromSilence) {
  const auto probed = [&](const DaemonAccess& access) { return check_health(access, 5'000).status().code(); };
  EXPECT_EQ(probed(daemon_.nobody()), StatusCode::kOk);
  DaemonAccess stranger = daemon_.nobody();
  stranger.authority = identity::make_authority(/*days=*/2)->certificate;
  EXPECT_EQ(probed(stranger), StatusCode::kInvalidArgument);
  DaemonAccess closed = daemon_.nobody();
  closed.address = "127.0.0.1:1";
  EXPECT_EQ(probed(closed), StatusCode::kUnavailable);
  ASSERT_TRUE(daemon_.folder.renew_daemon(/*days=*/-1).is_ok());
  EXPECT_TRUE(wait_until(
      20s, [&] { return probed(daemon_.nobody()) == StatusCode::kInvalidArgument; }, 100ms));
}

TEST(CertificateNote, IsGivenAMonthAhead) {
  constexpr int64_t kDayS = 24 * 3600, kEndS = 1'767'225'600;  // 2026-01-01
  EXPECT_EQ(note_of_certificate(kEndS, kEndS - 31 * kDayS).text, "");
  const CertificateNote soon = note_of_certificate(kEndS, kEndS - 29 * kDayS),
                        late = note_of_certificate(kEndS, kEndS);
  EXPECT_FALSE(soon.ended);
  EXPECT_THAT(soon.text, HasSubstr("the daemon's certificate ends 2026-01-01 00:00 UTC"));
  EXPECT_TRUE(late.ended);
  EXPECT_THAT(late.text,
              HasSubstr("ended 2026-01-01 00:00 UTC: nobody gets in by TLS. `tuner admin ca --renew`"));
}

TEST_F(DoorTest, NoSecretIsLogged) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  const auto logger =
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  logger->set_level(spdlog::level::trace);
  spdlog::set_default_logger(logger);
  const Caller alice(daemon_.person("alice", Role::kQuery));
  ASSERT_TRUE(until_changed(kUnauthenticated, [&] { return alice.list(); }).ok());
  std::string session;
  {
    const Caller owner = known_worker("gpu1"), thief = known_worker("gpu2");
    ASSERT_TRUE(owner.register_as("gpu1", &session).ok());
    expect(alice.register_as("gpu1"), kDenied, "alice may query; Register needs the role work");
    expect(thief.sync(session), kDenied, "this session is not one of worker gpu2");
  }
  spdlog::set_default_logger(before);
  EXPECT_THAT(text.str(), HasSubstr("worker gpu2 used a session of another worker; it is not answered"));
  EXPECT_THAT(text.str(), Not(HasSubstr("tuner_")));
  EXPECT_THAT(text.str(), Not(HasSubstr(alice.access.token)));
  EXPECT_THAT(text.str(), Not(HasSubstr(session)));
  EXPECT_THAT(text.str(), Not(HasSubstr("PRIVATE KEY")));
}

}  // namespace
}  // namespace tuner
