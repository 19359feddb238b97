// Splitting an axis: the loops that come out, and the requests that are refused.
#include <limits>

#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::Doubling;
using testing::loops;

TEST(ScheduleSplit, DividingFactorNeedsNoGuard) {
  Doubling p(/*n=*/128);
  p.s.split(p.i, 32);
  EXPECT_EQ(loops(p.s), R"(
for i.outer in 0..4
  for i.inner in 0..32
    y[i.outer*32 + i.inner] = x[i.outer*32 + i.inner] * 2
)");
}

TEST(ScheduleSplit, OtherFactorsAreGuarded) {
  Doubling p(/*n=*/10);
  p.s.split(p.i, 4);
  EXPECT_EQ(loops(p.s), R"(
for i.outer in 0..3
  for i.inner in 0..4
    if i.outer*4 + i.inner < 10
      y[i.outer*4 + i.inner] = x[i.outer*4 + i.inner] * 2
)");
}

TEST(ScheduleSplit, FactorBeyondTheExtentGivesOneGuardedBlock) {
  Doubling p(/*n=*/10);
  p.s.split(p.i, 16);
  EXPECT_EQ(loops(p.s), R"(
for i.outer in 0..1
  for i.inner in 0..16
    if i.inner < 10
      y[i.inner] = x[i.inner] * 2
)");
}

TEST(ScheduleSplit, TwiceKeepsOneGuardWhenTheInnerFactorDivides) {
  Doubling p(/*n=*/10);
  const auto [outer, inner] = p.s.split(p.i, 4);
  p.s.split(inner, 2);
  EXPECT_EQ(loops(p.s), R"(
for i.outer in 0..3
  for i.inner.outer in 0..2
    for i.inner.inner in 0..2
      if i.outer*2 + i.inner.outer < 5
        y[i.outer*4 + i.inner.outer*2 + i.inner.inner] = x[i.outer*4 + i.inner.outer*2 + i.inner.inner] * 2
)");
}

TEST(ScheduleSplit, AReduceAxisStartsAtItsFirstBlock) {
  Schedule s(testing::matmul(2, 2, 8));
  s.split(s.reduce_axes<1>(s.tensor("C"))[0], 4);
  EXPECT_EQ(loops(s), R"(
for m in 0..2
  for n in 0..2
    reduce k.outer in 0..2
      reduce k.inner in 0..4
        C[m, n] += A[m, k.outer*4 + k.inner] * B[k.outer*4 + k.inner, n], from 0 when k.outer*4 + k.inner == 0
)");
}

TEST(ScheduleSplit, RefusesFactorZeroNamingTheAxis) {
  Doubling p(/*n=*/10);
  p.s.split(p.i, 0);
  EXPECT_EQ(p.s.finish().message(), "split(i, 0): factor must be at least 1");
  EXPECT_EQ(p.s.finish().status().code(), StatusCode::kInvalidConfig);
}

TEST(ScheduleSplit, RefusesMoreIterationsThanIndicesCount) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Doubling huge(/*n=*/5);
  huge.s.split(huge.i, kMost);
  EXPECT_EQ(
      huge.s.finish().message(),
      "split(i, 9223372036854775807): i has 5 iterations; in blocks of 9223372036854775807 its nest would "
      "have more than 2^60, which indices cannot count");
  EXPECT_EQ(huge.s.finish().status().code(), StatusCode::kInvalidConfig);

  Doubling nested(/*n=*/5);
  const auto [outer, inner] = nested.s.split(nested.i, int64_t{1} << 40);
  EXPECT_TRUE(nested.s.finish().is_ok());
  nested.s.split(outer, int64_t{1} << 30);
  EXPECT_EQ(
      nested.s.finish().message(),
      "split(i.outer, 1073741824): i.outer has 1 iterations; in blocks of 1073741824 its nest would have "
      "more than 2^60, which indices cannot count");
}

TEST(ScheduleSplit, RefusesAnAxisThatWasSplit) {
  Doubling p(/*n=*/10);
  p.s.split(p.i, 2);
  p.s.split(p.i, 5);
  EXPECT_EQ(p.s.finish().message(),
            "split(i, 5): i is not an axis of the Program (split, fused or never there)");
}

TEST(ScheduleSplit, RefusesAnAnnotatedAxis) {
  Doubling p(/*n=*/16);
  p.s.vectorize(p.i);
  p.s.split(p.i, 4);
  EXPECT_EQ(p.s.finish().message(), "split(i, 4): i is vectorized; do this before");
}

TEST(ScheduleSplit, TheFirstRefusalStaysAndLaterCallsDoNothing) {
  Doubling p(/*n=*/10);
  p.s.split(p.i, 0);
  const std::string before = loops(p.s);
  const auto [outer, inner] = p.s.split(p.i, 2);
  p.s.vectorize(inner);
  EXPECT_EQ(inner.var, nullptr);
  EXPECT_EQ(loops(p.s), before);
  EXPECT_EQ(p.s.finish().message(), "split(i, 0): factor must be at least 1");
}

}  // namespace
}  // namespace tuner
