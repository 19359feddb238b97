// carry_sums: the loops that come out, that the sums stay what they are, and what is refused.
#include <gtest/gtest.h>

#include "compiler_core/lower/lower.h"
#include "compiler_core/oracle/oracle.h"
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

// y[i, j] = sum over k of a[i, k] * b[k, j], k in blocks of 4: part of a block in each tile of 2 rows.
struct Blocks {
  Blocks() : s(program()) {
    y = s.tensor("y");
    const auto [k] = s.reduce_axes<1>(y);
    part = s.rfactor(y, s.split(k, 4).outer);
    const auto [i, j] = s.axes<2>(y);
    const auto [block] = s.reduce_axes<1>(y);
    const auto [tile, row] = s.split(i, 2);
    s.reorder({block, tile, row, j});
    s.compute_at(part, tile);
    const std::vector<Axis> own = s.spatial_axes(part);  // k.outer, i, j
    inside = s.reduce_axes<1>(part)[0];
    s.reorder({inside, own[1], own[2]});
    part_row = own[1];
    column = j;
  }
  static Program program() {
    te::Builder b("product");
    const Buffer a = b.input("a", {6, 12}), weights = b.input("b", {12, 3});
    b.reduce("y", {6, 3}, {{"k", 12}}, ReduceOp::kSum,
             [&](const te::Indices& i, const te::Indices& r) {
               return load(a, {i[0], r[0]}) * load(weights, {r[0], i[1]});
             },
             BufferRole::kOutput, {"i", "j"});
    return b.finish();
  }
  std::string refusal() const {
    const auto program = s.finish();
    return program.is_ok() ? "none" : program.message();
  }

  Schedule s;
  Tensor y, part;
  Axis inside, part_row, column;
};

TEST(ScheduleCarry, PartsBeginWithTheSumsSoFar) {
  Blocks b;
  b.s.decompose_reduction(b.part, b.inside);
  const std::vector<Axis> loads = b.s.carry_sums(b.part, b.y);
  ASSERT_FALSE(b.s.refused()) << b.refusal();
  ASSERT_EQ(loads.size(), 2u);
  b.s.unroll(loads[1]);
  EXPECT_EQ("\n" + to_text(b.s.program().body), R"(
reduce k.outer in 0..3
  for i.outer in 0..3
    allocate y.partial float32[1, 2, 3]
    for k.outer_1 in 0..1
      if k.outer == 0
        for i.init in 0..2
          for j.init in 0..3
            y.partial[0, i.init, j.init] = 0
      else
        for i.inner.carried in 0..2
          unrolled j.carried in 0..3
            y.partial[0, i.inner.carried, j.carried] = y[i.outer*2 + i.inner.carried, j.carried]
      reduce k.inner in 0..4
        for i in 0..2
          for j in 0..3
            y.partial[0, i, j] += a[i.outer*2 + i, k.outer*4 + k.inner] * b[k.outer*4 + k.inner, j]
    for i.inner in 0..2
      for j in 0..3
        y[i.outer*2 + i.inner, j] = y.partial[0, i.inner, j]
)");
}

TEST(ScheduleCarry, ChangesNoSum) {
  Blocks b;
  b.s.decompose_reduction(b.part, b.inside);
  b.s.carry_sums(b.part, b.y);
  const auto program = b.s.finish();
  ASSERT_TRUE(program.is_ok()) << program.message();
  std::vector<std::vector<double>> plain(3), carried;
  for (int i = 0; i < 6 * 12; ++i) plain[0].push_back(i % 11);
  for (int i = 0; i < 12 * 3; ++i) plain[1].push_back(i % 7);
  carried = plain;
  ASSERT_TRUE(interpret(Blocks::program(), plain).is_ok());
  const auto lowered = lower(*program, 4096);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const Status status = interpret(*lowered, carried);
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(carried, plain);
  // And again by its trace.
  const auto replayed = replay(Blocks::program(), b.s.trace());
  ASSERT_TRUE(replayed.is_ok()) << replayed.message();
  EXPECT_EQ(to_text(replayed->body), to_text(program->body));
}

TEST(ScheduleCarry, RefusesWhatAddsOtherwise) {
  {
    Blocks b;
    b.s.carry_sums(b.part, b.y);
    EXPECT_EQ(b.refusal(),
              "carry_sums(y.partial, y): y.partial is not a sum with an initialisation; decompose_reduction "
              "first");
  }
  {
    Blocks b;
    b.s.decompose_reduction(b.part, b.inside);
    b.s.vectorize(b.column);
    b.s.carry_sums(b.part, b.y);
    EXPECT_EQ(
        b.refusal(),
        "carry_sums(y.partial, y): more than serial spatial loops stand around the sum of y; do that later");
  }
  {
    Blocks b;
    b.s.decompose_reduction(b.part, b.inside);
    b.s.split(b.column, 2);
    b.s.carry_sums(b.part, b.y);
    EXPECT_EQ(
        b.refusal(),
        "carry_sums(y.partial, y): more than serial spatial loops stand around the sum of y; do that later");
  }
  {  // Rows outside of the terms: each would begin with the sums of all.
    Blocks b;
    b.s.reorder({b.part_row, b.inside});
    b.s.decompose_reduction(b.part, b.inside);
    b.s.carry_sums(b.part, b.y);
    EXPECT_EQ(b.refusal(),
              "carry_sums(y.partial, y): y.partial is initialised inside loop i, a part at a time; "
              "decompose_reduction at its outermost loop");
  }
  {
    Blocks b;
    b.s.decompose_reduction(b.part, b.inside);
    b.s.carry_sums(b.y, b.part);
    EXPECT_EQ(b.refusal(), "carry_sums(y, y.partial): y.partial is not a sum of elements of y");
  }
}

// The last share of an uneven split has fewer terms: what it has not must change nothing.
TEST(ScheduleRfactor, AnUnevenShareOfAMaximumBeginsBelowAllNumbers) {
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kSum}) {
    te::Builder b("extremes");
    const Buffer x = b.input("x", {2, 5});
    b.reduce("y", {2}, {{"k", 5}}, op,
             [&](const te::Indices& i, const te::Indices& r) {
               return load(x, {i[0], r[0]});
             },
             BufferRole::kOutput, {"i"});
    Schedule s(b.finish());
    const Tensor y = s.tensor("y");
    s.rfactor(y, s.split(s.reduce_axes<1>(y)[0], 4).outer);
    const auto program = s.finish();
    ASSERT_TRUE(program.is_ok()) << program.message();
    std::vector<std::vector<double>> args{{-5, -4, -3, -2, -6, 5, 4, 3, 2, 6}, {}};
    ASSERT_TRUE(interpret(*program, args).is_ok());
    const std::vector<double> expected = op == ReduceOp::kMax   ? std::vector<double>{-2, 6}
                                         : op == ReduceOp::kMin ? std::vector<double>{-6, 2}
                                                                : std::vector<double>{-20, 20};
    EXPECT_EQ(args[1], expected);
  }
}

}  // namespace
}  // namespace tuner
