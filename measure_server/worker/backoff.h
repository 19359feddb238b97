// Backoff: how long to wait before the next try. The limit doubles with each failure; the pause is drawn
// evenly below it (full jitter), so that a thousand workers of one daemon do not come back at one moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace tuner {

class Backoff {
 public:
  struct Options {
    int64_t start_ms = 100, cap_ms = 10'000;
  };
  // `random`: draws a number in [0, 1).
  Backoff(Options options, std::function<double()> random)
      : options_(options), random_(std::move(random)), limit_ms_(options.start_ms) {}

  // Returns the next pause, from 1 ms to the limit.
  int64_t next_ms() {
    const int64_t limit = limit_ms_;
    limit_ms_ = std::min(limit_ms_ * 2, options_.cap_ms);
    return std::clamp<int64_t>(static_cast<int64_t>(random_() * static_cast<double>(limit)) + 1, 1, limit);
  }
  void reset() { limit_ms_ = options_.start_ms; }

 private:
  const Options options_;
  const std::function<double()> random_;
  int64_t limit_ms_;
};

// Draws numbers in [0, 1), from a seed of the system's.
std::function<double()> random_fraction();

}  // namespace tuner
