// For tests that compare the times of a small input and of a large one.
#pragma once

#include <malloc.h>

#include <limits>

namespace tuner {

// From here on, memory that is freed stays with the process. Otherwise the system takes the pages of a large
// input back after each turn and clears new ones in the next, which a small input does not pay: a reader of
// JSON that is linear took 45 times as long for 16 times the text.
inline void keep_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace tuner
