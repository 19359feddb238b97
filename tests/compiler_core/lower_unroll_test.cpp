// Unrolling, and the reductions that become plain stores before it.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler_core/lower/lower.h"
#include "tests/compiler_core/kernel_testing.h"

namespace tuner {
namespace {

using namespace tuner::testing;

const Buffer x = input("x", {16}), y = output("y", {16});

std::string unrolled(const Stmt& body) {
  const Result<Program> p = unroll_loops({"p", {}, body}, 100);
  return p ? "\n" + to_text(simplify_program(*p).body) : p.message();
}

TEST(LowerUnroll, EveryIterationIsWrittenOut) {
  const Stmt s =
      loop("i", 3, LoopKind::kUnrolled, [&](Expr i) { return make_store(y, {i * 4 + 1}, load(x, {i})); });
  EXPECT_EQ(unrolled(s), R"(
y[1] = x[0]
y[5] = x[1]
y[9] = x[2]
)");
}

TEST(LowerUnroll, GuardsOfSingleIterationsFold) {
  const Stmt s = loop("i", 4, LoopKind::kUnrolled,
                      [&](Expr i) { return make_if(i * 8 < 20, make_store(y, {i}, load(x, {i}))); });
  EXPECT_EQ(unrolled(s), R"(
y[0] = x[0]
y[1] = x[1]
y[2] = x[2]
)");
}

TEST(LowerUnroll, LoopsThatIndexRegistersAreUnrolledUnasked) {
  const Buffer acc = scratch("acc", {2}, MemoryScope::kRegister);
  const Stmt s = make_allocate(acc, loop("i", 2, [&](Expr i) { return make_store(acc, {i}, float_imm(0)); }));
  EXPECT_EQ(unrolled(s).find("for i"), std::string::npos) << unrolled(s);
  const Stmt other = loop("i", 2, [&](Expr i) { return make_store(y, {i}, float_imm(0)); });
  EXPECT_NE(unrolled(other).find("for i"), std::string::npos) << unrolled(other);
}

TEST(LowerUnroll, RefusesMoreStoresThanAllowed) {
  const auto stores = [](int64_t n) {
    return loop("i", n, LoopKind::kUnrolled, [&](Expr i) {
      return loop("j", 10, LoopKind::kUnrolled, [&](Expr) { return make_store(y, {i}, float_imm(0)); });
    });
  };
  const std::string as_many = unrolled(stores(10));
  EXPECT_EQ(std::ranges::count(as_many, '='), 100) << as_many;
  EXPECT_EQ(unrolled(stores(11)), "p: unrolls to more than 100 stores; unroll less or choose smaller tiles");
}

TEST(LowerReductions, AnUndecomposedReductionInitialisesAtItsFirstIteration) {
  const Var k = make_var("k");
  const Stmt s = make_for(k, 4,
                          make_reduce(y, {0}, ReduceOp::kMax, float_imm(-1), load(x, {Expr(k)}),
                                      binary(BinaryOp::kEq, Expr(k), 0)),
                          AxisKind::kReduce);
  EXPECT_EQ("\n" + to_text(lower_reductions({"p", {}, s}).body), R"(
reduce k in 0..4
  if k == 0
    y[0] = -1
  y[0] = max(y[0], x[k])
)");
}

}  // namespace
}  // namespace tuner
