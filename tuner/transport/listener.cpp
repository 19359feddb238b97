#include "tuner/transport/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "tuner/transport/inherited.h"

namespace tuner::transport {
namespace {

// How many new connections the kernel holds until the gate takes them: a farm that comes back at once.
constexpr int kBacklog = 1024;
// Tries to find a free port for all addresses of a name.
constexpr int kPortTries = 8;

Status listen_failed(const std::string& address, int error) {
  if (error == EADDRINUSE)
    return failed("listen ", address, ": another process listens there. Stop it, or choose another address");
  return failed("listen ", address, ": ", std::strerror(error));
}

// Whether somebody accepts connections on this socket file.
bool is_served(const sockaddr_un& name) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;  // not known: do not remove it
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 && errno == ECONNREFUSED;
  close(fd);
  return !refused;
}

Result<Listening> listen_unix(const std::string& address, const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof name.sun_path)
    return invalid_argument("listen ", address, ": the path has ", path.size(),
                            " bytes, a socket's has 1 to ", sizeof name.sun_path - 1);
  std::memcpy(name.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return listen_failed(address, errno);
  const auto bound = [&] { return bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0; };
  bool done = bound();
  if (!done && errno == EADDRINUSE) {
    struct stat info {};
    if (lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
      close(fd);
      return failed(
          "listen ", address,
          ": expected no file or a socket, found something else. Remove it, or choose another path");
    }
    if (is_served(name)) {
      close(fd);
      return listen_failed(address, EADDRINUSE);
    }
    unlink(path.c_str());  // left by a process that was killed
    done = bound();
  }
  if (!done) {
    const int error = errno;
    close(fd);
    return listen_failed(address, error);
  }
  Listening listening{{}, address};
  listening.listeners.emplace_back(fd, path);
  if (listen(fd, kBacklog) != 0) return listen_failed(address, errno);
  return listening;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

void set_port(sockaddr* name, uint16_t port) {
  if (name->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(name)->sin_port = htons(port);
  if (name->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(name)->sin6_port = htons(port);
}

uint16_t port_of(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

// Returns 0 or the error. SO_REUSEADDR: connections of an earlier daemon that linger do not keep the port. No
// SO_REUSEPORT: two daemons would share it.
int listen_tcp(const addrinfo& entry, bool tls, std::vector<Listener>& listeners) {
  if (const int given = take_inherited(entry.ai_addr); given >= 0) {
    listeners.emplace_back(given, "", tls);
    return 0;
  }
  const int fd = socket(entry.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  Listener listener(fd, "", tls);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (entry.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd, entry.ai_addr, entry.ai_addrlen) != 0 || listen(fd, kBacklog) != 0) return errno;
  listeners.push_back(std::move(listener));
  return 0;
}

// One try: listens on all addresses of the list, on one port. An address this machine does not have (::1
// without IPv6) is left out as long as there is another one. Returns 0 or the error.
int listen_all(addrinfo* list, uint16_t port, bool tls, std::vector<Listener>& listeners) {
  int left_out = EADDRNOTAVAIL;
  for (addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    bool twice = false;  // /etc/hosts may name an address twice
    for (addrinfo* earlier = list; earlier != entry; earlier = earlier->ai_next) {
      set_port(earlier->ai_addr, port);
      set_port(entry->ai_addr, port);
      twice = twice || (earlier->ai_addrlen == entry->ai_addrlen &&
                        std::memcmp(earlier->ai_addr, entry->ai_addr, entry->ai_addrlen) == 0);
    }
    if (twice) continue;
    set_port(entry->ai_addr, port);
    const int error = listen_tcp(*entry, tls, listeners);
    if (error != 0 && error != EADDRNOTAVAIL && error != EAFNOSUPPORT) return error;
    if (error != 0)
      left_out = error;
    else if (port == 0)
      port = port_of(listeners.back().fd());
  }
  return listeners.empty() ? left_out : 0;
}

Result<Listening> listen_host(const std::string& address, bool tls) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size() ||
      address.find_first_not_of("0123456789", colon + 1) != std::string::npos || address.size() - colon > 6 ||
      std::stoi(address.substr(colon + 1)) > 65535)
    return invalid_argument("listen ", address,
                            ": expected HOST:PORT, tls:HOST:PORT or unix:/path, as 127.0.0.1:7070");
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(colon + 1)));
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0)
    return invalid_argument("listen ", address, ": the host is not known: ", gai_strerror(error));
  const Addresses list(found);
  int error = 0;
  for (int i = 0; i < kPortTries; ++i) {
    Listening listening{.tls = tls};
    error = listen_all(list.get(), port, tls, listening.listeners);
    if (error == 0) {
      listening.address = str(address.substr(0, colon + 1), port_of(listening.listeners.front().fd()));
      return listening;
    }
    if (port != 0 || error != EADDRINUSE) break;
  }
  return listen_failed(address, error);
}

}  // namespace

Listener::Listener(int fd, std::string unix_path, bool tls)
    : fd_(fd), unix_path_(std::move(unix_path)), tls_(tls) {
  struct stat info {};
  if (unix_path_.empty() || lstat(unix_path_.c_str(), &info) != 0) return;
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      unix_path_(std::move(other.unix_path_)),
      tls_(other.tls_),
      device_(other.device_),
      inode_(other.inode_) {}

Listener::~Listener() {
  if (fd_ < 0) return;
  struct stat info {};
  if (!unix_path_.empty() && lstat(unix_path_.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_)
    unlink(unix_path_.c_str());
  close(fd_);
}

Result<Listening> listen_on(const std::string& address) {
  if (address.starts_with("unix:")) return listen_unix(address, address.substr(5));
  const bool tls = address.starts_with("tls:");
  return listen_host(tls ? address.substr(4) : address, tls);
}

}  // namespace tuner::transport
