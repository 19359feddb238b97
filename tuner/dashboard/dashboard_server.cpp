#include "tuner/dashboard/dashboard_server.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <mutex>
#include <utility>

#include "tuner/dashboard/dashboard.h"
#include "tuner/dashboard/news.h"
#include "tuner/http/http_server.h"
#include "tuner/identity/gatekeeper.h"
#include "tuner/identity/register.h"

namespace tuner::dashboard {
namespace {

constexpr http::Limits kLimits{.connections = 256,
                               .head_bytes = 8 << 10,
                               .body_bytes = 1 << 20,
                               .deadline = std::chrono::milliseconds(10'000),
                               .makes_room = true,
                               .slow_threads = 2,
                               .followers = 64};
constexpr std::string_view kBearer = "Bearer ";

// One token, for `tuner dashboard`.
Visitor holder_of(const std::string& mark, bool may_change, const http::Request& request) {
  const std::string& shown = request.authorization;
  // By its hash, so how long it takes to compare tells nothing.
  const bool holds = shown.starts_with(kBearer) && identity::mark_of(shown.substr(kBearer.size())) == mark;
  Visitor visitor{.reads = holds, .changes = holds && may_change};
  if (!holds)
    visitor.why_not_read = "the token is missing or wrong: open the link that tuner dashboard printed";
  if (!visitor.changes) visitor.why_not_change = holds ? "this page only reads" : visitor.why_not_read;
  if (holds) visitor.refused_status = 403;
  return visitor;
}

// As for each other call of a daemon.
Visitor caller_of(identity::Gatekeeper& gatekeeper, const http::Request& request) {
  identity::Refusal refusal;
  const std::optional<identity::Caller> caller =
      gatekeeper.caller(request.peer, request.authorization, refusal);
  constexpr char kHow[] =
      ". The farm's administrator makes tokens: tuner admin token NAME --roles submit,query";
  if (!caller) return {.why_not_read = refusal.why + kHow, .why_not_change = refusal.why + kHow};
  Visitor visitor{.reads = caller->roles.allow(identity::Role::kQuery), .refused_status = 403};
  visitor.tenant = caller->tenant;
  if (!visitor.reads)
    visitor.why_not_read = str(caller->name, " may ", identity::roles_text(caller->roles),
                               "; reading needs a token with the role query", kHow);
  // A page of another user of this machine reaches a plain port as the local user does; a token it has not.
  if (!request.authorization.starts_with(kBearer))
    visitor.why_not_change = str("changes need a token with the role submit, found none", kHow);
  else if (!caller->roles.allow(identity::Role::kSubmit))
    visitor.why_not_change = str(caller->name, " may ", identity::roles_text(caller->roles),
                                 "; changes need a token with the role submit", kHow);
  else if (caller->tenant && !caller->tenant->empty())
    visitor.why_not_change =
        "jobs of a tenant are not changed here. Use tuner submit and tuner cancel with --daemon FILE";
  else
    visitor.changes = true;
  return visitor;
}

class Served final : public DashboardServer {
 public:
  Status start(const DashboardServerOptions& options, const std::shared_ptr<FactSource>& facts) {
    const bool tls = options.address.starts_with("tls:");
    const bool by_identity = options.access == DashboardServerOptions::Access::kIdentity;
    RETURN_IF_ERROR(check(options));
    token_ = options.token;
    status_pages_ = options.status_pages;
    gatekeeper_.emplace(options.identity, [] { return static_cast<int64_t>(std::time(nullptr)); });
    DashboardParts parts{.facts = facts, .beside = options.beside, .page = PageFiles::of_this_program()};
    has_page_ = parts.page.is_built();
    if (by_identity)
      parts.visitor = [this](const http::Request& request) { return caller_of(*gatekeeper_, request); };
    else
      parts.visitor = [mark = identity::mark_of(options.token), may_change = options.may_change](
                          const http::Request& request) { return holder_of(mark, may_change, request); };
    std::optional<transport::TlsMaterial> material;
    if (tls) {
      ASSIGN_OR_RETURN(material, tls_material());
    }
    tls_ = tls;
    dashboard_ = std::make_unique<Dashboard>(std::move(parts));
    ASSIGN_OR_RETURN(server_,
                     http::HttpServer::start(
                         options.address, [this](const http::Request& request) { return answer(request); },
                         material, kLimits));
    {
      const std::lock_guard lock(mutex_);
      own_ = {.address = server_->address(), .tls = tls};
    }
    if (tls) gatekeeper_->on_change([this] { renew(); });
    news_ = std::make_unique<News>(*server_, facts);
    return Status::ok();
  }
  const std::string& address() const override { return server_->address(); }
  std::string link() const override {
    return str(tls_ ? "https://" : "http://", server_->address(), "/",
               token_.empty() ? "" : "#token=" + token_);
  }
  bool has_page() const override { return has_page_; }

 private:
  http::Reply answer(const http::Request& request) {
    const bool probe = request.path == "/healthz" || request.path == "/readyz";
    OwnAddress own;
    {
      const std::lock_guard lock(mutex_);
      own = own_;
    }
    if (!status_pages_ || (!probe && request.path != "/metrics")) return dashboard_->answer(request, own);
    // Probes call this host by whatever name; they are told one word.
    if (const Status allowed = check_request(request, own); !probe && !allowed)
      return {.status = 403, .body = allowed.message() + "\n"};
    // In plain text, on loopback, everybody on this machine may see all (tuner/daemon/status_page.h).
    return status_pages_(request, [this](const http::Request& asked) -> std::optional<http::Reply> {
      if (!tls_) return std::nullopt;
      const Visitor visitor = caller_of(*gatekeeper_, asked);
      if (visitor.reads) return std::nullopt;
      return http::Reply{.status = visitor.refused_status, .body = visitor.why_not_read + "\n"};
    });
  }
  Result<transport::TlsMaterial> tls_material() const {
    ASSIGN_OR_RETURN(identity::KeyAndCertificate daemon, gatekeeper_->daemon_certificate());
    ASSIGN_OR_RETURN(std::string authority, gatekeeper_->authority());
    return transport::TlsMaterial{std::move(daemon.certificate), std::move(daemon.key), std::move(authority)};
  }
  void renew() {
    const Result<transport::TlsMaterial> fresh = tls_material();
    const Status renewed = fresh ? server_->renew(*fresh) : fresh.status();
    if (!renewed)
      spdlog::error("dashboard: {}; new connections get the certificate of before", renewed.message());
  }

  std::string token_;
  bool tls_ = false, has_page_ = false;
  std::function<http::Reply(const http::Request&, const DashboardServerOptions::Refusal&)> status_pages_;
  std::optional<identity::Gatekeeper> gatekeeper_;
  mutable std::mutex mutex_;
  OwnAddress own_;  // known when the server listens
  std::unique_ptr<Dashboard> dashboard_;
  std::unique_ptr<http::HttpServer> server_;
  std::unique_ptr<News> news_;  // goes first
};

}  // namespace

Status DashboardServer::check(const DashboardServerOptions& options) {
  const bool tls = options.address.starts_with("tls:");
  if (options.access == DashboardServerOptions::Access::kToken && tls)
    return invalid_argument(
        "--http: found ", options.address,
        ", expected HOST:PORT: tuner dashboard serves this machine only. For other hosts: "
        "tuner serve --http tls:HOST:PORT");
  const size_t colon = std::min(options.address.rfind(':'), options.address.size());
  const std::string host = options.address.substr(0, colon);
  const std::string_view port =
      std::string_view(options.address).substr(std::min(colon + 1, options.address.size()));
  int number = -1;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool is_port =
      error == std::errc() && end == port.data() + port.size() && number >= 0 && number <= 65'535;
  const bool loopback = host == "127.0.0.1" || host == "localhost" || host == "[::1]";
  if (is_port && (tls || loopback)) return Status::ok();
  return invalid_argument(
      "--http: found ", options.address,
      ", expected 127.0.0.1:PORT, localhost:PORT or [::1]:PORT. Other hosts need TLS and tokens: "
      "tuner admin ca, then tuner serve --http tls:HOST:PORT");
}

Result<std::unique_ptr<DashboardServer>> DashboardServer::start(const DashboardServerOptions& options,
                                                                const std::shared_ptr<FactSource>& facts) {
  auto served = std::make_unique<Served>();
  RETURN_IF_ERROR(served->start(options, facts));
  return std::unique_ptr<DashboardServer>(std::move(served));
}

}  // namespace tuner::dashboard
