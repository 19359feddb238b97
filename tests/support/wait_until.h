// Waiting in tests: for an event, with a deadline, or for time itself. Nothing else in the tests sleeps; the
// structure test counts how often time itself is waited for.
#pragma once

#include <chrono>
#include <thread>

namespace tuner {

// Looks until `condition()` holds. False if it does not within `limit`, which is for what hangs: let it be
// much longer than any machine needs.
template <class Condition>
bool wait_until(std::chrono::milliseconds limit, Condition condition,
                std::chrono::milliseconds every = std::chrono::milliseconds(5)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(every);
  }
  return true;
}

// Lets time pass where the test is about time: a pause, a rate, something that must not happen meanwhile. No
// test may need the time for another thread or process to come somewhere: then wait_until().
template <class Rep, class Period>
void let_pass(std::chrono::duration<Rep, Period> time) {
  std::this_thread::sleep_for(time);
}

}  // namespace tuner
