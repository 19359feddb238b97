// cache_write, cache_read, decompose_reduction: second buffers, and where a reduction starts.
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

TEST(ScheduleCache, WriteComputesInTheCacheAndCopies) {
  Schedule s(testing::matmul(2, 3, 4));
  s.cache_write(s.tensor("C"), MemoryScope::kRegister);
  EXPECT_EQ(loops(s), R"(
allocate C.register float32[2, 3] register
for m in 0..2
  for n in 0..3
    reduce k in 0..4
      C.register[m, n] += A[m, k] * B[k, n], from 0 when k == 0
for m in 0..2
  for n in 0..3
    C[m, n] = C.register[m, n]
)");
}

TEST(ScheduleCache, WriteKeepsTheAxesOfTheTensorForTheCopy) {
  Schedule s(testing::matmul(4, 3, 4));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const Tensor acc = s.cache_write(c, MemoryScope::kRegister);
  const auto [m_outer, m_inner] = s.split(m, 2);
  s.compute_at(acc, m_outer);
  EXPECT_EQ(loops(s), R"(
for m.outer in 0..2
  allocate C.register float32[2, 3] register
  for m in 0..2
    for n in 0..3
      reduce k in 0..4
        C.register[m, n] += A[m.outer*2 + m, k] * B[k, n], from 0 when k == 0
  for m.inner in 0..2
    for n in 0..3
      C[m.outer*2 + m.inner, n] = C.register[m.inner, n]
)");
}

TEST(ScheduleCache, ReadCopiesForOneReader) {
  Schedule s(testing::matmul(2, 3, 4));
  const Tensor c = s.tensor("C");
  const Tensor a = s.cache_read(s.tensor("A"), MemoryScope::kShared, c);
  s.compute_at(a, s.axes<2>(c)[0]);
  EXPECT_EQ(loops(s), R"(
for m in 0..2
  allocate A.shared float32[1, 4] shared
  for i0 in 0..1
    for i1 in 0..4
      A.shared[0, i1] = A[m, i1]
  for n in 0..3
    reduce k in 0..4
      C[m, n] += A.shared[0, k] * B[k, n], from 0 when k == 0
)");
}

TEST(ScheduleCache, RefusesWhatIsNotReadOrNotPlain) {
  {
    Schedule s(testing::dense(2, 3, 4));
    s.cache_read(s.tensor("A"), MemoryScope::kRegister, s.tensor("out"));
    EXPECT_EQ(s.finish().message(), "cache_read(A, register, out): out does not read A");
  }
  {
    Schedule s(testing::matmul(5, 3, 4));
    s.split(s.axes<2>(s.tensor("C"))[0], 2);
    s.cache_write(s.tensor("C"), MemoryScope::kRegister);
    EXPECT_EQ(s.finish().message(),
              "cache_write(C, register): C is guarded (an axis was split unevenly or moved); do that later");
  }
  {
    Schedule s(testing::matmul(5, 3, 4));
    s.cache_write(s.tensor("A"), MemoryScope::kRegister);
    EXPECT_EQ(s.finish().message(), "cache_write(A, register): A is not computed in this Program");
  }
  {
    Schedule s(testing::matmul(5, 3, 4));
    s.set_scope(s.tensor("C"), MemoryScope::kRegister);
    EXPECT_EQ(s.finish().message(),
              "set_scope(C, register): C is an argument (output); its memory is the caller's");
  }
}

TEST(ScheduleDecompose, TheStartStandsBeforeTheReduction) {
  Schedule s(testing::matmul(2, 3, 4));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [k] = s.reduce_axes<1>(c);
  s.reorder({m, k, n});
  s.decompose_reduction(c, k);
  EXPECT_EQ(loops(s), R"(
for m in 0..2
  for n.init in 0..3
    C[m, n.init] = 0
  reduce k in 0..4
    for n in 0..3
      C[m, n] += A[m, k] * B[k, n]
)");
}

TEST(ScheduleDecompose, GuardsOfSpatialAxesHoldForTheStartToo) {
  Schedule s(testing::matmul(5, 3, 7));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [k] = s.reduce_axes<1>(c);
  const auto [m_outer, m_inner] = s.split(m, 2);
  const auto [k_outer, k_inner] = s.split(k, 4);
  s.reorder({m_outer, k_outer, k_inner, m_inner, n});
  s.decompose_reduction(c, k_outer);
  EXPECT_EQ(loops(s), R"(
for m.outer in 0..3
  for m.inner.init in 0..2
    if m.outer*2 + m.inner.init < 5
      for n.init in 0..3
        C[m.outer*2 + m.inner.init, n.init] = 0
  reduce k.outer in 0..2
    reduce k.inner in 0..4
      if k.outer*4 + k.inner < 7
        for m.inner in 0..2
          if m.outer*2 + m.inner < 5
            for n in 0..3
              C[m.outer*2 + m.inner, n] += A[m.outer*2 + m.inner, k.outer*4 + k.inner] * B[k.outer*4 + k.inner, n]
)");
}

TEST(ScheduleDecompose, LaterSplitsAndAnnotationsReachTheStart) {
  Schedule s(testing::matmul(2, 8, 4));
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [k] = s.reduce_axes<1>(c);
  s.reorder({k, m, n});
  s.decompose_reduction(c, k);
  const auto [n_outer, n_inner] = s.split(n, 4);
  s.unroll(n_outer);
  s.vectorize(n_inner);
  EXPECT_EQ(loops(s), R"(
for m.init in 0..2
  unrolled n.init.outer in 0..2
    vectorized n.init.inner in 0..4
      C[m.init, n.init.outer*4 + n.init.inner] = 0
reduce k in 0..4
  for m in 0..2
    unrolled n.outer in 0..2
      vectorized n.inner in 0..4
        C[m, n.outer*4 + n.inner] += A[m, k] * B[k, n.outer*4 + n.inner]
)");
}

TEST(ScheduleDecompose, RefusesAnAxisInsideTheReductionAndTheSecondTime) {
  {
    Schedule s(testing::matmul(2, 3, 4));
    const Tensor c = s.tensor("C");
    const auto [m, n] = s.axes<2>(c);
    s.reorder({m, s.reduce_axes<1>(c)[0], n});
    s.decompose_reduction(c, n);
    EXPECT_EQ(s.finish().message(),
              "decompose_reduction(C, n): reduce axis k is outside; its later iterations would start over");
  }
  {
    Schedule s(testing::matmul(2, 3, 4));
    const Tensor c = s.tensor("C");
    s.decompose_reduction(c, s.reduce_axes<1>(c)[0]);
    s.decompose_reduction(c, s.reduce_axes<1>(c)[0]);
    EXPECT_EQ(s.finish().message(),
              "decompose_reduction(C, k): the initialisation of C is already decomposed");
  }
  {
    Schedule s(testing::dense(2, 3, 4));
    s.decompose_reduction(s.tensor("out"), s.axes<2>(s.tensor("out"))[0]);
    EXPECT_EQ(s.finish().message(), "decompose_reduction(out, out:m): out is not a reduction");
  }
}

}  // namespace
}  // namespace tuner
