// ServiceManager: tells the service manager that started this daemon (systemd, Type=notify) how it is.
// Without one, nothing happens.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace tuner {

class ServiceManager {
 public:
  ServiceManager();  // reads $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and removes them

  // "READY=1", "STOPPING=1", "STATUS=..."; a line each.
  void tell(std::string_view text) const;
  // Call often while the daemon lives: tells the watchdog three times per limit.
  void alive();

 private:
  std::string socket_;                  // empty: nobody is to be told
  std::chrono::microseconds every_{0};  // 0: nobody watches
  std::chrono::steady_clock::time_point next_;
};

}  // namespace tuner
