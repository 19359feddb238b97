// Clock: monotonic time of the daemon, injectable. Leases and rates are counted on it. (Wall time, for
// people: compiler_core/base/clock.h.)
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

}  // namespace tuner
