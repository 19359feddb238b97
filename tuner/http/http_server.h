// HttpServer: answers requests over HTTP/1.0 and 1.1, each by a handler. One thread; see README.md for what
// is bounded.
//
// Answered without the handler: 400 (no HTTP), 413 (a body that is too long), 431 (a head that is too long).
// A client that says nothing in time is closed without a word. Every answer says `Cache-Control: no-store`
// and `X-Content-Type-Options: nosniff`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/http/http_message.h"
#include "tuner/transport/tls.h"

namespace tuner::http {

struct Limits {
  int connections = 64;
  uint32_t head_bytes = 8 << 10;
  uint64_t body_bytes = 0;
  // Of a handshake, of a request from the end of the answer before, of an answer. So a connection that is
  // kept open is closed after this time.
  std::chrono::milliseconds deadline{2'000};
  // When all connections are taken and one more client comes, the connection that has waited longest for its
  // client is closed. So any number of slow clients cannot keep others out. False: who comes waits.
  bool makes_room = false;
  int slow_threads = 0;           // run what Reply::later says; 0: the server's own thread does
  int followers = 0;              // answers that have no end (Reply::follows); they count as connections, too
  size_t unread_bytes = 1 << 18;  // a follower that has more of these to read is closed
};

class HttpServer {
 public:
  // `address`: HOST:PORT, unix:/path, or tls:HOST:PORT, which needs `tls`. Port 0 takes a free one.
  // InvalidArgument: TLS without material, or with material that is damaged. Failed: somebody listens there.
  static Result<std::unique_ptr<HttpServer>> start(const std::string& address, Handler handler,
                                                   const std::optional<transport::TlsMaterial>& tls = {},
                                                   const Limits& limits = {});
  virtual ~HttpServer() = default;  // stops; answers that are under way are cut off
  // To dial: the port filled in, without "tls:".
  virtual const std::string& address() const = 0;
  // From now on for new connections. InvalidArgument: as start(), and everything stays as it is. Any thread.
  virtual Status renew(const transport::TlsMaterial& material) = 0;
  // Sends this to all followers. Any thread; returns at once.
  virtual void publish(const std::string& text) = 0;
  // Followers there are now. Any thread.
  virtual int followers() const = 0;
};

}  // namespace tuner::http
