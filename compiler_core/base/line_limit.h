// LineLimit: keeps a log line that may repeat in a loop from filling the disk. The first line is printed at
// once, later ones at most every 30 s (`every`), with the number of lines that were left out before. Lines
// behind the last printed one are counted nowhere. Keep one object, a member, for each place that prints; any
// thread may use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner {

class LineLimit {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LineLimit(Clock::duration every = std::chrono::seconds(30)) : every_(every) {}

  // Asks whether to print the line now. Yes: what to append to it, "" or " (and 17 lines like it before)".
  // nullopt: do not print it.
  [[nodiscard]] std::optional<std::string> say(Clock::time_point now = Clock::now()) {
    std::lock_guard lock(mutex_);
    if (said_ && now - *said_ < every_) {
      ++left_out_;
      return std::nullopt;
    }
    said_ = now;
    const int64_t n = std::exchange(left_out_, 0);
    if (n == 0) return "";
    return str(" (and ", n, n == 1 ? " line like it" : " lines like it", " before)");
  }

 private:
  const Clock::duration every_;
  std::mutex mutex_;
  std::optional<Clock::time_point> said_;
  int64_t left_out_ = 0;
};

}  // namespace tuner
