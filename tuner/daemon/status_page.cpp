#include "tuner/daemon/status_page.h"

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kMetrics[] = "text/plain; version=0.0.4; charset=utf-8";

std::string answer(std::string_view status, std::string_view type, std::string_view body,
                   bool with_body = true) {
  return str("HTTP/1.0 ", status, "\r\nContent-Type: ", type, "\r\nContent-Length: ", body.size(),
             status.starts_with("405") ? "\r\nAllow: GET, HEAD" : "",
             "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n", with_body ? body : "");
}

// The word up to the next blank; `line` then begins behind it.
std::string_view take_word(std::string_view& line) {
  const size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line = end == std::string_view::npos ? "" : line.substr(end + 1);
  return word;
}

}  // namespace

bool request_is_complete(std::string_view received) {
  return received.find("\r\n\r\n") != std::string_view::npos ||
         received.find("\n\n") != std::string_view::npos;
}

std::string answer_request(std::string_view head, const StatusPages& pages) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::string_view method = take_word(line), target = take_word(line);
  const bool known_version = line == "HTTP/1.0" || line == "HTTP/1.1";
  if (method.empty() || !target.starts_with('/') || !known_version)
    return answer("400 Bad Request", kText, "expected: GET /metrics HTTP/1.0\n");
  if (method != "GET" && method != "HEAD")
    return answer("405 Method Not Allowed", kText, "only GET and HEAD are answered\n");
  const bool body = method == "GET";
  const std::string_view path = target.substr(0, target.find('?'));
  if (path == "/metrics") return answer("200 OK", kMetrics, pages.metrics(), body);
  if (path == "/healthz") return answer("200 OK", kText, "ok\n", body);
  if (path == "/readyz") {
    const Readiness ready = pages.ready();
    return answer(ready.ready ? "200 OK" : "503 Service Unavailable", kText,
                  ready.ready ? "ready\n" : "not ready: " + ready.reason + "\n", body);
  }
  return answer("404 Not Found", kText, "here are /metrics, /healthz and /readyz\n", body);
}

}  // namespace tuner
