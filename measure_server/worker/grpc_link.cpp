// The wire over gRPC. Keepalive is on: without it a vanished host is only noticed at the call's own deadline.
//
// gRPC connects while somebody waits for it in a call; between calls it looks at its sockets every five seconds
// only. Calls of ours fail at once where there is no connection, so we wait for one before each call. (With
// pauses between failing calls alone, a worker met its daemon again by chance: no attempt lived to be looked at.)
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "measure.grpc.pb.h"
#include "measure_server/worker/daemon_link.h"
#include "proto/grpc_access.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxMessageBytes = 16 << 20;
constexpr milliseconds kConnectWait{3'000};  // before a call, where there is no connection yet
constexpr milliseconds kLook{100};           // how often it is asked meanwhile whether to go on

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
  explicit GrpcLink(DaemonAccess access) : access_(std::move(access)), stamp_(stamp()) { dial(); }

  Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) override {
    prepare({});
    grpc::ClientContext context;
    add_token(access_, context);
    limit(context, 5'000);
    return heard(stub_->Register(&context, request, reply), Call::kRegister);
  }

  Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) override {
    prepare(interrupt);
    grpc::ClientContext context;
    add_token(access_, context);
    limit(context, request.wait_ms() + 10'000);
    // Cancelling a context before its call starts is fine: the call then ends at once.
    const std::stop_callback cancel(interrupt, [&context] { context.TryCancel(); });
    return heard(stub_->Sync(&context, request, reply), Call::kSync);
  }

 private:
  void dial() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetMaxSendMessageSize(kMaxMessageBytes);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);  // really: what an attempt may take
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
    // Credentials that were renewed are used by a connection of their own.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    if (access_.tls()) quieten_grpc();
    const std::shared_ptr<grpc::ChannelCredentials> credentials = channel_credentials(access_, arguments);
    channel_ = grpc::CreateCustomChannel(access_.address, credentials, arguments);
    stub_ = v1::Workers::NewStub(channel_);
  }

  // Ready to call: with the credentials that the file has now, if the last call was not answered, and connected.
  void prepare(const std::stop_token& interrupt) {
    if (failed_ && stamp() != stamp_) read_again();
    wait_for_connection(interrupt);
  }
  Status heard(const grpc::Status& status, Call call) {
    failed_ = !status.ok();
    return to_status(status, access_.address, call);
  }

  // Of the credentials file; empty: there is none.
  std::string stamp() const {
    struct stat info {};
    if (access_.file.empty() || ::stat(access_.file.c_str(), &info) != 0) return "";
    return str(info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
  }
  void read_again() {
    stamp_ = stamp();
    Result<DaemonAccess> access = find_daemon(access_.file);
    if (!access) return spdlog::error("{}; the credentials of before are used", access.message());
    access_ = *std::move(access);
    spdlog::info("{}: read again", access_.file);
    dial();
  }

  // Returns when there is a connection, or an attempt that began here has failed, or the time is over. The call
  // that follows says what the trouble is.
  void wait_for_connection(const std::stop_token& interrupt) const {
    const auto end = std::chrono::system_clock::now() + kConnectWait;
    bool tried = false;
    while (!interrupt.stop_requested() && std::chrono::system_clock::now() < end) {
      const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
      if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_SHUTDOWN) return;
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && tried) return;
      tried = tried || state == GRPC_CHANNEL_CONNECTING;
      channel_->WaitForStateChange(state, std::min(end, std::chrono::system_clock::now() + kLook));
    }
  }
  static void limit(grpc::ClientContext& context, int ms) {
    context.set_deadline(std::chrono::system_clock::now() + milliseconds(ms));
  }

  DaemonAccess access_;
  std::string stamp_;    // of the file as it was read
  bool failed_ = false;  // the last call
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Workers::Stub> stub_;
};

}  // namespace

std::unique_ptr<DaemonLink> make_grpc_link(DaemonAccess access) {
  return std::make_unique<GrpcLink>(std::move(access));
}

}  // namespace tuner
