#include "tuner/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace tuner {
namespace {

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  unsetenv(name);  // it is not for programs that this one starts
  return text;
}

}  // namespace

ServiceManager::ServiceManager() : socket_(take_variable("NOTIFY_SOCKET")) {
  const std::string limit = take_variable("WATCHDOG_USEC"), pid = take_variable("WATCHDOG_PID");
  if (pid.empty() || std::atoll(pid.c_str()) == getpid())
    every_ = std::chrono::microseconds(std::atoll(limit.c_str()) / 3);
}

void ServiceManager::tell(std::string_view text) const {
  sockaddr_un name{};
  if (socket_.empty() || socket_.size() >= sizeof name.sun_path) return;
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, socket_.data(), socket_.size());
  if (name.sun_path[0] == '@') name.sun_path[0] = '\0';  // abstract
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  (void)sendto(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&name),
               size);
  close(fd);
}

void ServiceManager::alive() {
  const auto now = std::chrono::steady_clock::now();
  if (every_.count() <= 0 || now < next_) return;
  next_ = now + every_;
  tell("WATCHDOG=1");
}

}  // namespace tuner
