// DaemonLink: the wire to the daemon, as little as the worker needs; tests put their own in its place.
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
  // Unavailable or DeadlineExceeded: try again. Aborted: the session is not known, register again. Anything
  // else: the daemon refuses this worker and says why.
  virtual Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) = 0;
  // Returns early, with any error, when `interrupt` is requested. What the daemon answered is then lost,
  // which is harmless: the next request makes it say it again.
  virtual Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) = 0;
};

// `address`: unix:/path or host:port. Connects when first used.
std::unique_ptr<DaemonLink> make_grpc_link(const std::string& address);

}  // namespace tuner
