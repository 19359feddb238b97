// Server: the coordinator on the wire (gRPC), over Unix sockets and loopback TCP.
//
// gRPC's callback API: a Sync that waits occupies no thread (coordinator.h, the desk). Calls that block for
// the disk share a few threads; watchers, and callers who wait for a measurement, have one each, and there is
// a bound on them (call_threads.h). Shutdown is bounded because Coordinator::stop() ends all waits first;
// gRPC 1.51 would wait for ever for a call that does not end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "proto/daemon_access.h"
#include "tuner/daemon/coordinator.h"
#include "tuner/transport/gate_limits.h"

namespace tuner {

// OK for "unix:/path", for HOST:PORT on loopback, and for "tls:HOST:PORT" on any address. Anything else would
// carry code to run in plain text: refused.
Status check_listen_address(const std::string& address);
// OK for HOST:PORT on loopback, where pages are plain text, and for "tls:HOST:PORT" on any address.
Status check_pages_address(const std::string& address);

class Server {
 public:
  // `coordinator` is started and outlives this. `addresses`: as check_listen_address(); port 0 takes a free
  // one. `identity`: the folder that says who may do what (tuner/identity); empty, or a folder that is not
  // there: everybody on this machine may everything, and there is no TLS. `store`: what Admin.Prune prunes;
  // null: it is refused.
  static Result<std::unique_ptr<Server>> start(Coordinator& coordinator,
                                               const std::vector<std::string>& addresses,
                                               const std::string& identity = "", Store* store = nullptr);
  virtual ~Server() = default;  // stops
  // What clients may dial, in the order asked for, ports filled in.
  virtual const std::vector<std::string>& addresses() const = 0;
  // How the first of them is dialled: what a probe of its own needs.
  virtual Result<DaemonAccess> own_access() const = 0;
  // What the health service (grpc.health.v1) says from now on. At the start: SERVING.
  virtual void set_serving(bool serving) = 0;
  virtual transport::GateStats gate_stats() const = 0;
  // No new connections from soon on; those that are open go on.
  virtual void stop_listening() = 0;
  // Call Coordinator::stop() before. Returns within about three seconds. Twice is fine.
  virtual void stop() = 0;
};

}  // namespace tuner
