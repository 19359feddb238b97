// The wire over gRPC. Keepalive is on: without it a vanished host is only noticed at the call's own deadline.
#include <grpcpp/grpcpp.h>

#include <chrono>

#include "measure.grpc.pb.h"
#include "measure_server/worker/daemon_link.h"

namespace tuner {
namespace {

constexpr int kMaxMessageBytes = 16 << 20;

enum class Call { kRegister, kSync };

// What daemon_link.h says of each call's errors; FAILED_PRECONDITION is about sessions, so only Sync has it.
Status to_status(const grpc::Status& s, const std::string& address, Call call) {
  if (s.ok()) return Status::ok();
  const std::string message = str("daemon ", address, ": ", s.error_message());
  switch (s.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return {StatusCode::kUnavailable, message};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {StatusCode::kDeadlineExceeded, message};
    case grpc::StatusCode::FAILED_PRECONDITION:
      return {call == Call::kSync ? StatusCode::kAborted : StatusCode::kUnavailable, message};
    case grpc::StatusCode::ALREADY_EXISTS:
      return {StatusCode::kAborted, message};
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {StatusCode::kInvalidArgument, message};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {StatusCode::kFailed,
              str("daemon ", address, ": is no tuner daemon of this version: ", s.error_message())};
    default:
      return {StatusCode::kFailed, message};
  }
}

class GrpcLink final : public DaemonLink {
 public:
  explicit GrpcLink(std::string address) : address_(std::move(address)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetMaxSendMessageSize(kMaxMessageBytes);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
    stub_ = v1::Workers::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
  }

  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) override {
    grpc::ClientContext context;
    limit(context, 5'000);
    return to_status(stub_->Register(&context, request, reply), address_, Call::kRegister);
  }

  Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) override {
    grpc::ClientContext context;
    limit(context, request.wait_ms() + 10'000);
    // Cancelling a context before its call starts is fine: the call then ends at once.
    const std::stop_callback cancel(interrupt, [&context] { context.TryCancel(); });
    return to_status(stub_->Sync(&context, request, reply), address_, Call::kSync);
  }

 private:
  static void limit(grpc::ClientContext& context, int ms) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(ms));
  }

  const std::string address_;
  std::unique_ptr<v1::Workers::Stub> stub_;
};

}  // namespace

std::unique_ptr<DaemonLink> make_grpc_link(const std::string& address) {
  return std::make_unique<GrpcLink>(address);
}

}  // namespace tuner
