// The wire over gRPC. Keepalive is on: without it a vanished host is only noticed at the call's own deadline.
#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "measure.grpc.pb.h"
#include "measure_server/worker/daemon_link.h"

namespace tuner {
namespace {

constexpr int kMaxMessageBytes = 16 << 20;

Status to_status(const grpc::Status& s, const std::string& address) {
  if (s.ok()) return Status::ok();
  const std::string message = str("daemon ", address, ": ", s.error_message());
  switch (s.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return {StatusCode::kUnavailable, message};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {StatusCode::kDeadlineExceeded, message};
    case grpc::StatusCode::FAILED_PRECONDITION:
      return {StatusCode::kAborted, message};
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {StatusCode::kInvalidArgument, message};
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
    return call(5'000,
                [&](grpc::ClientContext* context) { return stub_->Register(context, request, reply); });
  }
  Status sync(const v1::SyncRequest& request, v1::SyncReply* reply) override {
    return call(request.wait_ms() + 10'000,
                [&](grpc::ClientContext* context) { return stub_->Sync(context, request, reply); });
  }
  void cancel() override {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* context : open_) context->TryCancel();
  }

 private:
  template <class F>
  Status call(int limit_ms, const F& f) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(limit_ms));
    {
      std::lock_guard lock(mutex_);
      if (cancelled_) return unavailable("daemon ", address_, ": this worker is stopping");
      open_.insert(&context);
    }
    const grpc::Status status = f(&context);
    {
      std::lock_guard lock(mutex_);
      open_.erase(&context);
    }
    return to_status(status, address_);
  }

  const std::string address_;
  std::unique_ptr<v1::Workers::Stub> stub_;
  std::mutex mutex_;
  std::set<grpc::ClientContext*> open_;
  bool cancelled_ = false;
};

}  // namespace

std::unique_ptr<DaemonLink> make_grpc_link(const std::string& address) {
  return std::make_unique<GrpcLink>(address);
}

}  // namespace tuner
