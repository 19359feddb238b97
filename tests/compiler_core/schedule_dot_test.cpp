// dot: the loops that come out, and the requests that are refused.
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

TEST(ScheduleDot, LanesOfAVectorEachTakeAGroup) {
  Schedule s(testing::typed_matmul(DType::kUInt8, DType::kInt8, 2, 8, 12));
  s.pack(s.tensor("B"), {{1, 8}, {0, 4}, {1, 8, true}, {0, 4, true}});
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [k] = s.reduce_axes<1>(c);
  const auto [outer, inner] = s.split(k, 4);
  s.reorder({m, outer, n, inner});
  s.decompose_reduction(c, outer);
  s.dot(inner);
  s.vectorize(n);
  EXPECT_EQ(loops(s), R"(
for m in 0..2
  vectorized n.init in 0..8
    C[m, n.init] = 0
  reduce k.outer in 0..3
    vectorized n in 0..8
      dot reduce k.inner in 0..4
        C[m, n] += int32(A[m, k.outer*4 + k.inner])*int32(B.packed[0, k.outer, n, k.inner])
)");
  const auto again = replay(testing::typed_matmul(DType::kUInt8, DType::kInt8, 2, 8, 12), s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(s.program()));
}

TEST(ScheduleDot, OddReductionKeepsItsGuard) {
  Schedule s(testing::typed_matmul(DType::kBFloat16, DType::kBFloat16, 1, 8, 3));
  const auto [m, n] = s.axes<2>(s.tensor("C"));
  const auto [outer, inner] = s.split(s.reduce_axes<1>(s.tensor("C"))[0], 2);
  s.reorder({outer, n, inner});
  s.dot(inner);
  EXPECT_EQ(loops(s), R"(
for m in 0..1
  reduce k.outer in 0..2
    for n in 0..8
      dot reduce k.inner in 0..2
        if k.outer*2 + k.inner < 3
          C[0, n] += float32(A[0, k.outer*2 + k.inner]) * float32(B[k.outer*2 + k.inner, n]), from 0 when k.outer*2 + k.inner == 0
)");
}

std::string refusal(Program program, void (*rewrite)(Schedule&, Axis m, Axis n, Axis k)) {
  Schedule s(std::move(program));
  const auto [m, n] = s.axes<2>(s.tensor("C"));
  rewrite(s, m, n, s.reduce_axes<1>(s.tensor("C"))[0]);
  return s.finish().message();
}

TEST(ScheduleDot, RefusesWhatIsNoDotProductOfOneInstruction) {
  const auto bytes = [](int64_t k) { return testing::typed_matmul(DType::kUInt8, DType::kInt8, 2, 8, k); };
  const auto halves = testing::typed_matmul(DType::kBFloat16, DType::kBFloat16, 2, 8, 4);
  EXPECT_EQ(refusal(bytes(4), [](Schedule& s, Axis, Axis n, Axis) { s.dot(n); }),
            "dot(n): a spatial axis; its iterations are not summed");
  EXPECT_EQ(refusal(bytes(4),
                    [](Schedule& s, Axis, Axis n, Axis k) {
                      s.reorder({k, n});
                      s.dot(k);
                    }),
            "dot(k): not innermost; reorder it inside first");
  EXPECT_EQ(refusal(bytes(5), [](Schedule& s, Axis, Axis, Axis k) { s.dot(k); }),
            "dot(k): has 5 iterations; for these types it must have 4");
  EXPECT_EQ(refusal(halves, [](Schedule& s, Axis, Axis, Axis k) { s.dot(k); }),
            "dot(k): has 4 iterations; for these types it must have 2");
  EXPECT_EQ(
      refusal(testing::matmul(2, 8, 4), [](Schedule& s, Axis, Axis, Axis k) { s.dot(k); }),
      "dot(k): not a sum of products of two loads cast from bfloat16 to float32 or from 8 bits to int32");
  EXPECT_EQ(refusal(bytes(4),
                    [](Schedule& s, Axis, Axis, Axis k) {
                      s.unroll(k);
                      s.dot(k);
                    }),
            "dot(k): is unrolled already");
  EXPECT_EQ(refusal(bytes(8),
                    [](Schedule& s, Axis, Axis, Axis k) {
                      s.split(k, 4);
                      s.dot(k);
                    }),
            "dot(k): not an axis of the Program (split, fused or never there)");
  EXPECT_EQ(refusal(bytes(4), [](Schedule& s, Axis, Axis, Axis) { s.dot({}); }),
            "dot((none)): the axis handle is empty");
}

}  // namespace
}  // namespace tuner
