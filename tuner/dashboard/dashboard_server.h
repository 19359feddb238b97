// DashboardServer: the page on a socket, for `tuner dashboard` and `tuner serve --http`. With status
// pages, it serves /metrics, /healthz and /readyz, too.
//
// Who may do what:
//   kToken      `tuner dashboard`: one random token, in the link that it prints. Without it nothing is told.
//   kIdentity   `tuner serve`: as for every other call of the daemon (tuner/identity/gatekeeper.h). Reading
//               needs the role `query`, changes need `submit` and a token, on loopback too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/dashboard/fact_source.h"
#include "tuner/http/http_message.h"

namespace tuner::dashboard {

struct DashboardServerOptions {
  std::string address;  // HOST:PORT on loopback, or tls:HOST:PORT with an identity; port 0 takes a free one
  enum class Access : uint8_t { kToken, kIdentity } access = Access::kToken;
  std::string token;     // kToken
  std::string identity;  // kIdentity: the folder
  // kToken: changes are allowed, too: whoever started the command has the right to make them.
  bool may_change = true;
  std::shared_ptr<FactSource> beside = {};  // a second source, to be compared with (dashboard.h)
  // Answers /metrics, /healthz and /readyz, on the server's thread. `refusal` says why the caller may not see
  // what is for the role `query`; nothing: he may. Empty: there are no such pages.
  using Refusal = std::function<std::optional<http::Reply>(const http::Request&)>;
  std::function<http::Reply(const http::Request&, const Refusal& refusal)> status_pages = {};
};

class DashboardServer {
 public:
  // OK unless the address may not be served. InvalidArgument: it is not on loopback and has no TLS, or it
  // has TLS and there is only one token (kToken).
  static Status check(const DashboardServerOptions& options);
  // InvalidArgument: as check(). NotFound: TLS without an identity. Failed: somebody listens there.
  static Result<std::unique_ptr<DashboardServer>> start(const DashboardServerOptions& options,
                                                        const std::shared_ptr<FactSource>& facts);
  virtual ~DashboardServer() = default;  // stops
  virtual const std::string& address() const = 0;
  // "http://127.0.0.1:7071/", with the token behind '#', which a browser does not send.
  virtual std::string link() const = 0;
  virtual bool has_page() const = 0;
};

}  // namespace tuner::dashboard
