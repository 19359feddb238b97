#include "tuner/daemon/status_server.h"

#include <spdlog/spdlog.h>

#include <ctime>
#include <optional>
#include <utility>

#include "tuner/daemon/identity_watch.h"
#include "tuner/http/http_server.h"
#include "tuner/identity/gatekeeper.h"

namespace tuner {
namespace {

constexpr http::Limits kLimits{.connections = 16};
constexpr char kHowATokenIsGiven[] =
    ": ask the farm's administrator for a token (tuner admin token --roles query), and give it as the header "
    "Authorization: Bearer TOKEN\n";

// What a caller is told who may not see it; nothing: he may.
std::optional<http::Reply> refusal_of(identity::Gatekeeper& gatekeeper, const http::Request& request) {
  identity::Refusal refusal;
  const std::optional<identity::Caller> caller =
      gatekeeper.caller(request.peer, request.authorization, refusal);
  if (!caller)
    return http::Reply{.status = 401,
                       .body = refusal.why + kHowATokenIsGiven,
                       .headers = {{"WWW-Authenticate", "Bearer realm=\"tuner\""}}};
  if (caller->roles.allow(identity::Role::kQuery)) return std::nullopt;
  return http::Reply{.status = 403,
                     .body = str(caller->name, " may ", identity::roles_text(caller->roles),
                                 ": expected a token with the role query (`tuner admin token`)\n")};
}

class Pages final : public StatusServer {
 public:
  explicit Pages(const std::string& identity)
      : gatekeeper_(identity, [] { return static_cast<int64_t>(std::time(nullptr)); }) {}

  Status start(const std::string& address, StatusPages pages, bool warns) {
    std::optional<transport::TlsMaterial> tls;
    if (address.starts_with("tls:")) {
      ASSIGN_OR_RETURN(tls, material());
      pages.refusal = [this](const http::Request& request) { return refusal_of(gatekeeper_, request); };
    }
    const bool follows = tls.has_value();
    ASSIGN_OR_RETURN(server_, http::HttpServer::start(
                                  address,
                                  [pages = std::move(pages)](const http::Request& request) {
                                    return answer_status(request, pages);
                                  },
                                  tls, kLimits));
    if (!follows) return Status::ok();
    gatekeeper_.on_change([this] { renew(); });
    watch_.emplace(gatekeeper_, warns);
    return Status::ok();
  }
  const std::string& address() const override { return server_->address(); }

 private:
  Result<transport::TlsMaterial> material() const {
    ASSIGN_OR_RETURN(identity::KeyAndCertificate daemon, gatekeeper_.daemon_certificate());
    ASSIGN_OR_RETURN(std::string authority, gatekeeper_.authority());
    return transport::TlsMaterial{std::move(daemon.certificate), std::move(daemon.key), std::move(authority)};
  }
  void renew() {
    const Result<transport::TlsMaterial> fresh = material();
    const Status renewed = fresh ? server_->renew(*fresh) : fresh.status();
    if (!renewed)
      spdlog::error("metrics: {}; new connections get the certificate of before", renewed.message());
  }

  identity::Gatekeeper gatekeeper_;
  std::unique_ptr<http::HttpServer> server_;
  std::optional<IdentityWatch> watch_;  // goes first
};

}  // namespace

Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& address, StatusPages pages,
                                                          const std::string& identity, bool warns) {
  auto made = std::make_unique<Pages>(identity);
  RETURN_IF_ERROR(made->start(address, std::move(pages), warns));
  return std::unique_ptr<StatusServer>(std::move(made));
}

}  // namespace tuner
