#include "tuner/transport/inherited.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

namespace tuner::transport {
namespace {

constexpr int kFirstInherited = 3;  // sd_listen_fds(3)
constexpr int kMostInherited = 64;

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  int value = 0;
  if (text == nullptr) return 0;
  const std::string_view digits(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
}

// Those that are meant for this process, not for one that it was started by.
std::vector<int> inherited() {
  std::vector<int> fds;
  if (number_in("LISTEN_PID") != getpid()) return fds;
  const int count = number_in("LISTEN_FDS");
  for (int fd = kFirstInherited; count <= kMostInherited && fd < kFirstInherited + count; ++fd) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fds.push_back(fd);
  }
  return fds;
}

bool same_address(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    const auto *x = reinterpret_cast<const sockaddr_in*>(a), *y = reinterpret_cast<const sockaddr_in*>(b);
    return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
  }
  if (a->sa_family != AF_INET6) return false;
  const auto *x = reinterpret_cast<const sockaddr_in6*>(a), *y = reinterpret_cast<const sockaddr_in6*>(b);
  return x->sin6_port == y->sin6_port && std::memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
}

bool listens(int fd) {
  int on = 0;
  socklen_t size = sizeof on;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &size) == 0 && on != 0;
}

}  // namespace

int take_inherited(const sockaddr* address) {
  static std::mutex mutex;
  static std::vector<int> fds = inherited();
  const std::lock_guard lock(mutex);
  for (auto fd = fds.begin(); fd != fds.end(); ++fd) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    if (getsockname(*fd, reinterpret_cast<sockaddr*>(&name), &size) != 0 || !listens(*fd) ||
        !same_address(reinterpret_cast<const sockaddr*>(&name), address))
      continue;
    const int taken = *fd;
    fds.erase(fd);
    fcntl(taken, F_SETFL, fcntl(taken, F_GETFL) | O_NONBLOCK);
    return taken;
  }
  return -1;
}

}  // namespace tuner::transport
