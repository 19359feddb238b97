// Connection: how a command reaches a daemon: a given one, the one that runs on this database already, or its
// own.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/daemon/daemon_host.h"
#include "tuning.grpc.pb.h"

namespace tuner {

struct ConnectOptions {
  std::string daemon;  // HOST:PORT or unix:/path; empty: embedded on `db`
  std::string db;
  bool own_worker = false;  // embedded: this command wants trials measured here
};

struct Connection {
  std::string name;                  // of the daemon, for messages
  std::unique_ptr<DaemonHost> host;  // set when the daemon is this process
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Jobs::Stub> jobs;
};

// Unavailable when nobody answers within about ten seconds.
Result<Connection> connect(const ConnectOptions& options);

}  // namespace tuner
