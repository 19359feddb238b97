// Door: who makes a call, and whether it is answered. Between the gate, which knows whose connection it is,
// the gatekeeper, who knows what that one may do, and the calls.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tuner/identity/gatekeeper.h"
#include "tuner/transport/peer.h"

namespace tuner {

class Door {
 public:
  using FindPeer = std::function<std::optional<transport::Peer>(std::string_view name)>;

  // `gatekeeper` outlives this. `find_peer`: Gate::peer.
  Door(identity::Gatekeeper& gatekeeper, FindPeer find_peer)
      : gatekeeper_(gatekeeper), find_peer_(std::move(find_peer)) {}

  // OK with `caller` filled in, or what the call is answered: UNAUTHENTICATED (nobody knows who calls) or
  // PERMISSION_DENIED (it is known, and may not), with one line. `method` is one of the role table.
  grpc::Status admit(const grpc::ServerContextBase& context, std::string_view method,
                     identity::Caller& caller);

  // A session belongs to the caller it was given to, however somebody else came to know it.
  //
  // Before a registration: whether the caller may be that worker.
  static grpc::Status may_register(const identity::Caller& caller, const std::string& worker_id);
  // After it.
  void remember(const identity::Caller& caller, const std::string& session);
  // Before a Sync.
  grpc::Status may_use(const identity::Caller& caller, const std::string& session);

 private:
  identity::Gatekeeper& gatekeeper_;
  const FindPeer find_peer_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> owners_;  // session -> name of its worker
  std::deque<std::string> sessions_;                     // oldest first
};

}  // namespace tuner
