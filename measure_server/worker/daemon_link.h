// DaemonLink: the wire to the daemon, as little as the worker needs; tests put their own in its place.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "measure.pb.h"

namespace tuner {

class DaemonLink {
 public:
  virtual ~DaemonLink() = default;
  // Unavailable or DeadlineExceeded: try again. Aborted: the session is not known, register again. Anything
  // else: the daemon refuses this worker and says why. May be called from several threads.
  virtual Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) = 0;
  virtual Status sync(const v1::SyncRequest& request, v1::SyncReply* reply) = 0;
  // Ends calls that wait.
  virtual void cancel() = 0;
};

// `address`: unix:/path or host:port. Connects when first used.
std::unique_ptr<DaemonLink> make_grpc_link(const std::string& address);

}  // namespace tuner
