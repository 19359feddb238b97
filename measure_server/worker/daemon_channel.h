// DaemonChannel: the gRPC connection to the daemon, for calls of any number of threads. Keepalive is on:
// without it a vanished host is only noticed at the call's own deadline.
//
// gRPC connects while somebody waits for it in a call; between calls it looks at its sockets every five
// seconds only. Calls of ours fail at once where there is no connection, so we wait for one before each call.
// (With pauses between failing calls alone, a worker met its daemon again by chance: no attempt lived to be
// looked at.)
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "compiler_core/base/status.h"
#include "proto/daemon_access.h"

namespace tuner {

class DaemonChannel {
 public:
  explicit DaemonChannel(DaemonAccess access);

  // The channel to call through, with the credentials that the file has now, if the last call was not
  // answered; connected, or after a try of at most three seconds. Returns earlier if `interrupt` is
  // requested.
  std::shared_ptr<grpc::Channel> ready(const std::stop_token& interrupt);
  // By what right the caller calls, and until when.
  void prepare(grpc::ClientContext& context, int limit_ms) const;
  // How the call ended.
  void heard(const grpc::Status& status);
  std::string address() const;
  // What gRPC's words for a connection that cannot be made tell of TLS; empty: nothing.
  std::string tls_trouble(std::string_view words) const;

 private:
  void dial_locked();
  void read_again_locked();
  std::string stamp_locked() const;

  mutable std::mutex mutex_;
  DaemonAccess access_;
  std::string stamp_;    // of the credentials file as it was read; empty: there is none
  bool failed_ = false;  // the last call
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace tuner
