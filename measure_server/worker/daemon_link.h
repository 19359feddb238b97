// DaemonLink: the connection to the daemon, reduced to what the worker needs. Tests replace it with their
// own.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "proto/daemon_access.h"

namespace tuner {

class DaemonLink {
 public:
  virtual ~DaemonLink() = default;
  // InvalidArgument: the daemon refuses what this worker says of itself, and waiting will not help. Aborted:
  // another live worker has this id; perhaps a former life of this one, which the daemon has not missed yet.
  // Any other error: try again.
  virtual Status register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply) = 0;
  // Aborted: the daemon does not know the session; register again. Any other error: try again. Returns early,
  // with any error, if `interrupt` is requested. The daemon's answer is then lost, which is harmless: the
  // next request makes the daemon repeat it.
  virtual Status sync(const v1::SyncRequest& request, v1::SyncReply* reply, std::stop_token interrupt) = 0;
};

// Connects at first use, and again whenever the connection is lost; a call waits for that, at most three
// seconds. A credentials file that has changed is read again when a call is not answered: credentials are
// renewed without a restart.
std::unique_ptr<DaemonLink> make_grpc_link(DaemonAccess access);

}  // namespace tuner
