// Reordering axes: loops change places, guards follow the axes they test.
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

TEST(ScheduleReorder, ReductionOutsideTheSpatialAxes) {
  Schedule s(testing::matmul(2, 3, 4));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  s.reorder({s.reduce_axes<1>(c)[0], m, n});
  EXPECT_EQ(loops(s), R"(
reduce k in 0..4
  for m in 0..2
    for n in 0..3
      C[m, n] += A[m, k] * B[k, n], from 0 when k == 0
)");
}

TEST(ScheduleReorder, AxesNotNamedKeepTheirPlace) {
  Schedule s(testing::matmul(2, 3, 4));
  const Tensor c = s.tensor("C");
  s.reorder({s.reduce_axes<1>(c)[0], s.axes<2>(c)[0]});
  EXPECT_EQ(loops(s), R"(
reduce k in 0..4
  for n in 0..3
    for m in 0..2
      C[m, n] += A[m, k] * B[k, n], from 0 when k == 0
)");
}

TEST(ScheduleReorder, EachGuardStandsJustInsideTheLastAxisItTests) {
  Schedule s(testing::matmul(5, 7, 4));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [m_outer, m_inner] = s.split(m, 2);
  const auto [n_outer, n_inner] = s.split(n, 4);
  s.reorder({m_outer, n_outer, s.reduce_axes<1>(c)[0], m_inner, n_inner});
  EXPECT_EQ(loops(s), R"(
for m.outer in 0..3
  for n.outer in 0..2
    reduce k in 0..4
      for m.inner in 0..2
        if m.outer*2 + m.inner < 5
          for n.inner in 0..4
            if n.outer*4 + n.inner < 7
              C[m.outer*2 + m.inner, n.outer*4 + n.inner] += A[m.outer*2 + m.inner, k] * B[k, n.outer*4 + n.inner], from 0 when k == 0
)");
}

TEST(ScheduleReorder, RefusesWhatStandsApart) {
  {
    Schedule s(testing::dense(2, 3, 4));
    const Tensor out = s.tensor("out");
    const auto [m, n] = s.axes<2>(out);
    s.compute_at(s.tensor("C"), m);
    s.reorder({n, m});
    EXPECT_EQ(s.finish().message(),
              "reorder({out:n, out:m}): other statements stand between out:m and out:n");
  }
  {
    testing::Doubling p(4);
    p.s.reorder({p.i, p.i});
    EXPECT_EQ(p.s.finish().message(), "reorder({i, i}): i is given twice");
  }
  {
    Schedule s(testing::matmul(2, 8, 4));
    const auto [m, n] = s.axes<2>(s.tensor("C"));
    s.reorder({m, s.reduce_axes<1>(s.tensor("C"))[0], n});
    s.vectorize(n);
    s.reorder({n, m});
    EXPECT_EQ(s.finish().message(), "reorder({n, m}): n is vectorized; reorder before");
  }
  {
    Schedule s(testing::matmul(8, 8, 4));
    const auto [m, n] = s.axes<2>(s.tensor("C"));
    const auto [k] = s.reduce_axes<1>(s.tensor("C"));
    s.reorder({k, m, n});
    s.vectorize(n);
    s.vectorize_rows(m);
    s.reorder({m, k});
    EXPECT_EQ(s.finish().message(), "reorder({m, k}): m is vector_rows; reorder before");
  }
}

}  // namespace
}  // namespace tuner
