// The rate of a loop at its best: what peaks are measured with.
#pragma once

#include <algorithm>
#include <chrono>

namespace tuner {

// Operations a nanosecond (G/s) of `window()`, which does `operations` of them, the best of several within
// about `milliseconds`. A window should take 50-100 us: short enough to fall between interruptions.
template <class Clock = std::chrono::steady_clock, class Window>
double best_rate(double milliseconds, double operations, const Window& window) {
  const auto deadline = Clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  window();  // wakes the wide units
  double best = 0;
  do {
    const auto begin = Clock::now();
    window();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    best = std::max(best, operations / ns);
  } while (Clock::now() < deadline);
  return best;
}

}  // namespace tuner
