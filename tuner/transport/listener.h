// Listener: a listening socket for "unix:/path" or HOST:PORT.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::transport {

// Closes its descriptor, and removes the socket file it made, if that is still the one.
class Listener {
 public:
  Listener(int fd, std::string unix_path, bool tls = false);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  Listener& operator=(Listener&&) = delete;

  int fd() const { return fd_; }
  bool is_tcp() const { return unix_path_.empty(); }
  bool is_tls() const { return tls_; }

 private:
  int fd_;
  std::string unix_path_;  // "" for TCP
  bool tls_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// The sockets of one address (a name may stand for several), and the address to dial.
struct Listening {
  std::vector<Listener> listeners;
  std::string address;  // to dial: as asked for, without "tls:", a port 0 filled in
  bool tls = false;
};

// Listens on "unix:/path" or HOST:PORT ("[::1]:0", "localhost:7070"; port 0: a free one); with "tls:" before
// it, on HOST:PORT for clients that speak TLS. Sockets do not block. A socket file that nobody listens on is
// replaced. Fails if another process listens there, or the name or path is wrong; says which.
Result<Listening> listen_on(const std::string& address);

}  // namespace tuner::transport
