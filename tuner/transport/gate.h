// Gate: our own sockets in front of a server that takes connected descriptors.
//
//   clients --unix:/path, HOST:PORT--> Gate (one thread) --an end of a socketpair each--> hand-over (gRPC)
//
// The gate listens, accepts, looks at what clients send (FrameGuard) and passes the bytes on both ways. What
// the server behind cannot bound is bounded here: connections, their rate, descriptors, requests, resets,
// silence. A connection that breaks a limit is closed with a line in the log; all others go on. The listener
// survives a lack of descriptors: the connection that came then is closed and the next one is taken.
//
// It knows neither gRPC nor messages. Memory: buffers are held only while one side reads more slowly than the
// other sends, at most 64 KiB each way; an idle connection has none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/transport/gate_limits.h"
#include "tuner/transport/peer.h"
#include "tuner/transport/tls.h"

namespace tuner::transport {

// Takes a connected stream socket that does not block, and owns it: called on the gate's thread, for each
// connection whose HTTP/2 preface has come. It should return quickly, and must not call the gate.
using Handover = std::function<void(int fd)>;

// Returns how many connections fit `descriptors` (RLIMIT_NOFILE): each takes three, and a quarter of them (16
// to 512) stays with the database, logs and workers. At most 4,096: their memory is the next limit.
int most_connections(uint64_t descriptors);

class Gate {
 public:
  // `addresses`: "unix:/path", HOST:PORT or "tls:HOST:PORT"; port 0 takes a free one. `tls` outlives the
  // gate; without it "tls:" is refused. Fails, with nothing left behind, if one of them cannot be listened
  // on, or is another process's.
  static Result<std::unique_ptr<Gate>> start(const std::vector<std::string>& addresses, Handover handover,
                                             const GateLimits& limits = {}, TlsServer* tls = nullptr);
  virtual ~Gate() = default;  // stops

  // What clients may dial, in the order asked for, ports filled in.
  virtual const std::vector<std::string>& addresses() const = 0;
  // Who is behind a descriptor that was handed over, by the name that getpeername() of it returns in the
  // abstract namespace, without its leading zero. Nothing once the connection has ended. Any thread.
  virtual std::optional<Peer> peer(std::string_view name) const = 0;
  // Takes no new connections from soon on; those that are open go on. For a server that ends its calls in
  // peace: call this, shut the server down, then stop().
  virtual void stop_listening() = 0;
  // Passes on what the server has written, as far as clients take it at once; closes all and joins. Twice is
  // fine.
  virtual void stop() = 0;
  // From any thread. Counters are read one by one, so they may differ by an event.
  virtual GateStats stats() const = 0;
};

}  // namespace tuner::transport
