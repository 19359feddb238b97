// For tests that compare the times of a small input and of a large one.
#pragma once

#include <malloc.h>

#include <limits>

namespace tuner {

// From here on, memory that is freed stays with the process. Otherwise the system takes the pages of a large
// input back after each turn and clears new ones in the next, which a small input does not pay. Without it
// `linear_time_test --gtest_filter='*Json'` printed 28 to 48 times for 16 times as many objects, with it
// 16 to 18 (Zen 5, 2026-12-01).
inline void keep_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace tuner
