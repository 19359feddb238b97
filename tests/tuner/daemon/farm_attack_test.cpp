// A daemon under attack: its memory stays bounded, other callers are served, workers stay. Issue 18, "What
// was seen", 1 to 4 and 10. How fast others are served is printed; a longer attack: TUNER_ATTACK_SECONDS=6.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sstream>

#include "measure.grpc.pb.h"
#include "tests/support/http2_attack.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tests/tuner/daemon/attacked_daemon.h"
#include "tests/tuner/processes.h"
#include "tuning.grpc.pb.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::attack_time;
using testing::eventually;
using testing::expect_in_peace;
using testing::expect_little_memory;
using testing::Honest;
using Daemon = testing::AttackedDaemon;
using testing::Process;
namespace http2 = testing::http2;

// Attacks with `connections` at a time, a new one for each that is closed.
void attack(const std::string& address, int connections,
            const std::function<bool(http2::Http2Attack&, uint32_t& stream)>& once) {
  const auto end = Clock::now() + attack_time();
  std::vector<std::pair<std::unique_ptr<http2::Http2Attack>, uint32_t>> attackers(connections);
  while (Clock::now() < end)
    for (auto& [attacker, stream] : attackers) {
      if (attacker == nullptr || attacker->is_closed()) {
        attacker = std::make_unique<http2::Http2Attack>(address);
        attacker->send(http2::preface() + http2::settings());
        stream = 1;
      }
      if (!once(*attacker, stream)) attacker.reset();
    }
}

std::string text(int fields, const std::string& word) {
  std::string all;
  for (int i = 0; i < fields; ++i) all += word;
  return all;
}

TEST(FarmAttack, Seen1RapidResetCostsLittleMemoryAndNobodyElseTheirCalls) {
  Daemon daemon;
  Honest honest(daemon.address());
  attack(daemon.address(), 1, [](http2::Http2Attack& attacker, uint32_t& stream) {
    std::string frames;
    for (int i = 0; i < 50; ++i, stream += 2)
      frames += http2::headers(stream, "/tuner.v1.Workers/Sync", /*end_stream=*/false) + http2::reset(stream);
    return attacker.send(frames);
  });
  expect_in_peace(daemon, honest);
}

TEST(FarmAttack, Seen1OpenStreamsCostLittleMemoryAndNobodyElseTheirCalls) {
  Daemon daemon;
  Honest honest(daemon.address());
  attack(daemon.address(), 40, [](http2::Http2Attack& attacker, uint32_t& stream) {
    std::string frames;
    for (int i = 0; i < 20; ++i, stream += 2)
      frames += http2::headers(stream, "/tuner.v1.Jobs/Watch", /*end_stream=*/false);
    return attacker.send(frames);
  });
  expect_in_peace(daemon, honest);
}

// Whole calls that wait: Syncs of one session after the other, and watchers of nothing.
TEST(FarmAttack, Seen2ThousandsOfWaitingCallsRefuseNobodyElseAndNoWorkerLeaves) {
  Daemon daemon;
  Process worker({std::string(TUNER_BIN_DIR) + "/measure_server", "--daemon", daemon.address(), "--work-dir",
                  daemon.file("worker")},
                 daemon.file("worker_log"));
  ASSERT_TRUE(eventually(60s, [&] { return daemon.log().find("is here") != std::string::npos; }))
      << worker.err();
  Honest honest(daemon.address());
  // 2,300 registered workers that wait, over 23 connections.
  constexpr int kConnections = 23, kCalls = 100;
  std::vector<std::unique_ptr<v1::Workers::Stub>> stubs;
  for (int i = 0; i < kConnections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs.push_back(v1::Workers::NewStub(
        grpc::CreateCustomChannel(daemon.address(), grpc::InsecureChannelCredentials(), arguments)));
  }
  struct Waiting {
    grpc::ClientContext context;
    v1::SyncRequest request;
    v1::SyncReply reply;
  };
  // All of them first, which takes 20 seconds on a slow machine: as long as a call waits.
  std::vector<std::unique_ptr<Waiting>> calls;
  for (int i = 0; i < kConnections * kCalls; ++i) {
    auto call = std::make_unique<Waiting>();
    v1::RegisterRequest hello;
    hello.set_worker_id("w" + std::to_string(i));
    hello.set_incarnation("1");
    hello.set_protocol(1);
    hello.add_targets("llvm -mcpu=haswell -threads=1");
    v1::RegisterReply welcome;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 20s);
    const grpc::Status status = stubs[i % kConnections]->Register(&context, hello, &welcome);
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
    call->request.set_session(welcome.session());
    call->request.set_free_slots(1);
    call->request.set_wait_ms(20'000);
    calls.push_back(std::move(call));
  }
  std::atomic<int> under_way{0};
  for (size_t i = 0; i < calls.size(); ++i) {
    Waiting& call = *calls[i];
    call.context.set_deadline(std::chrono::system_clock::now() + 60s);
    ++under_way;
    stubs[i % kConnections]->async()->Sync(&call.context, &call.request, &call.reply,
                                           [&under_way](const grpc::Status&) { --under_way; });
  }
  let_pass(1s);
  EXPECT_GT(under_way, kConnections * kCalls * 9 / 10) << "they wait, without a thread each";
  EXPECT_LT(daemon.threads(), 100);
  for (const auto& call : calls) call->context.TryCancel();
  EXPECT_TRUE(eventually(30s, [&] { return under_way == 0; }));
  expect_in_peace(daemon, honest);
  EXPECT_FALSE(worker.tree().empty()) << "the real worker has left: " << worker.err();
  EXPECT_EQ(worker.wait(0s), std::nullopt);
}

TEST(FarmAttack, Seen3MoreConnectionsThanDescriptorsAndThePortIsServedAgain) {
  Daemon daemon("ulimit -n 64; ");
  {
    std::vector<std::unique_ptr<http2::Http2Attack>> all;
    for (int i = 0; i < 200; ++i) all.push_back(std::make_unique<http2::Http2Attack>(daemon.address()));
    let_pass(500ms);
  }
  Honest honest(daemon.address());
  let_pass(500ms);
  expect_in_peace(daemon, honest);
}

TEST(FarmAttack, Seen10IdsAndNamesOfStrangersAreBoundedAndHarmless) {
  Daemon daemon;
  const auto stub =
      v1::Workers::NewStub(grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials()));
  const auto enter = [&](const std::string& id, const std::string& host) {
    v1::RegisterRequest hello;
    hello.set_worker_id(id);
    hello.set_incarnation("1");
    hello.set_protocol(1);
    hello.add_targets("llvm -mcpu=haswell -threads=1");
    hello.mutable_environment()->set_host(host);
    v1::RegisterReply welcome;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 20s);
    return stub->Register(&context, hello, &welcome);
  };
  const grpc::Status long_id = enter(text(1 << 19, "five!"), "h");
  EXPECT_EQ(long_id.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_LT(long_id.error_message().size(), 1'000u) << "the refusal does not repeat it";
  EXPECT_EQ(enter("w\x1b[2J", "h").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(enter("w1", "h\x1b]0;owned\x07\nnext line").ok());
  ASSERT_TRUE(eventually(20s, [&] { return daemon.log().find("worker w1 is here") != std::string::npos; }));
  EXPECT_EQ(daemon.log().find('\x1b'), std::string::npos);
  EXPECT_EQ(daemon.log().find('\x07'), std::string::npos);
  expect_little_memory(daemon);
}

}  // namespace
}  // namespace tuner
