// The wire over gRPC.
#include <utility>

#include "build.grpc.pb.h"
#include "measure.grpc.pb.h"
#include "measure_server/worker/blob_link.h"
#include "measure_server/worker/daemon_channel.h"
#include "measure_server/worker/daemon_link.h"

namespace tuner {
namespace {

constexpr int kRegisterMs = 5'000;
constexpr int kBeyondWaitMs = 10'000;  // a Sync may take so much longer than it waits
constexpr int kBlobMs = 60'000;        // 256 KiB, over a slow link

enum class Call { kRegister, kSync, kBlob };

// What daemon_link.h and blob_link.h say of each call's errors; FAILED_PRECONDITION is about sessions, so
// Register has none.
Status to_status(const grpc::Status& s, const std::string& address, const std::string& tls_trouble,
                 Call call) {
  if (s.ok()) return Status::ok();
  const std::string message = str("daemon ", address, ": ", s.error_message());
  switch (s.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return {StatusCode::kUnavailable, tls_trouble.empty() ? message : str(message, "; ", tls_trouble)};
    case grpc::StatusCode::CANCELLED:
      return {StatusCode::kUnavailable, message};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {StatusCode::kDeadlineExceeded, message};
    case grpc::StatusCode::FAILED_PRECONDITION:
      return {call == Call::kRegister ? StatusCode::kUnavailable : StatusCode::kAborted, message};
    case grpc::StatusCode::ALREADY_EXISTS:
      return {StatusCode::kAborted, message};
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {StatusCode::kInvalidArgument, message};
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::PERMISSION_DENIED:
      return {call == Call::kBlob ? StatusCode::kNotFound : StatusCode::kFailed, message};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {StatusCode::kFailed,
              str("daemon ", address, ": is no tuner daemon of this version: ", s.error_message())};
    default:
      return {StatusCode::kFailed, message};
  }
}

class GrpcLink final : public DaemonLink, public BlobLink {
 public:
  explicit GrpcLink(DaemonAccess access) : channel_(std::move(access)) {}

  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) override {
    return call<v1::Workers>(Call::kRegister, kRegisterMs, {}, [&](auto& stub, grpc::ClientContext& context) {
      return stub.Register(&context, request, reply);
    });
  }
  Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) override {
    return call<v1::Workers>(
        Call::kSync, request.wait_ms() + kBeyondWaitMs, interrupt,
        [&](auto& stub, grpc::ClientContext& context) { return stub.Sync(&context, request, reply); });
  }
  Status read(const v1::ReadBlobRequest& request, v1::ReadBlobReply* reply,
              std::stop_token interrupt) override {
    return call<v1::Blobs>(Call::kBlob, kBlobMs, interrupt, [&](auto& stub, grpc::ClientContext& context) {
      return stub.Read(&context, request, reply);
    });
  }
  Status write(const v1::WriteBlobRequest& request, v1::WriteBlobReply* reply,
               std::stop_token interrupt) override {
    return call<v1::Blobs>(Call::kBlob, kBlobMs, interrupt, [&](auto& stub, grpc::ClientContext& context) {
      return stub.Write(&context, request, reply);
    });
  }

 private:
  template <class Service, class Send>
  Status call(Call what, int limit_ms, const std::stop_token& interrupt, const Send& send) {
    const std::shared_ptr<grpc::Channel> channel = channel_.ready(interrupt);
    grpc::ClientContext context;
    channel_.prepare(context, limit_ms);
    // Cancelling a context before its call starts is fine: the call then ends at once.
    const std::stop_callback cancel(interrupt, [&context] { context.TryCancel(); });
    const auto stub = Service::NewStub(channel);
    const grpc::Status status = send(*stub, context);
    channel_.heard(status);
    return to_status(status, channel_.address(), channel_.tls_trouble(status.error_message()), what);
  }

  DaemonChannel channel_;
};

}  // namespace

std::unique_ptr<DaemonLink> make_grpc_link(DaemonAccess access) {
  return std::make_unique<GrpcLink>(std::move(access));
}

std::unique_ptr<BlobLink> make_blob_link(DaemonAccess access) {
  return std::make_unique<GrpcLink>(std::move(access));
}

}  // namespace tuner
