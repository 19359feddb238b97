// Stopwatch: how long something took, by a clock that never goes back. It runs from its beginning on.
#pragma once

#include <chrono>

namespace tuner {

class Stopwatch {
 public:
  double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tuner
