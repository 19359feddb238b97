// Tensor expressions become plain loops; and the same Program in another float type.
#include "compiler_core/te/te.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler_core/ir/visitor.h"
#include "tests/compiler_core/programs.h"

namespace tuner {
namespace {

TEST(Te, StagesInOrderWithTheirIntermediates) {
  EXPECT_EQ("\n" + to_text(testing::dense(2, 3, 4)), R"(
kernel dense(input A float32[2, 4], constant B float32[4, 3], input bias float32[3], output out float32[2, 3])
  allocate C float32[2, 3]
  for m in 0..2
    for n in 0..3
      reduce k in 0..4
        C[m, n] += A[m, k] * B[k, n], from 0 when k == 0
  for m in 0..2
    for n in 0..3
      out[m, n] = max(C[m, n] + bias[n], 0)
)");
}

TEST(Te, ReductionsStartWhereTheirOperationDoes) {
  const auto program = [](ReduceOp op) {
    te::Builder b("reduction");
    const Buffer x = b.input("x", {3, 2});
    b.reduce(
        "y", {3}, {{"r", 2}}, op,
        [&](const te::Indices& i, const te::Indices& r) {
          return load(x, {i[0], r[0]});
        },
        BufferRole::kOutput);
    return "\n" + to_text(b.finish().body);
  };
  EXPECT_EQ(program(ReduceOp::kMax), R"(
for i0 in 0..3
  reduce r in 0..2
    y[i0] max= x[i0, r], from -inf when r == 0
)");
  EXPECT_EQ(program(ReduceOp::kMin), R"(
for i0 in 0..3
  reduce r in 0..2
    y[i0] min= x[i0, r], from inf when r == 0
)");
}

TEST(Te, ReductionsOfIntegersStartAtTheEndsOfTheirType) {
  const auto start = [](ReduceOp op, DType dtype) {
    te::Builder b("reduction");
    const Buffer x = b.input("x", {2}, dtype);
    b.reduce(
        "y", {}, {{"r", 2}}, op,
        [&](const te::Indices& /*i*/, const te::Indices& r) { return load(x, {r[0]}); }, BufferRole::kOutput);
    int64_t value = 0;
    visit(b.finish().body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kStore) value = s->init->int_value;
    });
    return value;
  };
  EXPECT_EQ(start(ReduceOp::kMax, DType::kInt8), -128);
  EXPECT_EQ(start(ReduceOp::kMin, DType::kUInt8), 255);
  EXPECT_EQ(start(ReduceOp::kMin, DType::kInt64), INT64_MAX);
  EXPECT_EQ(start(ReduceOp::kSum, DType::kInt32), 0);
  EXPECT_EQ(start(ReduceOp::kMin, DType::kInt8), 127);
  EXPECT_EQ(start(ReduceOp::kMax, DType::kUInt8), 0);
  EXPECT_EQ(start(ReduceOp::kMax, DType::kInt32), -2147483648);
  EXPECT_EQ(start(ReduceOp::kMin, DType::kInt32), 2147483647);
  EXPECT_EQ(start(ReduceOp::kMax, DType::kInt64), INT64_MIN);
}

TEST(Te, ASumOverTwoAxesStartsOnce) {
  te::Builder b("both");
  const Buffer x = b.input("x", {2, 3});
  b.reduce(
      "y", {}, {{"r", 2}, {"s", 3}}, ReduceOp::kSum,
      [&](const te::Indices& /*i*/, const te::Indices& r) { return load(x, r); }, BufferRole::kOutput);
  EXPECT_EQ("\n" + to_text(b.finish().body), R"(
reduce r in 0..2
  reduce s in 0..3
    y[] += x[r, s], from 0 when r == 0 && s == 0
)");
}

// Outputs in their order, whatever is declared before or behind them.
TEST(Te, OutputsAreLastInTheirOrder) {
  te::Builder b("order");
  const auto number = [](const te::Indices& i) { return cast(DType::kFloat32, i[0]); };
  const Buffer held = b.in_out("held", {2}), a = b.input("a", {2});
  b.compute("first", {2}, number, BufferRole::kOutput);
  const Buffer c = b.constant("c", {2});
  b.compute(
      "held", {2}, [&](const te::Indices& i) { return load(held, i) + load(a, i); }, BufferRole::kOutput);
  b.compute(
      "last", {2}, [&](const te::Indices& i) { return load(c, i); }, BufferRole::kOutput);
  std::string names;
  for (const Buffer& arg : b.finish().args) names += arg->name + " ";
  EXPECT_EQ(names, "a c held first last ");
}

TEST(Te, AResultOfAGivenTypeHasIt) {
  te::Builder b("typed");
  const Buffer y = b.compute(
      "y", {3}, [](const te::Indices& i) { return i[0] + Expr(1); }, BufferRole::kOutput, {}, DType::kInt64);
  EXPECT_EQ(y->dtype, DType::kInt64);  // without it, indices take the builder's type
  EXPECT_EQ("\n" + to_text(b.finish().body), R"(
for i0 in 0..3
  y[i0] = i0 + 1
)");
}

TEST(Te, EveryFloatTypeIsReplacedAndTheOriginalStays) {
  const Program p = testing::dense(2, 3, 4);
  const std::string before = to_text(p);
  const Program d = te::with_float_type(p, DType::kFloat64);
  EXPECT_EQ(to_text(p), before);
  std::string expected = before;
  for (size_t at; (at = expected.find("float32")) != std::string::npos;) expected.replace(at, 7, "float64");
  EXPECT_EQ(to_text(d), expected);
  visit_exprs(d.body, [&](const Expr& e) { EXPECT_NE(e->dtype, DType::kFloat32) << to_text(e); });
  for (size_t i = 0; i < p.args.size(); ++i) {
    EXPECT_EQ(d.args[i]->name, p.args[i]->name);
    EXPECT_EQ(d.args[i]->dtype, DType::kFloat64);
    EXPECT_NE(d.args[i], p.args[i]);
  }
}

TEST(Te, WhatBecomesAnIntegerKeepsItsType) {
  const Buffer x = make_buffer("x", DType::kFloat32, {4}, MemoryScope::kGlobal, BufferRole::kInput);
  const Buffer y = make_buffer("y", DType::kInt32, {4}, MemoryScope::kGlobal, BufferRole::kOutput);
  const Var i = make_var("i");
  const Program p{
      "p",
      {x, y},
      make_for(
          i, 4,
          make_store(y, {i}, cast(DType::kInt32, unary(UnaryOp::kRound, load(x, {i}) * float_imm(0.1)))))};
  EXPECT_EQ(to_text(te::with_float_type(p, DType::kFloat64)),
            R"(kernel p(input x float64[4], output y int32[4])
  for i in 0..4
    y[i] = int32(round(float32(x[i]) * 0.1))
)");
}

TEST(Te, ThePackingEntryUsesTheSameReplacedBuffers) {
  Schedule s(testing::matmul(2, 8, 3));
  s.pack(s.tensor("B"), {{1, 4}, {0}, {1, 4, true}});
  const Program d = te::with_float_type(*s.finish(), DType::kFloat64);
  EXPECT_EQ(d.packing->args[1], d.args[1]);
}

TEST(Te, NumbersTakeTheTypeBesideThem) {
  const Buffer x = make_buffer("x", DType::kFloat64, {4});
  const Expr e = load(x, {0}) * 2 + float_imm(0.5);
  EXPECT_EQ(e->dtype, DType::kFloat64);
  EXPECT_EQ(to_text(e), "x[0] * 2 + 0.5");
  EXPECT_EQ(to_text((load(x, {1}) - (load(x, {2}) - load(x, {3}))) / 3), "(x[1] - (x[2] - x[3])) / 3");
}

TEST(Te, IndexConstantsFold) {
  const Var i = make_var("i");
  EXPECT_EQ(to_text(Expr(i) * 1 + 0), "i");
  EXPECT_EQ(to_text(floor_div(Expr(-7), 2)), "-4");
  EXPECT_EQ(to_text(floor_mod(Expr(-7), 2)), "1");
  EXPECT_EQ(to_text(floor_mod(Expr(i), 1)), "0");
  EXPECT_EQ(to_text(Expr(0) - i), "0 - i");
  EXPECT_EQ(to_text(Expr(0) * i + bit_xor(0, i) - 0), "i");
}

TEST(Te, ExpressionsAreEqualIfAllOfThemIs) {
  const Buffer x = make_buffer("x", DType::kFloat32, {4}), y = make_buffer("y", DType::kFloat32, {4});
  const Var i = make_var("i"), j = make_var("i");
  EXPECT_TRUE(equal(load(x, {Expr(i) + 1}), load(x, {Expr(i) + 1})));
  EXPECT_FALSE(equal(load(x, {i}), load(y, {i}))) << "another tensor";
  EXPECT_FALSE(equal(load(x, {i}), load(x, {j}))) << "another variable of the same name";
  EXPECT_FALSE(equal(min(Expr(i), 3), max(Expr(i), 3)));
  EXPECT_FALSE(equal(unary(UnaryOp::kExp, load(x, {i})), unary(UnaryOp::kLog, load(x, {i}))));
  EXPECT_FALSE(equal(cast(DType::kInt8, load(x, {i})), cast(DType::kUInt8, load(x, {i}))));
  EXPECT_FALSE(equal(int_imm(0, DType::kInt32), Expr(0)));
  EXPECT_FALSE(equal(float_imm(0.5), float_imm(0.25)));
  EXPECT_TRUE(equal(float_imm(NAN), float_imm(NAN)));
}

}  // namespace
}  // namespace tuner
