// DaemonLink: the connection to the daemon, reduced to what the worker needs. Tests replace it with their
// own.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "compiler_core/base/status.h"
#include "measure.pb.h"

namespace tuner {

class DaemonLink {
 public:
  virtual ~DaemonLink() = default;
  // Unavailable or DeadlineExceeded: try again. Aborted: the daemon does not know the session; register
  // again. Any other error: the daemon refuses this worker, with the reason.
  virtual Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) = 0;
  // Returns early, with any error, if `interrupt` is requested. The daemon's answer is then lost, which is
  // harmless: the next request makes the daemon repeat it.
  virtual Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) = 0;
};

// `address`: unix:/path or host:port. Connects at first use.
std::unique_ptr<DaemonLink> make_grpc_link(const std::string& address);

}  // namespace tuner
