// compute_at: a producer moves under an axis of its consumer and shrinks to what is read there. Also
// inline_compute.
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

using testing::loops;

TEST(ScheduleComputeAt, TheProducerShrinksToTheTile) {
  Schedule s(testing::two_stages(8));
  const auto [outer, inner] = s.split(s.axes<1>(s.tensor("y"))[0], 4);
  s.compute_at(s.tensor("t"), outer);
  EXPECT_EQ(loops(s), R"(
for i.outer in 0..2
  allocate t float32[4]
  for j in 0..4
    t[j] = x[i.outer*4 + j] + 1
  for i.inner in 0..4
    y[i.outer*4 + i.inner] = t[i.inner] * t[i.inner]
)");
}

TEST(ScheduleComputeAt, AWindowOverlapsTheNextTile) {
  Schedule s(testing::two_stages(8, /*window=*/true));
  const auto [outer, inner] = s.split(s.axes<1>(s.tensor("y"))[0], 4);
  s.compute_at(s.tensor("t"), outer);
  EXPECT_EQ(loops(s), R"(
for i.outer in 0..2
  allocate t float32[6]
  for j in 0..6
    t[j] = x[i.outer*4 + j] + 1
  for i.inner in 0..4
    y[i.outer*4 + i.inner] = t[i.inner] + t[i.inner + 1] + t[i.inner + 2]
)");
}

TEST(ScheduleComputeAt, ATileThatReachesPastTheShapeIsGuarded) {
  Schedule s(testing::two_stages(10));
  const auto [outer, inner] = s.split(s.axes<1>(s.tensor("y"))[0], 4);
  s.compute_at(s.tensor("t"), outer);
  EXPECT_EQ(loops(s), R"(
for i.outer in 0..3
  allocate t float32[4]
  for j in 0..4
    if i.outer*4 + j < 10
      t[j] = x[i.outer*4 + j] + 1
  for i.inner in 0..4
    if i.outer*4 + i.inner < 10
      y[i.outer*4 + i.inner] = t[i.inner] * t[i.inner]
)");
}

TEST(ScheduleComputeAt, RegisterTileOfAMatmulRunsOverThePaddingOfPackedColumns) {
  Schedule s(testing::dense(5, 7, 3));
  const Tensor out = s.tensor("out"), c = s.tensor("C");
  s.pack(s.tensor("B"), {{1, 4}, {0}, {1, 4, true}});
  const auto [m, n] = s.axes<2>(out);
  const auto [m_outer, m_inner] = s.split(m, 2);
  const auto [n_outer, n_inner] = s.split(n, 4);
  s.reorder({n_outer, m_outer, m_inner, n_inner});
  s.compute_at(c, m_outer);
  s.set_scope(c, MemoryScope::kRegister);
  const auto [c_m, c_n] = s.inner_axes<2>(c);
  s.reorder({s.reduce_axes<1>(c)[0], c_m, c_n});
  ASSERT_TRUE(s.finish().is_ok()) << s.finish().message();
  // Rows are guarded (A has five), columns of B.packed exist up to the eighth.
  EXPECT_EQ(loops(s), R"(
for n.outer in 0..2
  for m.outer in 0..3
    allocate C float32[2, 4] register
    reduce k in 0..3
      for m in 0..2
        if m.outer*2 + m < 5
          for n in 0..4
            C[m, n] += A[m.outer*2 + m, k] * B.packed[n.outer, k, n], from 0 when k == 0
    for m.inner in 0..2
      if m.outer*2 + m.inner < 5
        for n.inner in 0..4
          if n.outer*4 + n.inner < 7
            out[m.outer*2 + m.inner, n.outer*4 + n.inner] = max(C[m.inner, n.inner] + bias[n.outer*4 + n.inner], 0)
)");
}

TEST(ScheduleComputeAt, ATileWiderThanTheShapeStaysWholeOverPadding) {
  Schedule s(testing::dense(1, 3, 2));
  s.pack(s.tensor("B"), {{1, 4}, {0}, {1, 4, true}});
  const auto [m, n] = s.axes<2>(s.tensor("out"));
  const auto [n_outer, n_inner] = s.split(n, 4);
  s.compute_at(s.tensor("C"), n_outer);
  EXPECT_EQ(loops(s), R"(
for m in 0..1
  for n.outer in 0..1
    allocate C float32[1, 4]
    for m_1 in 0..1
      for n in 0..4
        reduce k in 0..2
          C[0, n] += A[0, k] * B.packed[0, k, n], from 0 when k == 0
    for n.inner in 0..4
      if n.inner < 3
        out[0, n.inner] = max(C[0, n.inner] + bias[n.inner], 0)
)");
}

TEST(ScheduleComputeAt, TheHaloOfAConvolution) {
  Schedule s(
      testing::conv2d({.ic = 2, .h = 6, .w = 6, .oc = 2, .kh = 3, .kw = 3, .stride = 2, .padding = 1}));
  const Tensor out = s.tensor("out"), conv = s.tensor("conv");
  const auto [n, oc, oh, ow] = s.axes<4>(out);
  s.compute_at(conv, ow);
  s.compute_at(s.tensor("data_pad"), oh);
  EXPECT_EQ(loops(s), R"(
for n in 0..1
  for oc in 0..2
    for oh in 0..3
      allocate data_pad float32[1, 2, 3, 7]
      for n_1 in 0..1
        for c in 0..2
          for h in 0..3
            for w in 0..7
              data_pad[0, c, h, w] = select(oh*2 + h >= 1 && w >= 1, data[0, c, oh*2 + h - 1, w - 1], 0)
      for ow in 0..3
        allocate conv float32[1, 1, 1, 1]
        for n_1 in 0..1
          for oc_1 in 0..1
            for oh_1 in 0..1
              for ow_1 in 0..1
                reduce ic in 0..2
                  reduce kh in 0..3
                    reduce kw in 0..3
                      conv[0, 0, 0, 0] += data_pad[0, ic, kh, ow*2 + kw] * weight[oc, ic, kh, kw], from 0 when ic == 0 && kh == 0 && kw == 0
        out[0, oc, oh, ow] = max(conv[0, 0, 0, 0] + bias[oc], 0)
)");
}

// The loops of the reader go far past the shape; what it reads does not.
TEST(ScheduleComputeAt, ATileOfLittleButPaddingIsCutAtTheShape) {
  te::Builder b("sums");
  const Buffer a = b.input("a", {2, 3});
  const Buffer sum =
      b.reduce("sum", {2, 5}, {{"k", 3}}, ReduceOp::kSum, [&](const te::Indices& i, const te::Indices& r) {
        return load(a, {i[0], r[0]});
      });
  b.compute("y", {2, 5}, [&](const te::Indices& i) { return load(sum, i) * 2; }, BufferRole::kOutput,
            {"m", "n"});
  const Program program = b.finish();
  for (const int64_t factor : {int64_t{8}, int64_t{1} << 40}) {
    Schedule s(program);
    const auto [m, n] = s.axes<2>(s.tensor("y"));
    s.split(n, factor);
    s.compute_at(s.tensor("sum"), m);
    ASSERT_TRUE(s.finish().is_ok()) << s.finish().message();
    EXPECT_EQ(s.tensor("sum").buffer->shape, (std::vector<int64_t>{1, factor == 8 ? 8 : 5}));
  }
}

TEST(ScheduleComputeAt, RefusesReadersOutsideTheAxis) {
  te::Builder b("two_readers");
  const Buffer x = b.input("x", {4});
  const Buffer t = b.compute("t", {4}, [&](const te::Indices& i) { return load(x, i) + 1; });
  b.compute("y", {4}, [&](const te::Indices& i) { return load(t, i); }, BufferRole::kOutput, {"i"});
  b.compute("z", {4}, [&](const te::Indices& i) { return load(t, i); }, BufferRole::kOutput, {"j"});
  b.compute("apart", {4}, [&](const te::Indices& i) { return load(x, i); }, BufferRole::kOutput, {"k"});
  const Program program = b.finish();
  Schedule s(program);
  s.compute_at(s.tensor("t"), s.axes<1>(s.tensor("y"))[0]);
  EXPECT_EQ(s.finish().message(), "compute_at(t, i): a reader of t stands outside this axis");
  Schedule nobody(program);
  nobody.compute_at(nobody.tensor("t"), nobody.axes<1>(nobody.tensor("apart"))[0]);
  EXPECT_EQ(nobody.finish().message(), "compute_at(t, k): nothing under this axis reads t");
}

TEST(ScheduleComputeAt, RefusesOutputsOwnAxesAndSplitProducers) {
  {
    Schedule s(testing::two_stages(8));
    s.compute_at(s.tensor("y"), s.axes<1>(s.tensor("t"))[0]);
    EXPECT_EQ(s.finish().message(), "compute_at(y, j): y is an argument (output), computed whole");
  }
  {
    Schedule s(testing::two_stages(8));
    s.compute_at(s.tensor("t"), s.axes<1>(s.tensor("t"))[0]);
    EXPECT_EQ(s.finish().message(), "compute_at(t, j): this is an axis of t itself");
  }
  {
    Schedule s(testing::two_stages(8));
    s.split(s.axes<1>(s.tensor("t"))[0], 4);
    s.compute_at(s.tensor("t"), s.axes<1>(s.tensor("y"))[0]);
    EXPECT_EQ(
        s.finish().message(),
        "compute_at(t, i): dimension 0 of t is indexed by j.outer*4 + j.inner, not by one axis of its stage; "
        "split, fuse or move it later");
  }
}

TEST(ScheduleComputeAt, RefusesToMoveOutAgainOrAheadOfWhatItReads) {
  {
    Schedule s(testing::two_stages(8));
    const auto [outer, inner] = s.split(s.axes<1>(s.tensor("y"))[0], 4);
    s.compute_at(s.tensor("t"), inner);
    s.compute_at(s.tensor("t"), outer);
    EXPECT_EQ(
        s.finish().message(),
        "compute_at(t, i.outer): it is computed inside loop i.inner already and can only move further in");
  }
  {
    Schedule s(testing::dense(2, 3, 4));
    const Tensor c = s.tensor("C");
    s.compute_at(s.cache_read(s.tensor("A"), MemoryScope::kGlobal, c), s.reduce_axes<1>(c)[0]);
    s.compute_at(c, s.axes<2>(s.tensor("out"))[0]);
    EXPECT_EQ(s.finish().message(),
              "compute_at(C, out:m): other statements are computed inside reduce axis k of C; move them "
              "there later");
  }
}

TEST(ScheduleInline, ReadersComputeTheExpressionThemselves) {
  Schedule s(testing::two_stages(8, /*window=*/true));
  s.inline_compute(s.tensor("t"));
  EXPECT_EQ(loops(s), R"(
for i in 0..8
  y[i] = x[i] + 1 + (x[i + 1] + 1) + (x[i + 2] + 1)
)");
}

TEST(ScheduleInline, NoReductionIsOneExpression) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
    te::Builder b("rows");
    const Buffer x = b.input("x", {4, 3});
    const Buffer all = b.reduce("all", {4}, {{"k", 3}}, op, [&](const te::Indices& i, const te::Indices& r) {
      return load(x, {i[0], r[0]});
    });
    b.compute(
        "y", {4}, [&](const te::Indices& i) { return load(all, i); }, BufferRole::kOutput);
    Schedule s(b.finish());
    s.inline_compute(s.tensor("all"));
    EXPECT_EQ(s.finish().message(),
              "inline_compute(all): all is a reduction; its value is not one expression");
  }
}

TEST(ScheduleInline, PaddingGoesIntoTheConvolution) {
  Schedule s(testing::conv2d({.h = 3, .w = 3, .kh = 2, .kw = 1, .padding = 1}));
  s.inline_compute(s.tensor("data_pad"));
  s.inline_compute(s.tensor("conv"));
  EXPECT_EQ(s.finish().message(),
            "inline_compute(conv): conv is a reduction; its value is not one expression");
  EXPECT_EQ(loops(s), R"(
allocate conv float32[1, 1, 4, 5]
for n in 0..1
  for oc in 0..1
    for oh in 0..4
      for ow in 0..5
        reduce ic in 0..1
          reduce kh in 0..2
            reduce kw in 0..1
              conv[0, 0, oh, ow] += select(oh + kh >= 1 && oh + kh < 4 && ow >= 1 && ow < 4, data[0, 0, oh + kh - 1, ow - 1], 0) * weight[0, 0, kh, 0], from 0 when kh == 0
for n in 0..1
  for oc in 0..1
    for oh in 0..4
      for ow in 0..5
        out[0, 0, oh, ow] = max(conv[0, 0, oh, ow] + bias[0], 0)
)");
}

}  // namespace
}  // namespace tuner
