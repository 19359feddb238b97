// Division of integers, rounded down or up. C++ rounds towards zero, which is neither where a number is
// negative.
#pragma once

#include <cstdint>

namespace tuner {

// a / b rounded down, where `b` is not 0 and the quotient an int64_t (not INT64_MIN by -1).
constexpr int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
// a - floor_quotient(a, b) * b: has the sign of b.
constexpr int64_t floor_remainder(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// The smallest q with q * b >= a, for b > 0: how many parts of `b` hold `a`.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
// The smallest multiple that is not below `a`.
constexpr int64_t round_up(int64_t a, int64_t multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace tuner
