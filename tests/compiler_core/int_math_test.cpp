// Quotients rounded down and up, held against their definition over all small numbers, and at the ends.
#include "compiler_core/base/int_math.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

TEST(IntMath, QuotientsAreWhatTheirDefinitionsSay) {
  for (int64_t a = -40; a <= 40; ++a) {
    for (int64_t b = -9; b <= 9; ++b) {
      if (b == 0) continue;
      const int64_t q = floor_quotient(a, b), r = floor_remainder(a, b);
      EXPECT_EQ(q * b + r, a) << a << " by " << b;
      EXPECT_TRUE(b > 0 ? r >= 0 && r < b : r <= 0 && r > b) << a << " by " << b << " leaves " << r;
      if (b < 0) continue;
      const int64_t up = ceil_div(a, b);
      EXPECT_TRUE(up * b >= a && (up - 1) * b < a) << a << " by " << b << " is " << up;
      EXPECT_EQ(round_up(a, b), up * b);
    }
  }
}

TEST(IntMath, NothingOverflowsOnTheWay) {
  EXPECT_EQ(ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
  EXPECT_EQ(ceil_div(INT64_MAX, INT64_MAX), 1);
  EXPECT_EQ(ceil_div(INT64_MIN, 1), INT64_MIN);
  EXPECT_EQ(floor_quotient(INT64_MIN, 3), INT64_MIN / 3 - 1);
  EXPECT_EQ(floor_quotient(INT64_MIN, INT64_MAX), -2);
  EXPECT_EQ(floor_remainder(INT64_MIN, INT64_MAX), INT64_MAX - 1);
}

}  // namespace
}  // namespace tuner
