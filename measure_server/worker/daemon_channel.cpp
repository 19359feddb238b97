#include "measure_server/worker/daemon_channel.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/grpc_access.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxMessageBytes = 16 << 20;
constexpr milliseconds kConnectWait{3'000};  // before a call, where there is no connection yet
constexpr milliseconds kLook{100};           // how often it is asked meanwhile whether to go on

// Returns when there is a connection, or an attempt that began here has failed, or the time is over. The call
// that follows says what the trouble is.
void wait_for_connection(grpc::Channel& channel, const std::stop_token& interrupt) {
  const auto end = std::chrono::system_clock::now() + kConnectWait;
  bool tried = false;
  while (!interrupt.stop_requested() && std::chrono::system_clock::now() < end) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_SHUTDOWN) return;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && tried) return;
    tried = tried || state == GRPC_CHANNEL_CONNECTING;
    channel.WaitForStateChange(state, std::min(end, std::chrono::system_clock::now() + kLook));
  }
}

}  // namespace

DaemonChannel::DaemonChannel(DaemonAccess access) : access_(std::move(access)) {
  stamp_ = stamp_locked();
  dial_locked();
}

std::shared_ptr<grpc::Channel> DaemonChannel::ready(const std::stop_token& interrupt) {
  std::shared_ptr<grpc::Channel> channel;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ && stamp_locked() != stamp_) read_again_locked();
    channel = channel_;
  }
  wait_for_connection(*channel, interrupt);
  return channel;
}

void DaemonChannel::prepare(grpc::ClientContext& context, int limit_ms) const {
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(limit_ms));
  const std::lock_guard lock(mutex_);
  add_token(access_, context);
}

void DaemonChannel::heard(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  failed_ = !status.ok();
}

std::string DaemonChannel::address() const {
  const std::lock_guard lock(mutex_);
  return access_.address;
}

std::string DaemonChannel::tls_trouble(std::string_view words) const {
  const std::lock_guard lock(mutex_);
  return tuner::tls_trouble(access_, words);
}

void DaemonChannel::dial_locked() {
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
}

std::string DaemonChannel::stamp_locked() const {
  struct stat info {};
  if (access_.file.empty() || ::stat(access_.file.c_str(), &info) != 0) return "";
  return str(info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

void DaemonChannel::read_again_locked() {
  stamp_ = stamp_locked();
  Result<DaemonAccess> access = find_daemon(access_.file);
  if (!access) return spdlog::error("{}; the credentials of before are used", access.message());
  access_ = *std::move(access);
  spdlog::info("{}: read again", access_.file);
  dial_locked();
}

}  // namespace tuner
