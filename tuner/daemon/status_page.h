// Status pages: the little HTTP that a monitor needs, as text in and text out. No sockets: status_server.h.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tuner/daemon/health.h"

namespace tuner {

inline constexpr size_t kMostRequestBytes = 8 << 10;

// What the pages tell. Called from the server's thread.
struct StatusPages {
  std::function<std::string()> metrics;
  std::function<Readiness()> ready;
};

// Whether the head of a request (up to its empty line) is complete. No more is read of it: its body, if any,
// is of no interest.
bool request_is_complete(std::string_view received);

// The answer to a request's head, whatever its bytes are. GET and HEAD of /metrics, /healthz and /readyz; 404
// for other paths, 405 for other methods, 400 for what is no HTTP/1. The connection is to be closed after it.
std::string answer_request(std::string_view head, const StatusPages& pages);

}  // namespace tuner
