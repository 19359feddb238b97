// prefetch: the statements that come out, that they change nothing, and what is refused.
#include <gtest/gtest.h>

#include "compiler_core/lower/lower.h"
#include "compiler_core/oracle/oracle.h"
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

// y[j] = sum over k of a[k] * b[k, j], 32 columns in tiles of two vectors.
struct Product {
  Product() : s(program()) {
    acc = s.tensor("y");
    const auto [j] = s.axes<1>(acc);
    const auto [sum] = s.reduce_axes<1>(acc);
    const auto [vector, lane] = s.split(j, 8);
    s.reorder({sum, vector, lane});
    s.unroll(vector);
    s.vectorize(lane);
    k = sum;
    v = vector;
  }
  static Program program() {
    te::Builder b("product");
    const Buffer a = b.input("a", {12}), weights = b.constant("b", {12, 16});
    b.reduce("y", {16}, {{"k", 12}}, ReduceOp::kSum,
             [&](const te::Indices& i, const te::Indices& r) {
               return load(a, {r[0]}) * load(weights, {r[0], i[0]});
             },
             BufferRole::kOutput, {"j"});
    return b.finish();
  }
  Schedule s;
  Tensor acc;
  Axis k, v;
};

TEST(SchedulePrefetch, AsksForEachVectorOfALaterIteration) {
  Product p;
  p.s.prefetch(p.s.tensor("b"), p.acc, p.k, 4);
  ASSERT_FALSE(p.s.refused()) << p.s.finish().message();
  EXPECT_EQ("\n" + to_text(p.s.program().body), R"(
reduce k in 0..12
  unrolled j.outer.ahead in 0..2
    prefetch(b[k + 4, j.outer.ahead*8])
  unrolled j.outer in 0..2
    vectorized j.inner in 0..8
      y[j.outer*8 + j.inner] += a[k] * b[k, j.outer*8 + j.inner], from 0 when k == 0
)");
}

TEST(SchedulePrefetch, ChangesNoValueAlsoWhereItAsksBeyondTheEnd) {
  Product p;
  p.s.prefetch(p.s.tensor("b"), p.acc, p.k, 4);
  p.s.prefetch(p.s.tensor("a"), p.acc, p.k, 100);
  const auto program = p.s.finish();
  ASSERT_TRUE(program.is_ok()) << program.message();
  std::vector<std::vector<double>> plain(3), asked;
  for (int i = 0; i < 12; ++i) plain[0].push_back(i);
  for (int i = 0; i < 12 * 16; ++i) plain[1].push_back(i % 7);
  asked = plain;
  ASSERT_TRUE(interpret(Product::program(), plain).is_ok());
  const auto lowered = lower(*program, 4096);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const Status status = interpret(*lowered, asked);
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(asked, plain);
}

// y[t, j] = sum over k of a[t, k] * b[k, j], 32 columns in panels of vectors, for some tiles t a panel.
struct Panels {
  explicit Panels(int64_t tiles, int64_t vectors) : s(program(tiles)) {
    panels = s.pack(s.tensor("b"), {{1, 8 * vectors}, {0}, {1, 8 * vectors, true}});
    acc = s.tensor("y");
    const auto [t, j] = s.axes<2>(acc);
    const auto [sum] = s.reduce_axes<1>(acc);
    const auto [outer, inner] = s.split(j, 8 * vectors);
    const auto [vector, lane] = s.split(inner, 8);
    s.reorder({outer, t, sum, vector, lane});
    s.unroll(vector);
    s.vectorize(lane);
    panel = outer;
    tile = t;
    k = sum;
    v = vector;
  }
  static Program program(int64_t tiles) {
    te::Builder builder("products");
    const Buffer a = builder.input("a", {tiles, 12}), b = builder.constant("b", {12, 32});
    builder.reduce("y", {tiles, 32}, {{"k", 12}}, ReduceOp::kSum,
                   [&](const te::Indices& i, const te::Indices& r) {
                     return load(a, {i[0], r[0]}) * load(b, {r[0], i[1]});
                   },
                   BufferRole::kOutput, {"t", "j"});
    return builder.finish();
  }
  Schedule s;
  Tensor panels, acc;
  Axis panel, tile, k, v;
};

TEST(SchedulePrefetch, EachTileAsksForOneVectorOfTheNextPanel) {
  Panels p(5, 2);
  p.s.prefetch_next(p.panels, p.acc, p.panel, p.tile);
  ASSERT_FALSE(p.s.refused()) << p.s.finish().message();
  EXPECT_EQ("\n" + to_text(p.s.program().body), R"(
for j.outer in 0..2
  for t in 0..5
    reduce k in 0..12
      prefetch.l2(b.packed[j.outer + 1, k, t%2*8])
      unrolled j.inner.outer in 0..2
        vectorized j.inner.inner in 0..8
          y[t, j.outer*16 + j.inner.outer*8 + j.inner.inner] += a[t, k] * b.packed[j.outer, k, j.inner.outer*8 + j.inner.inner], from 0 when k == 0
)");
}

TEST(SchedulePrefetch, FewTilesAskForSeveralVectorsEach) {
  Panels p(1, 2);
  p.s.prefetch_next(p.panels, p.acc, p.panel, p.tile);
  ASSERT_FALSE(p.s.refused()) << p.s.finish().message();
  EXPECT_EQ("\n" + to_text(p.s.program().body), R"(
for j.outer in 0..2
  for t in 0..1
    reduce k in 0..12
      unrolled t.ahead in 0..2
        prefetch.l2(b.packed[j.outer + 1, k, (t*2 + t.ahead)%2*8])
      unrolled j.inner.outer in 0..2
        vectorized j.inner.inner in 0..8
          y[0, j.outer*16 + j.inner.outer*8 + j.inner.inner] += a[0, k] * b.packed[j.outer, k, j.inner.outer*8 + j.inner.inner], from 0 when k == 0
)");
}

TEST(SchedulePrefetch, NextPanelsReplayAndChangeNoValue) {
  Panels p(5, 2);
  p.s.prefetch_next(p.panels, p.acc, p.panel, p.tile);
  const auto again = replay(Panels::program(5), p.s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(p.s.program()));
  std::vector<std::vector<double>> plain(3), asked;
  for (int i = 0; i < 5 * 12; ++i) plain[0].push_back(i);
  for (int i = 0; i < 12 * 32; ++i) plain[1].push_back(i % 7);
  asked = plain;
  ASSERT_TRUE(interpret(Panels::program(5), plain).is_ok());
  const Status status = interpret(*again, asked);
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(asked, plain);
}

// 16 numbers of 4 bytes are a line of 64, which one request brings.
TEST(SchedulePrefetch, ALineIsAskedForOnce) {
  const auto asked = [](int64_t terms) {
    te::Builder builder("products");
    const Buffer a = builder.input("a", {5, terms}), b = builder.constant("b", {terms, 4});
    builder.reduce("y", {5, 4}, {{"k", terms}}, ReduceOp::kSum,
                   [&](const te::Indices& i, const te::Indices& r) {
                     return load(a, {i[0], r[0]}) * load(b, {r[0], i[1]});
                   },
                   BufferRole::kOutput, {"t", "j"});
    Schedule s(builder.finish());
    const Tensor y = s.tensor("y");
    const auto [t, j] = s.axes<2>(y);
    const auto [outer, inner] = s.split(j, 2);
    s.prefetch_next(s.tensor("a"), y, t, outer, inner);
    EXPECT_FALSE(s.refused()) << s.finish().message();
    return to_text(s.program().body);
  };
  EXPECT_NE(asked(16).find("for j.inner in 0..2\n      prefetch.l2(a[t + 1, 0])\n"), std::string::npos)
      << asked(16);
  EXPECT_NE(asked(17).find("j.outer.ahead in 0..9"), std::string::npos) << asked(17);
}

TEST(SchedulePrefetch, RefusalsOfNextPanelsNameTheReason) {
  const auto refusal = [](const auto& call) {
    Panels p(5, 2);
    call(p);
    return p.s.finish().message();
  };
  EXPECT_EQ(refusal([](Panels& p) { p.s.prefetch_next(p.panels, p.acc, p.tile, p.panel); }),
            "prefetch_next(b.packed, y, t, j.outer): j.outer is not inside t");
  EXPECT_EQ(refusal([](Panels& p) { p.s.prefetch_next(p.s.tensor("a"), p.acc, p.panel, p.tile); }),
            "prefetch_next(a, y, j.outer, t): y reads other elements of a in each iteration of t");
  EXPECT_EQ(refusal([](Panels& p) { p.s.prefetch_next(p.panels, p.acc, p.panel, p.k); }),
            "prefetch_next(b.packed, y, j.outer, k): no serial loop is inside k");
  EXPECT_EQ(refusal([](Panels& p) { p.s.prefetch_next(p.panels, p.acc, p.v, p.v); }),
            "prefetch_next(b.packed, y, j.inner.outer, j.inner.outer): the axis is unrolled; only a serial "
            "one has a "
            "next iteration");
  EXPECT_EQ(refusal([](Panels& p) { p.s.prefetch_next(p.panels, p.acc, p.panel, p.tile, p.v); }),
            "prefetch_next(b.packed, y, j.outer, t, j.inner.outer): j.inner.outer is unrolled, not serial");
  EXPECT_EQ(refusal([](Panels& p) { p.s.prefetch_next(p.acc, p.acc, p.panel, p.tile); }),
            "prefetch_next(y, y, j.outer, t): y does not read y");
  Panels whole(2, 4);
  whole.s.prefetch_next(whole.panels, whole.acc, whole.panel, whole.tile);
  EXPECT_EQ(whole.s.finish().message(),
            "prefetch_next(b.packed, y, j.outer, t): y reads the same elements of b.packed in each iteration "
            "of j.outer");
}

TEST(SchedulePrefetch, ReplaysFromItsText) {
  Product p;
  p.s.prefetch(p.s.tensor("b"), p.acc, p.k, 4);
  const auto again = replay(Product::program(), p.s.trace());
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(to_text(*again), to_text(p.s.program()));
}

// A loop around requests computes nothing, so no stage has it: a trace that says so is refused.
TEST(SchedulePrefetch, LoopsOfRequestsBelongToNoStage) {
  Product p;
  p.s.prefetch(p.s.tensor("b"), p.acc, p.k, 4);
  const auto again = replay(Product::program(), p.s.trace() + "unroll(y:j.outer.ahead)\n");
  EXPECT_FALSE(again.is_ok());
  EXPECT_NE(again.message().find("y:j.outer.ahead"), std::string::npos) << again.message();
}

TEST(SchedulePrefetch, RefusalsNameTheReason) {
  const auto refusal = [](const auto& call) {
    Product p;
    call(p);
    return p.s.finish().message();
  };
  EXPECT_EQ(refusal([](Product& p) { p.s.prefetch(p.s.tensor("b"), p.acc, p.k, 0); }),
            "prefetch(b, y, k, 0): must ask at least 1 iteration ahead");
  EXPECT_EQ(refusal([](Product& p) { p.s.prefetch(p.acc, p.acc, p.k, 1); }),
            "prefetch(y, y, k, 1): y does not read y");
  EXPECT_EQ(refusal([](Product& p) { p.s.prefetch(p.s.tensor("b"), p.acc, p.v, 1); }),
            "prefetch(b, y, j.outer, 1): the axis is unrolled; only a serial one has a next iteration");
  EXPECT_EQ(refusal([](Product& p) { p.s.prefetch(p.s.tensor("b"), p.s.tensor("a"), p.k, 1); }),
            "prefetch(b, a, k, 1): a is not computed in this Program");
  EXPECT_EQ(refusal([](Product& p) { p.s.prefetch(p.s.tensor("b"), p.acc, Axis{make_var("x")}, 1); }),
            "prefetch(b, y, x, 1): not an axis around y");
}

}  // namespace
}  // namespace tuner
