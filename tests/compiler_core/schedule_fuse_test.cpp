// Fusing axes: one loop in place of several.
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

Program plane(int64_t a, int64_t b, int64_t c) {
  te::Builder builder("plane");
  const Buffer x = builder.input("x", {a, b, c});
  builder.compute("y", {a, b, c}, [&](const te::Indices& i) { return load(x, i) + 1; }, BufferRole::kOutput,
                  {"a", "b", "c"});
  return builder.finish();
}

TEST(ScheduleFuse, TwoAxes) {
  Schedule s(plane(2, 3, 5));
  const auto [a, b, c] = s.axes<3>(s.tensor("y"));
  s.fuse({b, c});
  EXPECT_EQ(loops(s), R"(
for a in 0..2
  for b.c.fused in 0..15
    y[a, b.c.fused//5, b.c.fused%5] = x[a, b.c.fused//5, b.c.fused%5] + 1
)");
}

TEST(ScheduleFuse, ThreeAxes) {
  Schedule s(plane(2, 3, 5));
  const auto [a, b, c] = s.axes<3>(s.tensor("y"));
  const Axis fused = s.fuse({a, b, c});
  EXPECT_EQ(s.extent(fused), 30);
  EXPECT_EQ(loops(s), R"(
for a.b.c.fused in 0..30
  y[a.b.c.fused//15, a.b.c.fused//5%3, a.b.c.fused%5] = x[a.b.c.fused//15, a.b.c.fused//5%3, a.b.c.fused%5] + 1
)");
}

TEST(ScheduleFuse, SplitByTheInnerExtentGivesTheIndicesBack) {
  Schedule s(plane(2, 3, 5));
  const auto [a, b, c] = s.axes<3>(s.tensor("y"));
  s.split(s.fuse({b, c}), 5);
  EXPECT_EQ(loops(s), R"(
for a in 0..2
  for b.c.fused.outer in 0..3
    for b.c.fused.inner in 0..5
      y[a, b.c.fused.outer, b.c.fused.inner] = x[a, b.c.fused.outer, b.c.fused.inner] + 1
)");
}

TEST(ScheduleFuse, AnUnevenSplitFusesBackUnderItsGuard) {
  Schedule s(plane(1, 1, 10));
  const auto [a, b, c] = s.axes<3>(s.tensor("y"));
  const auto [outer, inner] = s.split(c, 4);
  s.fuse({outer, inner});
  EXPECT_EQ(loops(s), R"(
for a in 0..1
  for b in 0..1
    for c.outer.c.inner.fused in 0..12
      if c.outer.c.inner.fused < 10
        y[0, 0, c.outer.c.inner.fused] = x[0, 0, c.outer.c.inner.fused] + 1
)");
}

TEST(ScheduleFuse, RefusesWrongOrderGapsAndMixedKinds) {
  {
    Schedule s(plane(2, 3, 5));
    const auto [a, b, c] = s.axes<3>(s.tensor("y"));
    s.fuse({c, b});
    EXPECT_EQ(s.finish().message(), "fuse({c, b}): the axes must be given outermost first: b is outside c");
  }
  {
    Schedule s(plane(2, 3, 5));
    const auto [a, b, c] = s.axes<3>(s.tensor("y"));
    s.fuse({a, c});
    EXPECT_EQ(s.finish().message(),
              "fuse({a, c}): the axes must be directly nested; other loops stand between them");
  }
  {
    Schedule s(testing::matmul(2, 3, 4));
    const Tensor c = s.tensor("C");
    s.fuse({s.axes<2>(c)[1], s.reduce_axes<1>(c)[0]});
    EXPECT_EQ(s.finish().message(), "fuse({n, k}): k and n are not of one kind (spatial, reduce)");
  }
  {
    Schedule s(testing::two_stages(4));
    s.fuse({s.axes<1>(s.tensor("t"))[0], s.axes<1>(s.tensor("y"))[0]});
    EXPECT_EQ(s.finish().message(), "fuse({j, i}): i and j are not nested in each other");
  }
}

TEST(ScheduleFuse, RefusesMoreIterationsThanIndicesCount) {
  Schedule s(plane(int64_t{1} << 31, int64_t{1} << 31, 5));
  const auto [a, b, c] = s.axes<3>(s.tensor("y"));
  s.fuse({a, b});
  EXPECT_EQ(
      s.finish().message(),
      "fuse({a, b}): with the 2147483648 iterations of b the fused axis would have more than 2^60, which "
      "indices cannot count");
}

}  // namespace
}  // namespace tuner
