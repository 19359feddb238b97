// pack: tensors in blocks; constants ahead of time, others as a stage.
#include <gmock/gmock.h>

#include <limits>

#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

TEST(SchedulePack, AConstantIsPackedByAnEntryOfItsOwn) {
  Schedule s(testing::matmul(2, 8, 3));
  s.pack(s.tensor("B"), {{1, 4}, {0}, {1, 4, true}});
  EXPECT_EQ("\n" + to_text(*s.finish()), R"(
kernel matmul(input A float32[2, 3], packed B.packed float32[2, 3, 4], output C float32[2, 8])
  for m in 0..2
    for n in 0..8
      reduce k in 0..3
        C[m, n] += A[m, k] * B.packed[n//4, k, n%4], from 0 when k == 0
packing matmul_pack(constant B float32[3, 8], packed B.packed float32[2, 3, 4])
  for p0 in 0..2
    for p1 in 0..3
      for p2 in 0..4
        B.packed[p0, p1, p2] = B[p1, p0*4 + p2]
)");
}

TEST(SchedulePack, BlocksThatReachPastTheShapeHoldZeros) {
  Schedule s(testing::matmul(2, 7, 3));
  s.pack(s.tensor("B"), {{1, 4}, {0}, {1, 4, true}});
  EXPECT_EQ("\n" + to_text(s.program().packing->body), R"(
for p0 in 0..2
  for p1 in 0..3
    for p2 in 0..4
      B.packed[p0, p1, p2] = select(p0*4 + p2 < 7, B[p1, p0*4 + p2], 0)
)");
}

TEST(SchedulePack, BlocksThatReachPastTheShapeRepeatItsLastElements) {
  Schedule s(testing::matmul(2, 6, 3));
  s.pack(s.tensor("B"), {{1, 8}, {0}, {1, 8, true, 1, 2}});
  EXPECT_EQ("\n" + to_text(s.program().packing->body), R"(
for p0 in 0..1
  for p1 in 0..3
    for p2 in 0..8
      B.packed[p0, p1, p2] = B[p1, min(p2//2*2, 4) + p2%2]
)");
  const auto again = replay(testing::matmul(2, 6, 3), s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message() << "\n" << s.trace();
  EXPECT_EQ(to_text(*again), to_text(*s.finish()));

  Schedule odd(testing::matmul(2, 7, 3));
  odd.pack(odd.tensor("B"), {{1, 4}, {0}, {1, 4, true, 1, 2}});
  EXPECT_EQ(odd.finish().message(),
            "pack(B, {1/4, 0, 1%4~2}): dimension 1, of extent 7, with its last 2 elements repeated; only the "
            "inside of "
            "blocks, and a divisor of the extent");
}

// Two blocks of 4 would do; three make a multiple of 3.
TEST(SchedulePack, AMultipleAddsWholeBlocksOfZeros) {
  Schedule s(testing::matmul(2, 7, 3));
  s.pack(s.tensor("B"), {{1, 4, false, 3}, {0, 1, false, 2}, {1, 4, true}});
  EXPECT_EQ("\n" + to_text(s.program().packing->body), R"(
for p0 in 0..3
  for p1 in 0..4
    for p2 in 0..4
      B.packed[p0, p1, p2] = select(p1 < 3 && p0*4 + p2 < 7, B[p1, p0*4 + p2], 0)
)");
  EXPECT_EQ(s.trace(), "pack(B, {1/4*3, 0/1*2, 1%4}) -> B.packed\n");
  const auto again = replay(testing::matmul(2, 7, 3), s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(s.program()));
  s.pack(s.tensor("A"), {{0, 2}, {0, 2, true, 2}, {1}});
  EXPECT_EQ(s.finish().message(),
            "pack(A, {0/2, 0%2*2, 1}): dimension 0 in multiples of 2; only blocks are padded");
}

// 0 * x is not 0 for every x: an infinity beyond the edge would make a NaN of a sum.
TEST(SchedulePack, APaddedReductionNeedsZerosOnBothSides) {
  const auto padded = [](int64_t repeat_a, int64_t repeat_b) {
    Schedule s(testing::matmul(2, 4, 6));
    s.pack(s.tensor("A"), {{0}, {1, 4}, {1, 4, true, 1, repeat_a}});
    s.pack(s.tensor("B"), {{0, 4}, {1}, {0, 4, true, 1, repeat_b}});
    s.pad_reduction(s.reduce_axes<1>(s.tensor("C"))[0], 4);
    return s.finish().message();
  };
  EXPECT_EQ(padded(0, 0), "");
  for (const auto& [a, b] : {std::pair<int64_t, int64_t>{2, 0}, {0, 2}, {2, 2}})
    EXPECT_NE(padded(a, b).find("the terms from 6 on are not proved to be 0"), std::string::npos)
        << a << ", " << b << ": " << padded(a, b);
}

// The zeros that the packing entry writes are known to a sum of bytes, too.
TEST(SchedulePack, ASumOverZerosPackedAheadMayBePadded) {
  Schedule s(testing::typed_matmul(DType::kUInt8, DType::kInt8, 2, 4, 7));
  s.pack(s.tensor("A"), {{0}, {1, 4}, {1, 4, true}});
  s.pack(s.tensor("B"), {{0, 4}, {1}, {0, 4, true}});
  s.pad_reduction(s.reduce_axes<1>(s.tensor("C"))[0], 4);
  EXPECT_TRUE(s.finish().is_ok()) << s.finish().message();
  EXPECT_EQ(s.extent(s.reduce_axes<1>(s.tensor("C"))[0]), 8);
}

TEST(SchedulePack, AnInputGetsAStageThatMayBeScheduled) {
  Schedule s(testing::matmul(6, 2, 3));
  const Tensor c = s.tensor("C"), a = s.pack(s.tensor("A"), {{0, 2}, {1}, {0, 2, true}});
  const auto [m, n] = s.axes<2>(c);
  const auto [m_outer, m_inner] = s.split(m, 2);
  s.compute_at(a, m_outer);
  EXPECT_EQ(loops(s), R"(
for m.outer in 0..3
  allocate A.packed float32[1, 3, 2]
  for p0 in 0..1
    for p1 in 0..3
      for p2 in 0..2
        A.packed[0, p1, p2] = A[m.outer*2 + p2, p1]
  for m.inner in 0..2
    for n in 0..2
      reduce k in 0..3
        C[m.outer*2 + m.inner, n] += A.packed[0, k, m.inner] * B[k, n], from 0 when k == 0
)");
  EXPECT_EQ(s.program().packing, nullptr);
}

TEST(SchedulePack, ThePaddingOfAConvolutionGoesStraightIntoItsPackedInput) {
  Schedule s(testing::conv2d({.ic = 3, .h = 2, .w = 2, .kh = 1, .kw = 1, .padding = 1}));
  const Tensor pad = s.tensor("data_pad");
  s.pack(pad, {{0}, {1, 2}, {2}, {3}, {1, 2, true}});
  s.inline_compute(pad);
  ASSERT_TRUE(s.finish().is_ok()) << s.finish().message();
  const std::string text = loops(s);
  EXPECT_THAT(text, ::testing::HasSubstr(R"(
for p0 in 0..1
  for p1 in 0..2
    for p2 in 0..4
      for p3 in 0..4
        for p4 in 0..2
          data_pad.packed[0, p1, p2, p3, p4] = select(p1*2 + p4 < 3, select(p2 >= 1 && p2 < 3 && p3 >= 1 && p3 < 3, data[0, p1*2 + p4, p2 - 1, p3 - 1], 0), 0)
)"));
}

TEST(SchedulePack, TwoConstantsStandInOrderInThePackingEntry) {
  te::Builder b("two");
  const Buffer v = b.constant("v", {4}), w = b.constant("w", {4});
  b.compute(
      "y", {4}, [&](const te::Indices& i) { return load(v, i) + load(w, i); }, BufferRole::kOutput);
  Schedule s(b.finish());
  s.pack(s.tensor("v"), {{0, 2}, {0, 2, true}});
  s.pack(s.tensor("w"), {{0, 4}, {0, 4, true}});
  std::string names;
  for (const Buffer& arg : s.finish()->packing->args) names += arg->name + " ";
  EXPECT_EQ(names, "v w v.packed w.packed ");
}

TEST(SchedulePack, RefusesDimensionsLeftOutOrTwice) {
  const auto refusal = [](std::vector<PackDim> dims) {
    Schedule s(testing::matmul(2, 8, 3));
    s.pack(s.tensor("B"), std::move(dims));
    return s.finish().message();
  };
  EXPECT_EQ(
      refusal({{1, 4}, {0}}),
      "pack(B, {1/4, 0}): dimension 1 must appear once whole, or once as blocks and once as their inside");
  EXPECT_EQ(refusal({{1}}),
            "pack(B, {1}): dimension 0 must appear once whole, or once as blocks and once as their inside");
  EXPECT_EQ(refusal({{0}, {1, 4}, {1, 2, true}}),
            "pack(B, {0, 1/4, 1%2}): dimension 1 in blocks of two sizes");
  EXPECT_EQ(refusal({{0}, {1}, {2}}), "pack(B, {0, 1, 2}): dimension 2; B has 2");
}

TEST(SchedulePack, RefusesATensorOfLittleButPadding) {
  const auto refusal = [](int64_t block) {
    Schedule s(testing::matmul(2, 8, 3));
    s.pack(s.tensor("B"), {{1, block}, {0}, {1, block, true}});
    EXPECT_EQ(s.finish().status().code(), StatusCode::kInvalidConfig);
    return s.finish().message();
  };
  EXPECT_EQ(
      refusal(int64_t{1} << 28),
      "pack(B, {1/268435456, 0, 1%268435456}): B.packed would take 3221225472 bytes, B takes 96: mostly "
      "padding, above all of dimension 1, of extent 8, in blocks of 268435456; smaller blocks");
  EXPECT_EQ(
      refusal(int64_t{1} << 50),
      "pack(B, {1/1125899906842624, 0, 1%1125899906842624}): B.packed[1, 3, 1125899906842624] would take "
      "more than 2^47 bytes, which no process can address");
  EXPECT_EQ(refusal(std::numeric_limits<int64_t>::max()),
            "pack(B, {1/9223372036854775807, 0, 1%9223372036854775807}): B.packed[1, 3, 9223372036854775807] "
            "would take more than 2^47 bytes, which no process can address");
}

TEST(SchedulePack, APaddingSmallerThanTheTensorIsNoMistake) {
  const int64_t columns = (int64_t{1} << 30) + 1, block = int64_t{1} << 29;
  Schedule s(testing::matmul(1, columns, 1));
  s.pack(s.tensor("B"), {{1, block}, {0}, {1, block, true}});
  EXPECT_TRUE(s.finish().is_ok()) << s.finish().message();
}

TEST(SchedulePack, RefusesBlocksOfBlocksOnceTheyAreLittleButPadding) {
  Schedule s(testing::matmul(1, 1, 1));
  const Tensor once = s.pack(s.tensor("A"), {{0, 4096}, {1}, {0, 4096, true}});
  const Tensor twice = s.pack(once, {{0, 4096}, {1}, {2}, {0, 4096, true}});
  EXPECT_TRUE(s.finish().is_ok()) << s.finish().message();
  EXPECT_EQ(twice.buffer->bytes(), 64 << 20);
  s.pack(twice, {{0, 4096}, {1}, {2}, {3}, {0, 4096, true}});
  EXPECT_EQ(
      s.finish().message(),
      "pack(A.packed.packed, {0/4096, 1, 2, 3, 0%4096}): A.packed.packed.packed would take 274877906944 "
      "bytes, A.packed.packed takes 67108864: mostly padding, above all of dimension 0, of extent 1, in "
      "blocks of 4096; smaller blocks");
}

TEST(SchedulePack, RefusesWhatNobodyReads) {
  Schedule s(testing::matmul(2, 8, 3));
  s.pack(s.tensor("C"), {{0}, {1}});
  EXPECT_EQ(s.finish().message(), "pack(C, {0, 1}): nothing reads C");
  Schedule twice(testing::matmul(2, 8, 3));
  twice.pack(twice.pack(twice.tensor("B"), {{1}, {0}}), {{0}, {1}});
  EXPECT_EQ(twice.finish().message(), "pack(B.packed, {0, 1}): B.packed is packed already");
}

}  // namespace
}  // namespace tuner
