#include "tuner/daemon/status_page.h"

#include "compiler_core/base/status.h"

namespace tuner {

http::Reply answer_status(const http::Request& request, const StatusPages& pages) {
  if (request.method != "GET" && request.method != "HEAD")
    return {.status = 405, .body = "only GET and HEAD are answered\n", .headers = {{"Allow", "GET, HEAD"}}};
  const auto refusal = [&] { return pages.refusal ? pages.refusal(request) : std::nullopt; };
  if (request.path == "/healthz") return {.body = "ok\n"};
  if (request.path == "/metrics") {
    if (std::optional<http::Reply> refused = refusal()) return *std::move(refused);
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = pages.metrics()};
  }
  if (request.path == "/readyz") {
    const Readiness ready = pages.ready();
    if (ready.ready) return {.body = "ready\n"};
    return {.status = 503, .body = refusal() ? "not ready\n" : str("not ready: ", ready.reason, "\n")};
  }
  return {.status = 404, .body = "here are /metrics, /healthz and /readyz\n"};
}

}  // namespace tuner
