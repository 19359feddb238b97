#include "tuner/dashboard/request_check.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "compiler_core/base/printable.h"

namespace tuner::dashboard {
namespace {

constexpr size_t kLongestHost = 262;  // a name of 255 characters, and a port

std::string shown(const std::string& text) { return printable(std::string_view(text).substr(0, 80)); }

bool is_host(const std::string& text) {
  return !text.empty() && text.size() <= kLongestHost && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view(".-:[]_").find(c) != std::string_view::npos;
  });
}

bool is_own_host(const std::string& host, const OwnAddress& own) {
  if (host == own.address) return true;
  if (own.tls) return is_host(host);
  const std::string port = own.address.substr(own.address.rfind(':'));
  const std::array<std::string, 3> names{"127.0.0.1" + port, "localhost" + port, "[::1]" + port};
  return std::ranges::find(names, host) != names.end();
}

}  // namespace

Status check_request(const http::Request& request, const OwnAddress& own) {
  if (!is_own_host(request.host, own))
    return invalid_argument("Host: found \"", shown(request.host), "\", expected ", own.address,
                            ". Open the page by that address");
  const std::string origin = (own.tls ? "https://" : "http://") + request.host;
  if (!request.origin.empty() && request.origin != origin)
    return invalid_argument("Origin: found \"", shown(request.origin), "\", expected ", origin,
                            ". Requests of other pages are refused");
  const std::string& site = request.fetch_site;
  // A link on another page may lead here; that page never sees what comes.
  const bool is_link = request.method == "GET" && request.path == "/";
  if (!site.empty() && site != "same-origin" && site != "none" && !is_link)
    return invalid_argument("Sec-Fetch-Site: found \"", shown(site),
                            "\", expected same-origin. Requests of other pages are refused");
  return Status::ok();
}

}  // namespace tuner::dashboard
