// Gatekeeper: who calls, and may he? Asked for each call that comes over the wire; any thread.
//
//   a Unix socket      the daemon's own user, and root, may everything. Others need a token.
//   TLS                a certificate that the farm's authority signed for a worker: that worker, and no
//                      other. Without one, a token.
//   TCP on loopback    without an identity folder: everything, for whoever has an account on this machine, as
//                      before. With one: a token.
//
// The folder is looked at again once a second, and before anybody who shows something is refused, so that a
// token or certificate that is given out or revoked counts while the daemon runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "tuner/identity/identity_folder.h"
#include "tuner/identity/roles.h"
#include "tuner/transport/peer.h"

namespace tuner::identity {

struct Caller {
  std::string name;  // for people: "the local user", "worker gpu1", "alice"
  Roles roles;
  std::string worker;  // the only worker it may be: this id, or one that begins with it and a dot; empty: any
  // Whose jobs it sees and makes; nothing: everybody's, and nobody's in particular.
  std::optional<std::string> tenant;

  bool may_be(std::string_view worker_id) const;
};

// Why a call is not answered, and what to do next.
struct Refusal {
  bool unknown = false;  // nobody knows who calls; else it is known, and may not
  std::string why;
  bool needs_token = false;  // what to do next is to get a token: how it is given depends on the way
  // In one line, for programs that take --daemon FILE.
  std::string text() const;
};

class Gatekeeper {
 public:
  using WallClock = std::function<int64_t()>;  // seconds since 1970

  // `folder`: where the identity lies, or will lie.
  Gatekeeper(std::string folder, WallClock clock);

  // Who calls, by the connection and by the call's own `authorization` ("Bearer TOKEN", or empty). Nothing
  // with `refusal` filled in: nobody that is let in.
  std::optional<Caller> caller(const transport::Peer& peer, std::string_view authorization, Refusal& refusal);
  // Whether the caller may make a call of the role table.
  static bool may(const Caller& caller, std::string_view method, Refusal& refusal);

  // The texts to listen with, as they are now. NotFound: there is no identity.
  Result<KeyAndCertificate> daemon_certificate() const;
  Result<std::string> authority() const;
  // What tenants may have.
  ShareByTenant shares() { return known(Look::kOnceASecond)->shares; }
  // Reads the files again if they have changed, once a second at most. Each call does so, too; but as long as
  // nobody gets in there is none.
  void look() { (void)known(Look::kOnceASecond); }
  // Called, by whichever thread finds out, when files have changed since the last look: to renew what is
  // listened with.
  void on_change(std::function<void()> tell);

 private:
  // What was read last. Values that calls share.
  struct Known {
    bool guarded = false;                              // there is an identity
    std::map<std::string, Entry, std::less<>> tokens;  // by mark
    std::set<std::string, std::less<>> revoked;        // serials
    std::set<std::string, std::less<>> given_out;      // serials
    ShareByTenant shares;
  };
  enum class Look : uint8_t { kOnceASecond, kNow };
  std::shared_ptr<const Known> known(Look look);
  std::optional<Caller> judge(const Known& known, const transport::Peer& peer, std::string_view authorization,
                              Refusal& refusal) const;
  std::shared_ptr<const Known> read() const;
  std::optional<Caller> by_token(const Known& known, std::string_view authorization, Refusal& refusal) const;
  std::optional<Caller> by_certificate(const Known& known, const transport::Peer& peer,
                                       Refusal& refusal) const;

  const std::string path_;
  const WallClock clock_;
  std::mutex mutex_;
  std::shared_ptr<const Known> known_;
  std::string stamp_;
  int64_t looked_s_ = 0;
  std::function<void()> tell_;
};

}  // namespace tuner::identity
