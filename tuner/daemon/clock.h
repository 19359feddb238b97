// Clock: monotonic time of the daemon, injectable. Leases and rates are counted on it; wall time is for
// display only.
#pragma once

#include <chrono>
#include <cstdint>

namespace tuner {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ms() const = 0;  // never goes back; its zero means nothing
};

class SteadyClock final : public Clock {
 public:
  int64_t now_ms() const override {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
  }
};

// Unix time in microseconds, for people.
inline int64_t wall_time_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace tuner
