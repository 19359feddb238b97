#include "tuner/identity/gatekeeper.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

namespace tuner::identity {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr char kAsk[] =
    "ask the farm's administrator for credentials (tuner admin token), and give them as --daemon FILE";

Caller local_user() { return {.name = "the local user", .roles = Roles::all()}; }

}  // namespace

std::string Refusal::text() const { return needs_token ? str(why, ": ", kAsk) : why; }

bool Caller::may_be(std::string_view worker_id) const {
  if (worker.empty() || worker_id == worker) return true;
  return worker_id.starts_with(worker) && worker_id[worker.size()] == '.';
}

Gatekeeper::Gatekeeper(std::string folder, WallClock clock)
    : path_(std::move(folder)), clock_(std::move(clock)) {
  stamp_ = "never read";
}

std::optional<Caller> Gatekeeper::caller(const transport::Peer& peer, std::string_view authorization,
                                         Refusal& refusal) {
  const std::shared_ptr<const Known> known = this->known(Look::kOnceASecond);
  std::optional<Caller> found = judge(*known, peer, authorization, refusal);
  if (found || (authorization.empty() && peer.serial.empty())) return found;
  // What was given out in this second counts, too.
  const std::shared_ptr<const Known> fresh = this->known(Look::kNow);
  if (fresh == known) return std::nullopt;
  refusal = {};
  return judge(*fresh, peer, authorization, refusal);
}

std::optional<Caller> Gatekeeper::judge(const Known& known, const transport::Peer& peer,
                                        std::string_view authorization, Refusal& refusal) const {
  using Way = transport::Peer::Way;
  if (peer.way == Way::kUnix && (peer.uid == geteuid() || peer.uid == 0)) return local_user();
  if (!authorization.empty()) return by_token(known, authorization, refusal);
  if (peer.way == Way::kTls && !peer.serial.empty()) return by_certificate(known, peer, refusal);
  if (peer.way == Way::kPlain && !known.guarded) return local_user();
  refusal = {true,
             peer.way == Way::kUnix ? str("user ", peer.uid, " is not the daemon's")
                                    : "this daemon answers nobody it does not know",
             true};
  return std::nullopt;
}

std::optional<Caller> Gatekeeper::by_token(const Known& known, std::string_view authorization,
                                           Refusal& refusal) const {
  const auto found = authorization.starts_with(kBearer)
                         ? known.tokens.find(mark_of(authorization.substr(kBearer.size())))
                         : known.tokens.end();
  if (found == known.tokens.end()) {
    refusal = {true, "the token is not known here", true};
    return std::nullopt;
  }
  const Entry& entry = found->second;
  if (entry.revoked || clock_() >= entry.until_s) {
    refusal = {true,
               str("the token of ", entry.name,
                   entry.revoked ? " was revoked" : " ended " + date_text(entry.until_s)),
               true};
    return std::nullopt;
  }
  Caller caller{.name = entry.name, .roles = entry.roles};
  if (entry.roles.has(Role::kWork)) caller.worker = entry.name;
  if (!entry.roles.has(Role::kAdmin)) caller.tenant = entry.tenant;
  return caller;
}

std::optional<Caller> Gatekeeper::by_certificate(const Known& known, const transport::Peer& peer,
                                                 Refusal& refusal) const {
  constexpr std::string_view kPrefix = kWorkerUri;
  const auto refused = [&](const std::string& why) {
    refusal = {true, why + ": `tuner admin worker` on the daemon's host makes a new one"};
    return std::nullopt;
  };
  if (!peer.certificate_fault.empty())
    return refused("the certificate is not one of this farm's, or not good any more (" +
                   peer.certificate_fault + ")");
  if (!peer.certificate.starts_with(kPrefix)) return refused("the certificate is not a worker's");
  const std::string name = peer.certificate.substr(kPrefix.size());
  if (known.revoked.contains(peer.serial))
    return refused("the certificate of worker " + name + " was revoked");
  if (!known.given_out.contains(peer.serial))
    return refused("the certificate of worker " + name + " is not in this daemon's register");
  if (clock_() >= peer.not_after_s)
    return refused("the certificate of worker " + name + " ended " + date_text(peer.not_after_s));
  return Caller{.name = "worker " + name, .roles = Role::kWork, .worker = name};
}

bool Gatekeeper::may(const Caller& caller, std::string_view method, Refusal& refusal) {
  const Role role = role_of(method);
  if (caller.roles.allow(role)) return true;
  refusal = {false, str(caller.name, " may ", roles_text(caller.roles), "; ",
                        method.substr(method.rfind('/') + 1), " needs the role ", role_name(role))};
  return false;
}

std::shared_ptr<const Gatekeeper::Known> Gatekeeper::known(Look look) {
  std::function<void()> tell;
  std::shared_ptr<const Known> now;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now_s = clock_();
    if (known_ != nullptr && now_s == looked_s_ && look == Look::kOnceASecond) return known_;
    looked_s_ = now_s;
    const Result<IdentityFolder> folder = IdentityFolder::open(path_);
    std::string stamp = folder ? folder->stamp() : "";
    if (known_ != nullptr && stamp == stamp_) return known_;
    const bool first = known_ == nullptr;
    stamp_ = std::move(stamp);  // what cannot be read is read again when it has changed
    if (std::shared_ptr<const Known> fresh = read()) {
      known_ = std::move(fresh);
      if (!first) tell = tell_;
    }
    now = known_;
  }
  if (tell) tell();
  return now;
}

// Null: what was known before still counts, because the files cannot be read, or are gone: a farm that knew
// its callers does not open to everybody because a disk is not there. An identity of which nothing could be
// read yet lets in nobody.
std::shared_ptr<const Gatekeeper::Known> Gatekeeper::read() const {
  auto fresh = std::make_shared<Known>();
  const bool was_guarded = known_ != nullptr && known_->guarded;
  const Result<IdentityFolder> folder = IdentityFolder::open(path_);
  if (!folder && folder.status().code() == StatusCode::kNotFound && !was_guarded) return fresh;
  Result<Register> entries = folder ? folder->entries() : Result<Register>(folder.status());
  fresh->guarded = true;
  if (!entries) {
    spdlog::error(
        "identity: {}; {}", entries.message(),
        was_guarded ? "what was known of it still counts" : "until it can be read nobody is let in");
    return was_guarded ? nullptr : fresh;
  }
  fresh->shares = std::move(entries->shares);
  for (Entry& e : entries->entries) {
    if (e.kind == Entry::Kind::kWorker) {
      fresh->given_out.insert(e.mark);
      if (e.revoked) fresh->revoked.insert(e.mark);
    } else {
      std::string mark = e.mark;
      fresh->tokens.emplace(std::move(mark), std::move(e));
    }
  }
  return fresh;
}

Result<KeyAndCertificate> Gatekeeper::daemon_certificate() const {
  ASSIGN_OR_RETURN(const IdentityFolder folder, IdentityFolder::open(path_));
  return folder.daemon();
}

Result<std::string> Gatekeeper::authority() const {
  ASSIGN_OR_RETURN(const IdentityFolder folder, IdentityFolder::open(path_));
  return folder.authority();
}

void Gatekeeper::on_change(std::function<void()> tell) {
  const std::lock_guard lock(mutex_);
  tell_ = std::move(tell);
}

}  // namespace tuner::identity
