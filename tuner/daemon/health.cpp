#include "tuner/daemon/health.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>

#include "proto/grpc_access.h"
#include "proto/grpc_status.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/daemon/server.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kJudgeEvery{1'000};

}  // namespace

Readiness judge_health(const HealthFacts& f, const HealthOptions& options) {
  const auto late = [&](int64_t turned_ms) { return f.now_ms - turned_ms > options.turn_limit_ms; };
  const auto seconds = [&](int64_t since_ms) { return (f.now_ms - since_ms) / 1000; };
  if (late(f.desk_turned_ms))
    return {false,
            str("the desk has not turned for ", seconds(f.desk_turned_ms), " s: no worker is answered")};
  if (late(f.search_turned_ms))
    return {false, str("no search has turned for ", seconds(f.search_turned_ms), " s: nothing is proposed")};
  if (f.commit_failed) return {false, "the database cannot be written: the last commit failed"};
  if (f.now_ms - f.probed_ms > options.probed_limit_ms)
    return {false, str("its own socket has not answered for ", seconds(f.probed_ms), " s: ", f.probe_error)};
  if (!f.probed_once && !f.probe_error.empty())
    return {false, "its own socket does not answer: " + f.probe_error};
  if (!f.probed_once) return {false, "it has just begun: its own socket has not been tried yet"};
  return {true, ""};
}

Status probe_daemon(const DaemonAccess& daemon, int64_t limit_ms) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a new connection
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const std::shared_ptr<grpc::ChannelCredentials> credentials = channel_credentials(daemon, arguments);
  grpc::GenericStub stub(grpc::CreateCustomChannel(daemon.address, credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(limit_ms));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;  // a HealthCheckRequest without a service
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);  // within the deadline
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return from_grpc(status, daemon.address);
}

Health::Health(const Coordinator& coordinator, const Clock& clock, Server& server, HealthOptions options)
    : coordinator_(coordinator),
      clock_(clock),
      server_(server),
      options_(options),
      probed_ms_(clock.now_ms()),
      thread_([this] { watch(); }) {}

Health::~Health() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

Readiness Health::ready() const {
  const DaemonMetrics& metrics = coordinator_.metrics();
  HealthFacts facts{.now_ms = clock_.now_ms(),
                    .desk_turned_ms = metrics.desk_turned_ms,
                    .search_turned_ms = metrics.search_turned_ms,
                    .commit_failed = metrics.commit_failed};
  const std::lock_guard lock(mutex_);
  if (stopping_) return {false, "the daemon is stopping"};
  facts.probed_ms = probed_ms_;
  facts.probe_error = probe_error_;
  facts.probed_once = probed_once_;
  return judge_health(facts, options_);
}

void Health::watch() {
  std::optional<bool> told;
  std::optional<int64_t> tried_ms;
  while (true) {
    if (!tried_ms || clock_.now_ms() - *tried_ms >= options_.probe_every_ms) {
      tried_ms = clock_.now_ms();
      const Status probe = probe_daemon(server_.own_access(), options_.probe_limit_ms);
      const std::lock_guard lock(mutex_);
      if (probe) {
        probed_ms_ = clock_.now_ms();
        probed_once_ = true;
      }
      probe_error_ = probe.message();
    }
    const Readiness now = ready();
    if (told != now.ready) {
      server_.set_serving(now.ready);
      if (!now.ready)
        spdlog::error("not ready: {}", now.reason);
      else if (told)
        spdlog::info("ready again");
      told = now.ready;
    }
    std::unique_lock lock(mutex_);
    const milliseconds pause = std::min(kJudgeEvery, milliseconds(options_.probe_every_ms));
    if (stop_.wait_for(lock, pause, [&] { return stopping_; })) return;
  }
}

}  // namespace tuner
