#include "tuner/transport/peer_book.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner::transport {
namespace {

// A name that nobody can guess: others on this machine see the names that are taken, and could take the next
// ones.
std::string new_name() {
  uint64_t random = 0;
  return getrandom(&random, sizeof random, 0) == sizeof random ? str("tuner-gate-", std::hex, random) : "";
}

}  // namespace

std::string PeerBook::enter(int fd, Peer peer) {
  std::string name = new_name();
  if (name.empty()) return "";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0) return "";
  const std::lock_guard lock(mutex_);
  peers_.emplace(name, std::move(peer));
  return name;
}

void PeerBook::leave(const std::string& name) {
  const std::lock_guard lock(mutex_);
  peers_.erase(name);
}

std::optional<Peer> PeerBook::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = peers_.find(std::string(name));
  return it == peers_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace tuner::transport
