// Integer division that rounds down or up. C++ rounds towards zero, which differs from both for negative
// numbers.
#pragma once

#include <cstdint>

namespace tuner {

// Returns a / b rounded down. `b` must not be 0, and the quotient must fit (not INT64_MIN by -1).
constexpr int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
// Returns a - floor_quotient(a, b) * b, which has the sign of b.
constexpr int64_t floor_remainder(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Returns the smallest q with q * b >= a, for b > 0: the number of parts of size `b` that hold `a`.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
// Returns the smallest multiple that is at least `a`.
constexpr int64_t round_up(int64_t a, int64_t multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace tuner
