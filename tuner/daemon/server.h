// Server: the coordinator on the wire (gRPC), over Unix sockets and loopback TCP.
//
// Calls are synchronous: a waiting Sync or Watch occupies a thread, which is cheap at the size of a farm this
// serves (hundreds of workers) and lets every wait be an ordinary one with a deadline. Shutdown is bounded
// because Coordinator::stop() ends all waits first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/daemon/coordinator.h"

namespace tuner {

// OK for "unix:/path" and for HOST:PORT on loopback. Anything else would carry code to run in plain text:
// refused.
Status check_listen_address(const std::string& address);

class Server {
 public:
  // `coordinator` is started and outlives this. `addresses`: unix:/path or host:port; port 0 takes a free
  // one.
  static Result<std::unique_ptr<Server>> start(Coordinator& coordinator,
                                               const std::vector<std::string>& addresses);
  virtual ~Server() = default;  // stops
  // What clients may dial, in the order asked for, ports filled in.
  virtual const std::vector<std::string>& addresses() const = 0;
  // Call Coordinator::stop() before. Returns within about three seconds. Twice is fine.
  virtual void stop() = 0;
};

}  // namespace tuner
