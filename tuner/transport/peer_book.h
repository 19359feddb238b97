// PeerBook: which connection belongs to whom, by the name that the server behind sees as its peer.
//
// The gate's end of each socketpair is bound to a name of its own in the abstract namespace; getpeername() of
// the server's end returns it, and gRPC tells it to each call (ServerContext::peer). Nobody listens under the
// name, and nobody can foretell it.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tuner/transport/peer.h"

namespace tuner::transport {

class PeerBook {
 public:
  // Binds the socket to a new name, and enters the peer under it. Returns the name; empty if the system
  // refuses.
  std::string enter(int fd, Peer peer);
  void leave(const std::string& name);
  // Nothing: no such connection, or not any more. Any thread.
  std::optional<Peer> find(std::string_view name) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Peer> peers_;
};

}  // namespace tuner::transport
