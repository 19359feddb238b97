// Status pages: what a monitor asks a daemon for. A handler of tuner/http; who serves it: status_server.h.
//
//   /healthz   200 as long as the process answers
//   /readyz    200 or 503, and why
//   /metrics   counters as Prometheus reads them
//
// In plain text, on loopback, everybody on this machine may see all. By TLS, /metrics asks for the role
// `query`, and who has it not is told by /readyz only whether, not why.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tuner/daemon/health.h"
#include "tuner/http/http_message.h"

namespace tuner {

struct StatusPages {
  std::function<std::string()> metrics;
  std::function<Readiness()> ready;
  // Why the caller may not see what is for the role `query`; nothing: he may. Empty: everybody may.
  std::function<std::optional<http::Reply>(const http::Request&)> refusal = {};
};

// The answer to any request: 404 for other paths, 405 for what is neither GET nor HEAD.
http::Reply answer_status(const http::Request& request, const StatusPages& pages);

}  // namespace tuner
