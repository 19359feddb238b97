// A real gRPC server behind the gate: what honest clients do passes, what attackers do does not, side by
// side.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "measure.grpc.pb.h"
#include "tests/support/http2_attack.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"
#include "tuner/transport/gate.h"
#include "tuning.grpc.pb.h"

namespace tuner::transport {
namespace {

using namespace std::chrono_literals;
namespace http2 = testing::http2;
using Clock = std::chrono::steady_clock;

constexpr char kSync[] = "/tuner.v1.Workers/Sync";

// Register echoes the worker's name; Sync waits as long as it is asked to.
class Workers final : public v1::Workers::Service {
 public:
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterReply* reply) override {
    reply->set_session(request->worker_id());
    return grpc::Status::OK;
  }
  grpc::Status Sync(grpc::ServerContext* context, const v1::SyncRequest* request, v1::SyncReply*) override {
    wait_until(std::chrono::milliseconds(request->wait_ms()),
               [&] { return stopping || context->IsCancelled(); });
    return grpc::Status::OK;
  }
  std::atomic<bool> stopping{false};
};

// Watch sends events until the client leaves.
class Jobs final : public v1::Jobs::Service {
 public:
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest*,
                     grpc::ServerWriter<v1::JobEvent>* writer) override {
    v1::JobEvent event;
    for (int64_t i = 1; !stopping && !context->IsCancelled(); ++i) {
      event.set_seq(i);
      if (!writer->Write(event)) break;
      let_pass(1ms);
    }
    return grpc::Status::OK;
  }
  std::atomic<bool> stopping{false};
};

// The server, with options as the daemon has them, and the gate before it.
class Service {
 public:
  explicit Service(const GateLimits& limits = {}, std::string address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(16 << 20);
    builder.SetMaxSendMessageSize(16 << 20);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 128);
    builder.RegisterService(&workers_);
    builder.RegisterService(&jobs_);
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    auto started = Gate::start(
        {std::move(address)},
        [this](int fd) {
          grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
          connection.fd = fd;
          acceptor_->HandleNewConnection(&connection);
        },
        limits);
    EXPECT_TRUE(started.is_ok()) << started.message();
    gate_ = std::move(started).value();
  }
  ~Service() {
    gate_->stop_listening();
    shut_down();
    gate_->stop();
  }
  void shut_down() {
    workers_.stopping = jobs_.stopping = true;
    server_->Shutdown(std::chrono::system_clock::now() + 2s);
    server_->Wait();
  }
  Gate& gate() { return *gate_; }
  const std::string& address() { return gate_->addresses()[0]; }
  uint64_t closed_by_guard() const {
    const auto closed = gate_->stats().closed_by_guard;
    return std::accumulate(closed.begin(), closed.end(), uint64_t{0});
  }
  uint64_t closed_for(Cause cause) const {
    return gate_->stats().closed_by_guard[static_cast<size_t>(cause)];
  }

 private:
  Workers workers_;
  Jobs jobs_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Gate> gate_;
};

class Client {
 public:
  explicit Client(const std::string& address, int keepalive_ms = 0) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    if (keepalive_ms > 0) {
      arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
      arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
      arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    }
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    workers = v1::Workers::NewStub(channel_);
    jobs = v1::Jobs::NewStub(channel_);
  }
  // Sends this many bytes and expects them back.
  grpc::Status echo(size_t size = 20) {
    grpc::ClientContext context;
    limit(context);
    v1::RegisterRequest request;
    request.set_worker_id(std::string(size, 'x'));
    v1::RegisterReply reply;
    const grpc::Status status = workers->Register(&context, request, &reply);
    if (status.ok()) {
      EXPECT_EQ(reply.session().size(), size);
    }
    return status;
  }
  // A waiting Sync that is cancelled after a moment, as a worker does that has a result.
  grpc::Status cancelled_sync(std::chrono::microseconds after) {
    grpc::ClientContext context;
    limit(context);
    v1::SyncRequest request;
    request.set_wait_ms(20'000);
    v1::SyncReply reply;
    grpc::CompletionQueue queue;
    const auto call = workers->AsyncSync(&context, request, &queue);
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    let_pass(after);
    context.TryCancel();
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }
  static void limit(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + 60s);
  }
  grpc_connectivity_state state() { return channel_->GetState(false); }

  std::unique_ptr<v1::Workers::Stub> workers;
  std::unique_ptr<v1::Jobs::Stub> jobs;

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

void in_threads(int count, const std::function<void()>& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

TEST(GateGrpc, ManyCallsAtOnceOnOneConnectionPass) {
  const TemporaryFolder folder;
  for (const std::string& address : {std::string("127.0.0.1:0"), "unix:" + folder.file("s")}) {
    Service service({}, address);
    Client client(service.address());
    in_threads(64, [&] {
      for (int i = 0; i < 50; ++i) ASSERT_TRUE(client.echo(static_cast<size_t>(1 + i * 100)).ok());
    });
    EXPECT_EQ(service.gate().stats().accepted, 1u);
    EXPECT_EQ(service.closed_by_guard(), 0u);
  }
}

TEST(GateGrpc, LongMessagesPass) {
  Service service;
  Client client(service.address());
  for (int i = 0; i < 5; ++i) {
    const grpc::Status status = client.echo(10 << 20);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  in_threads(16, [&] { EXPECT_TRUE(client.echo(1 << 20).ok()); });
  EXPECT_EQ(service.gate().stats().accepted, 1u);
  EXPECT_EQ(service.closed_by_guard(), 0u);
}

// The server measures a message when all of it is there, and refuses it in words.
TEST(GateGrpc, ATooLongMessageCostsItsCallOnly) {
  GateLimits limits;
  limits.frames.request_ms = 1'000;
  Service service(limits);
  Client client(service.address());
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(client.echo(17 << 20).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(client.echo().ok());
  EXPECT_EQ(service.gate().stats().accepted, 1u);
  EXPECT_EQ(service.closed_by_guard(), 0u);
  EXPECT_EQ(client.echo(40 << 20).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(service.closed_for(Cause::kMessageSize), 1u);
  EXPECT_TRUE(wait_until(10s, [&] { return client.echo().ok(); })) << "it may come back";
}

// The server answers before the client has sent all: such a request has no end that the client sends.
TEST(GateGrpc, ARequestThatTheServerEndsIsNotOpenForEver) {
  GateLimits limits;
  limits.frames.request_ms = 1'000;
  Service service(limits);
  http2::Http2Attack client(service.address());
  client.send(http2::preface() + http2::settings());
  for (uint32_t stream = 1; stream < 100; stream += 2)
    ASSERT_TRUE(client.send(http2::headers(stream, "/no/such/call", false)));
  EXPECT_FALSE(client.closes_within(2'500ms)) << "what the guard believes to be open would be too late";
  EXPECT_EQ(service.closed_by_guard(), 0u);
}

TEST(GateGrpc, CancelledCallsPass) {
  Service service;
  Client client(service.address());
  // A fast worker: a result every few milliseconds, each cancels a waiting Sync.
  for (int i = 0; i < 600; ++i)
    ASSERT_EQ(client.cancelled_sync(std::chrono::microseconds(4'000 + i % 10 * 200)).error_code(),
              grpc::StatusCode::CANCELLED);
  // All at once.
  in_threads(64, [&] { EXPECT_FALSE(client.cancelled_sync(20ms).ok()); });
  EXPECT_TRUE(client.echo().ok());
  EXPECT_EQ(service.gate().stats().accepted, 1u);
  EXPECT_EQ(service.closed_by_guard(), 0u);
}

TEST(GateGrpc, WatchersThatLeavePass) {
  Service service;
  Client client(service.address());
  in_threads(16, [&] {
    for (int i = 0; i < 5; ++i) {
      grpc::ClientContext context;
      Client::limit(context);
      const auto reader = client.jobs->Watch(&context, {});
      v1::JobEvent event;
      for (int k = 0; k < 20; ++k) ASSERT_TRUE(reader->Read(&event));
      context.TryCancel();
      while (reader->Read(&event)) {
      }
      EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    }
  });
  EXPECT_EQ(service.gate().stats().accepted, 1u);
  EXPECT_EQ(service.closed_by_guard(), 0u);
}

TEST(GateGrpc, AnIdleConnectionWithKeepaliveLives) {
  GateLimits limits;
  limits.stall_ms = 2'000;
  Service service(limits);
  Client client(service.address(), /*keepalive_ms=*/1'000);
  ASSERT_TRUE(client.echo().ok());
  let_pass(10s);
  EXPECT_EQ(client.state(), GRPC_CHANNEL_READY);
  EXPECT_TRUE(client.echo().ok());
  EXPECT_EQ(service.gate().stats().accepted, 1u);
  EXPECT_EQ(service.closed_by_guard(), 0u);
}

TEST(GateGrpc, AServerThatShutsDownEndsItsCallsInPeace) {
  Service service;
  Client client(service.address());
  ASSERT_TRUE(client.echo().ok());
  grpc::ClientContext context;
  Client::limit(context);
  v1::SyncRequest request;
  request.set_wait_ms(20'000);
  v1::SyncReply reply;
  grpc::Status status(grpc::StatusCode::UNKNOWN, "not answered");
  std::thread waiting([&] { status = client.workers->Sync(&context, request, &reply); });
  EXPECT_TRUE(wait_until(10s, [&] { return service.gate().stats().bytes_in > 300; }));
  let_pass(100ms);
  service.gate().stop_listening();
  service.shut_down();
  waiting.join();
  EXPECT_TRUE(status.ok()) << status.error_message() << ": the last answer did not pass the gate";
  EXPECT_TRUE(wait_until(10s, [&] { return service.gate().stats().open_now == 0; }));
}

// An honest client that calls all the time, and counts what fails.
class Honest {
 public:
  explicit Honest(const std::string& address) : client_(address) {
    EXPECT_TRUE(client_.echo().ok());
    thread_ = std::thread([this] {
      while (!done_) {
        if (client_.echo().ok())
          ++answered_;
        else
          ++failed_;
        let_pass(1ms);
      }
    });
  }
  ~Honest() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int answered() const { return answered_; }
  int failed() const { return failed_; }

 private:
  Client client_;
  std::atomic<bool> done_{false};
  std::atomic<int> answered_{0}, failed_{0};
  std::thread thread_;
};

// Attacks for two seconds, with a new connection whenever one was closed. Returns how many were.
int attack(const std::string& address, const std::function<void(http2::Http2Attack&)>& once) {
  int closed = 0;
  for (const auto end = Clock::now() + 2s; Clock::now() < end;) {
    http2::Http2Attack attacker(address);
    attacker.send(http2::preface() + http2::settings());
    once(attacker);
    EXPECT_TRUE(attacker.closes_within(15s));
    if (attacker.is_closed()) ++closed;
  }
  return closed;
}

// Issue 18, "What was seen", 1, first half.
TEST(GateGrpc, Seen1RapidResetIsClosedAndOthersAreServed) {
  Service service;
  Honest honest(service.address());
  const int closed = attack(service.address(), [](http2::Http2Attack& attacker) {
    for (uint32_t stream = 1; stream < 2'000'000; stream += 2)
      if (!attacker.send(http2::headers(stream, kSync, false) + http2::reset(stream))) break;
  });
  EXPECT_GT(closed, 0);
  EXPECT_GT(service.closed_for(Cause::kResets), 0u);
  EXPECT_EQ(service.closed_for(Cause::kResets) + service.closed_for(Cause::kSharedResets),
            static_cast<uint64_t>(closed));
  const int before = honest.answered();
  EXPECT_TRUE(wait_until(10s, [&] { return honest.answered() > before + 10; }));
  EXPECT_EQ(honest.failed(), 0);
}

// Issue 18, "What was seen", 1, second half.
TEST(GateGrpc, Seen1RequestsWithoutEndAreClosedAndOthersAreServed) {
  Service service;
  Honest honest(service.address());
  const int closed = attack(service.address(), [](http2::Http2Attack& attacker) {
    for (uint32_t stream = 1; stream < 2'000'000; stream += 2)
      if (!attacker.send(http2::headers(stream, kSync, false))) break;
  });
  EXPECT_GT(closed, 0);
  EXPECT_EQ(service.closed_for(Cause::kOpenRequests), static_cast<uint64_t>(closed));
  const int before = honest.answered();
  EXPECT_TRUE(wait_until(10s, [&] { return honest.answered() > before + 10; }));
  EXPECT_EQ(honest.failed(), 0);
}

TEST(GateGrpc, RequestsThatDripAreClosed) {
  GateLimits limits;
  limits.frames.request_ms = 1'000;
  Service service(limits);
  Honest honest(service.address());
  http2::Http2Attack attacker(service.address());
  attacker.send(http2::preface() + http2::settings());
  for (uint32_t stream = 1; stream < 200; stream += 2)
    ASSERT_TRUE(attacker.send(http2::headers(stream, kSync, false) + http2::data(stream, "x", false)));
  EXPECT_TRUE(attacker.closes_within(15s));
  EXPECT_EQ(service.closed_for(Cause::kSlowRequest), 1u);
  EXPECT_EQ(honest.failed(), 0);
}

TEST(GateGrpc, TheRawClientIsUnderstood) {
  Service service;
  http2::Http2Attack client(service.address());
  // Register with worker_id = "it works": the reply's session, field 1, is the same.
  const std::string message = std::string("\x0a\x08") + "it works";
  ASSERT_TRUE(client.send(http2::preface() + http2::settings() +
                          http2::headers(1, "/tuner.v1.Workers/Register", false) +
                          http2::data(1, http2::grpc_message(message), true)));
  EXPECT_TRUE(wait_until(10s, [&] {
    return !client.is_closed() && client.received().find(http2::grpc_message(message)) != std::string::npos;
  })) << "otherwise the attacks above show nothing";
}

}  // namespace
}  // namespace tuner::transport
