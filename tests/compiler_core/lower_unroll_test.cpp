// Unrolling, the reductions that become plain stores before it, and what each pass of the list does.
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

// What a pass changes: a text that stands there before it, and one that stands there behind it.
struct Change {
  std::string_view pass;
  Stmt of;
  const char *before, *behind;
};

std::vector<Change> changes() {
  const Buffer out = output("out", {100}), in = input("in", {100});
  const auto copy = [&](const Expr& to, const Expr& from) { return make_store(out, {to}, load(in, {from})); };
  const Stmt sum = loop("k", 4, [&](const Expr& k) {
    return make_reduce(out, {0}, ReduceOp::kSum, float_imm(0), load(in, {k}), binary(BinaryOp::kEq, k, 0));
  });
  const Stmt tail = loop("o", 3, [&](const Expr& o) {
    return loop("r", 8, LoopKind::kUnrolled, [&](const Expr& r) {
      return make_if(o * 8 + r < 20, copy(o * 8 + r, floor_mod(o * 8 + r, 64)));
    });
  });
  // Guards decided one inside the other, about r//2 + o*8: a test of o alone tells as much.
  const Stmt sums = loop("r", 6, LoopKind::kUnrolled, [&](const Expr& r) {
    return loop("o", 9,
                [&](const Expr& o) { return make_if(floor_div(r, 2) + o * 8 < 6, copy(r + o, r + o)); });
  });
  // Nothing of the first branch is left once r is a number.
  const Stmt branches = loop("i", 100, [&](const Expr& i) {
    const Stmt never = loop("r", 2, LoopKind::kUnrolled, [&](const Expr& r) {
      return make_if(binary(BinaryOp::kEq, r * 200 + i, 150), copy(i, 0));
    });
    return make_if(i < 50, never, copy(i, i));
  });
  return {{"reductions", sum, "out[0] += in[k]", "if k == 0\n    out[0] = 0"},
          {"simplify", tail, "in[(o*8 + r)%64]", "in[o*8 + r]"},
          {"partition", tail, "if o*8 + r < 20", "if o <= 1\n"},
          {"simplify-2", sums, "r//2 + o*8 >= 4", "if o < 1\n"},
          {"unroll", tail, "unrolled r", "out[19] = in[19]"},
          {"simplify-3", branches, "if !(i < 50)", "if i >= 50"}};
}

std::string lowered_until(const Stmt& body, std::string_view last) {
  const Result<Program> p = lower({"p", {}, body}, 4096, last);
  return p ? to_text(p->body) : p.message();
}

TEST(LoweringPasses, EachChangesTheProgramThatItIsFor) {
  const std::vector<Change> all = changes();
  EXPECT_EQ(all.size(), lowering_passes().size());
  std::string before;
  for (const LoweringPass& pass : lowering_passes()) {
    const auto change = std::ranges::find(all, pass.name, &Change::pass);
    ASSERT_NE(change, all.end()) << pass.name << ": no Program shows what it does";
    const std::string earlier = before.empty() ? to_text(change->of) : lowered_until(change->of, before);
    const std::string later = lowered_until(change->of, pass.name);
    EXPECT_NE(earlier.find(change->before), std::string::npos) << pass.name << "\n" << earlier;
    EXPECT_EQ(earlier.find(change->behind), std::string::npos) << pass.name << "\n" << earlier;
    EXPECT_EQ(later.find(change->before), std::string::npos) << pass.name << "\n" << later;
    EXPECT_NE(later.find(change->behind), std::string::npos) << pass.name << "\n" << later;
    before = pass.name;
  }
}

TEST(LoweringPasses, BehindTheLastOneIsTheWhole) {
  for (const Change& change : changes())
    EXPECT_EQ(lowered_until(change.of, lowering_passes().back().name), lowered_until(change.of, ""));
}

}  // namespace
}  // namespace tuner
