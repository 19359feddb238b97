// Whether a daemon is ready: what is judged, and what the health service and the probe say of a real one.
#include "tuner/daemon/health.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "proto/health_check.h"
#include "tests/tuner/analytic_task.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/server.h"

#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(JudgeHealth, NamesWhatIsWrong) {
  const HealthFacts well{.now_ms = 100'000,
                         .desk_turned_ms = 99'900,
                         .search_turned_ms = 99'800,
                         .probed_ms = 97'000,
                         .probed_once = true};
  EXPECT_TRUE(judge_health(well, {}).ready);
  HealthFacts f = well;
  f.desk_turned_ms = 94'000;
  EXPECT_EQ(judge_health(f, {}).reason, "the desk has not turned for 6 s: no worker is answered");
  f = well;
  f.search_turned_ms = 90'000;
  EXPECT_EQ(judge_health(f, {}).reason, "no search has turned for 10 s: nothing is proposed");
  f = well;
  f.commit_failed = true;
  EXPECT_THAT(judge_health(f, {}).reason, HasSubstr("the last commit failed"));
  f = well;
  f.probed_ms = 84'000;
  f.probe = unavailable("connection refused");
  EXPECT_EQ(judge_health(f, {}).reason, "its own socket has not answered for 16 s: connection refused");
  f = well;
  f.probed_once = false;
  EXPECT_THAT(judge_health(f, {}).reason, HasSubstr("has just begun"));
  f.probe = invalid_argument("the certificate has ended");
  EXPECT_EQ(judge_health(f, {}).reason, "its own socket does not answer: the certificate has ended");
}

// A service manager restarts what is not alive: where that helps.
TEST(JudgeHealth, ADaemonIsNotAliveOnlyWhereARestartHelps) {
  const HealthFacts well{.now_ms = 100'000,
                         .desk_turned_ms = 99'900,
                         .search_turned_ms = 99'800,
                         .probed_ms = 97'000,
                         .probed_once = true};
  const auto alive = [&](auto change) {
    HealthFacts f = well;
    change(f);
    return judge_health(f, {}).alive;
  };
  EXPECT_TRUE(alive([](HealthFacts&) {}));
  EXPECT_FALSE(alive([](HealthFacts& f) { f.desk_turned_ms = 1; }));
  EXPECT_FALSE(alive([](HealthFacts& f) { f.search_turned_ms = 1; }));
  const auto after_silence = [&](const Status& probe) {
    return alive([&](HealthFacts& f) { f.probed_ms = 1, f.probe = probe; });
  };
  EXPECT_FALSE(after_silence(unavailable("connection refused")));
  EXPECT_FALSE(after_silence(unavailable("no certificate was asked for"))) << "words decide nothing";
  EXPECT_FALSE(after_silence({StatusCode::kDeadlineExceeded, "no answer"}));
  EXPECT_TRUE(after_silence(invalid_argument("verification failed"))) << "a certificate that has ended";
  EXPECT_TRUE(after_silence(failed("authority.pem: permission denied")));
  EXPECT_TRUE(alive([](HealthFacts& f) { f.commit_failed = true; })) << "a full disk";
  EXPECT_TRUE(alive([](HealthFacts& f) { f.probed_once = false; })) << "a young daemon";
}

TEST(JudgeHealth, TheLimitsAreInclusive) {
  const HealthFacts edge{.now_ms = 20'000,
                         .desk_turned_ms = 15'000,
                         .search_turned_ms = 15'000,
                         .probed_ms = 5'000,
                         .probed_once = true};
  EXPECT_TRUE(judge_health(edge, {}).ready) << judge_health(edge, {}).reason;
}

// What the health service says of a service: 1 SERVING, 2 NOT_SERVING; 0: no answer.
int asked(const std::string& address, const std::string& service) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 20s);
  std::string request;
  if (!service.empty()) request = std::string("\x0a") + static_cast<char>(service.size()) + service;
  const grpc::Slice slice(request);
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return 0;
  grpc::Slice bytes;
  if (!reply.TrySingleSlice(&bytes).ok() || bytes.size() != 2 || bytes.begin()[0] != 0x08) return 0;
  return bytes.begin()[1];
}

class HealthOfADaemon : public ::testing::Test {
 protected:
  HealthOfADaemon() {
    store_ = Store::open(folder_.file("t.db"), Store::Mode::kWrite).value();
    CoordinatorOptions options;
    options.make_space = [](const JobRow::Task&) { return testing::analytic_space(6); };
    coordinator_ = std::make_unique<Coordinator>(*store_, clock_, options);
    EXPECT_TRUE(coordinator_->start().is_ok());
    server_ = Server::start(*coordinator_, {"127.0.0.1:0"}).value();
    channel_ = grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  }
  ~HealthOfADaemon() override {
    health_.reset();
    coordinator_->stop("test is over");
    server_->stop();
  }
  void watch() {
    HealthOptions options;
    options.probe_every_ms = 100;
    options.probed_limit_ms = 1'000;
    options.turn_limit_ms = 60'000;  // a busy machine is not what is tested here
    health_ = std::make_unique<Health>(*coordinator_, clock_, *server_, options);
  }
  const std::string& address() const { return server_->addresses()[0]; }

  TemporaryFolder folder_;
  SteadyClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Health> health_;
};

TEST_F(HealthOfADaemon, ServesThroughItsOwnSocket) {
  watch();
  EXPECT_TRUE(wait_until(20s, [&] { return health_->ready().ready; })) << health_->ready().reason;
  for (const char* service : {"", "tuner.v1.Workers", "tuner.v1.Jobs"})
    EXPECT_TRUE(wait_until(20s, [&] { return asked(address(), service) == 1; })) << service;
  EXPECT_EQ(asked(address(), "tuner.v1.Nothing"), 0) << "unknown services are NOT_FOUND";
}

// The process lives, its threads turn, its open connections work; only nobody new gets in.
TEST_F(HealthOfADaemon, IsNotReadyWhenNobodyGetsIn) {
  watch();
  ASSERT_TRUE(wait_until(20s, [&] { return health_->ready().ready; })) << health_->ready().reason;
  ASSERT_TRUE(channel_->WaitForConnected(std::chrono::system_clock::now() + 20s));
  server_->stop_listening();
  ASSERT_TRUE(wait_until(30s, [&] { return !health_->ready().ready; }));
  EXPECT_THAT(health_->ready().reason, HasSubstr("its own socket has not answered for"));
}

TEST_F(HealthOfADaemon, TheProbeTellsReadyNotReadyAndSilence) {
  const auto asked = [&](int64_t limit_ms) { return check_health({.address = address()}, limit_ms); };
  EXPECT_TRUE(asked(20'000).value());
  server_->set_serving(false);
  EXPECT_FALSE(asked(20'000).value());
  server_->set_serving(true);
  EXPECT_TRUE(asked(20'000).value());
  server_->stop_listening();
  EXPECT_TRUE(wait_until(20s, [&] { return !asked(1'000).is_ok(); }));
}

}  // namespace
}  // namespace tuner
