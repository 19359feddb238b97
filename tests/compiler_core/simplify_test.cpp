// Index arithmetic: what simplifies to what, and that it stays the same number everywhere.
#include "compiler_core/arith/simplify.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "compiler_core/analysis/regions.h"
#include "compiler_core/ir/visitor.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

struct Vars : ::testing::Test {
  Var o = make_var("o"), i = make_var("i"), r = make_var("r"), f = make_var("f");
  RangeMap ranges;
  std::string text(const Expr& e) { return to_text(simplify(e, ranges)); }
};
using Simplify = Vars;

TEST_F(Simplify, SplitsDivisionsIntoWhatDividesAndWhatDoesNot) {
  ranges.bind(o, 4), ranges.bind(i, 14);
  EXPECT_EQ(text(floor_div(Expr(o) * 14 + i, 7)), "o*2 + i//7");
  EXPECT_EQ(text(floor_mod(Expr(o) * 14 + i, 7)), "i%7");
  EXPECT_EQ(text(floor_div(Expr(o) * 14 + i, 14)), "o");
  EXPECT_EQ(text(floor_mod(Expr(o) * 14 + i, 14)), "i");
  EXPECT_EQ(text(floor_div(Expr(o) * 28 + i, 56)), "o//2");
  EXPECT_EQ(text(floor_mod(Expr(o) * 28 + i, 56)), "o%2*28 + i");
}

TEST_F(Simplify, TheSmallerOfTwoMultiplesIsOne) {
  ranges.bind(o, 100), ranges.bind(i, 14);
  const Expr edge = min(Expr(o) * 4, 96);
  EXPECT_TRUE(divisible(edge, 4, ranges));
  EXPECT_TRUE(divisible(Expr(i) * 8 + edge * 2, 8, ranges));
  EXPECT_FALSE(divisible(Expr(i) * 4 + edge, 8, ranges));
  EXPECT_FALSE(divisible(min(Expr(o) * 4, 98), 4, ranges));
  EXPECT_FALSE(divisible(max(Expr(o), 96), 4, ranges));
  EXPECT_FALSE(divisible(edge + 1, 4, ranges));
}

TEST_F(Simplify, FoldsTheInnerPartAway) {
  ranges.bind(f, 100), ranges.bind(r, 8);
  EXPECT_EQ(text(floor_mod(Expr(f) * 8 + r, 8)), "r");
  EXPECT_EQ(text(floor_div(Expr(f) * 8 + r, 8)), "f");
  EXPECT_EQ(text(floor_div(Expr(f) * 8 + r - 8, 8)), "f - 1");
}

TEST_F(Simplify, PutsFusedIndicesTogetherAgain) {
  ranges.bind(f, 2 * 3 * 5);
  const Expr a = floor_div(f, 15), b = floor_mod(floor_div(f, 5), 3), c = floor_mod(f, 5);
  EXPECT_EQ(text(a * 15 + b * 5 + c), "f");
  EXPECT_EQ(text((a * 3 + b) * 5 + c), "f");
  EXPECT_EQ(text(floor_div(floor_div(f, 3), 5)), "f//15");
  // Fused and split again, in two steps, after the parts have been simplified on their own.
  const Expr r = Expr(o) * 24 + f;
  EXPECT_EQ(text(floor_div(r, 9) * 9 + floor_mod(floor_div(r, 3), 3) * 3 + floor_mod(r, 3)), "o*24 + f");
  EXPECT_EQ(text((floor_div(r, 9) * 4608 + floor_mod(floor_div(r, 3), 3) * 1536) + floor_mod(r, 3) * 512),
            "o*12288 + f*512");
  EXPECT_EQ(text(floor_div(r, 9) * 9 + floor_mod(f, 9)), "(o*24 + f)//9*9 + f%9");
  EXPECT_EQ(text(floor_div(floor_mod(f, 12), 4)), "f//4%3");
}

// A pixel of strips of 16 in rows of 12: of so few strips the remainder has no % left.
TEST_F(Simplify, PutsFusedIndicesTogetherAgainWhereRangesShortenedThem) {
  ranges.bind(f, 3), ranges.bind(i, 16);
  const auto pixel = [&](const Expr& e) { return text(floor_div(e, 12) * 12 + floor_mod(e, 12)); };
  EXPECT_EQ(pixel(Expr(f) * 16), "f*16");
  EXPECT_EQ(pixel(Expr(f) * 16 + 4), "f*16 + 4");
  EXPECT_EQ(pixel(Expr(f) * 16 + i), "f*16 + i");
  EXPECT_EQ(text(floor_div(Expr(f) * 16, 12) * 24 + floor_mod(Expr(f) * 16, 12)), "f*28") << "f*4//3 is f";
  EXPECT_EQ(text(floor_div(Expr(f) * 16, 12) * 24 + floor_mod(Expr(f) * 16, 12) * 2), "f*32");
}

TEST_F(Simplify, DecidesGuardsFromRanges) {
  ranges.bind(o, 3), ranges.bind(r, 4);
  const Expr whole = Expr(o) * 4 + r;
  EXPECT_EQ(text(whole < 12), "true");
  EXPECT_EQ(text(whole < 10), "o*4 + r < 10");
  EXPECT_EQ(text(whole < 8), "o < 2");
  EXPECT_EQ(text(whole >= 12), "false");
  EXPECT_EQ(text(whole >= 4), "o >= 1");
  EXPECT_EQ(text(Expr(0) - r < 1), "true");
  EXPECT_EQ(text(Expr(3) - r >= 1), "r <= 2");
}

TEST_F(Simplify, UsesWhatIsAssumed) {
  ranges.bind(o, 3), ranges.bind(r, 4);
  const Expr whole = Expr(o) * 4 + r;
  ranges.assume(whole < 10 && r >= 1);
  EXPECT_EQ(text(whole < 10), "true");
  EXPECT_EQ(text(whole <= 8), "o*4 + r <= 8");
  EXPECT_EQ(text(whole + 5 < 15), "true");
  EXPECT_EQ(const_bounds(whole * 2 + 1, ranges), std::pair(int64_t{3}, int64_t{19}));
  EXPECT_EQ(text(min(whole, 9)), "o*4 + r");
}

TEST_F(Simplify, AnExclusiveOrMayBeMoreThanBothSides) {
  ranges.bind(i, 6), ranges.bind(r, 3);
  const Expr both = bit_xor(i, r);  // 5 xor 2 is 7
  EXPECT_EQ(text(both < 7), "xor(i, r) < 7");
  EXPECT_EQ(text(both < 8), "true");
  EXPECT_EQ(const_bounds(both, ranges), std::pair(int64_t{0}, int64_t{7}));
  EXPECT_FALSE(const_bounds(bit_xor(Expr(i) - 1, r), ranges).has_value()) << "of a negative number: any";
}

TEST_F(Simplify, HalfAnIntervalIsNone) {
  ranges.assume(Expr(f) >= 3);
  EXPECT_FALSE(const_bounds(f, ranges).has_value());
  EXPECT_EQ(text(Expr(f) >= 2), "true");
  EXPECT_EQ(text(Expr(f) < 10), "f < 10");
  ranges.assume(Expr(f) < 10);
  EXPECT_EQ(const_bounds(f, ranges), std::pair(int64_t{3}, int64_t{9}));
}

TEST_F(Simplify, TheOtherBranchKnowsTheOpposite) {
  const Buffer x = make_buffer("x", DType::kFloat32, {8});
  const auto set = [&](double value) { return make_store(x, {i}, float_imm(value)); };
  const auto branches = [&](const Expr& condition, const Expr& inside, const Expr& otherwise) {
    return to_text(
        simplify(make_for(i, 8, make_if(condition, make_if(inside, set(1)), make_if(otherwise, set(2))))));
  };
  EXPECT_EQ(branches(Expr(i) < 4, Expr(i) < 6, Expr(i) >= 4),
            "for i in 0..8\n  if i < 4\n    x[i] = 1\n  else\n    x[i] = 2\n");
  EXPECT_EQ(branches(Expr(i) < 4, Expr(i) < 6, Expr(i) >= 5),
            "for i in 0..8\n  if i < 4\n    x[i] = 1\n  else\n    if i >= 5\n      x[i] = 2\n")
      << "it may be 4";
  // The first branch never runs: what is left is under the opposite.
  EXPECT_EQ(branches(Expr(i) < 4, Expr(i) >= 5, Expr(i) >= 4), "for i in 0..8\n  if i >= 4\n    x[i] = 2\n");
  // Of two conditions either may be the false one.
  EXPECT_EQ(branches(Expr(i) >= 2 && Expr(i) < 4, Expr(i) < 6, Expr(i) < 2),
            "for i in 0..8\n  if i >= 2 && i < 4\n    x[i] = 1\n  else\n    if i < 2\n      x[i] = 2\n");
}

TEST_F(Simplify, ValuesKeepTheirOperations) {
  const Buffer x = make_buffer("x", DType::kFloat32, {16});
  ranges.bind(i, 4);
  const Expr value = load(x, {Expr(i) + 0 + i}) * float_imm(0) + load(x, {floor_div(Expr(i), 4)});
  EXPECT_EQ(text(value), "x[i*2] * 0 + x[0]");
  EXPECT_EQ(text(select(Expr(i) < 4, load(x, {i}), float_imm(1))), "x[i]");
}

TEST_F(Simplify, UnchangedExpressionsAreShared) {
  ranges.bind(o, 3), ranges.bind(r, 4);
  const Expr e = Expr(o) * 4 + r;
  EXPECT_TRUE(simplify(e, ranges).same_as(e));
}

TEST_F(Simplify, StatementsLoseGuardsThatAlwaysHold) {
  const Buffer x = make_buffer("x", DType::kFloat32, {12});
  const auto store = [&](Expr guard) {
    const Expr whole = Expr(o) * 4 + r;
    return make_for(o, 3, make_for(r, 4, make_if(guard, make_store(x, {whole}, float_imm(1)))));
  };
  EXPECT_EQ(to_text(simplify(store(Expr(o) * 4 + r < 12))),
            "for o in 0..3\n  for r in 0..4\n    x[o*4 + r] = 1\n");
  EXPECT_EQ(simplify(store(Expr(o) * 4 + r < 0)), nullptr);
}

TEST_F(Simplify, RegionsAreAMinimumAndAConstantExtent) {
  const Buffer x = make_buffer("x", DType::kFloat32, {64, 10});
  const Buffer y = make_buffer("y", DType::kFloat32, {64});
  // for r in 0..4: y[o*4 + r] = x[o*8 + r*2 + 1, r] + x[o*8 + r*2, 3]
  const Stmt s = make_for(
      r, 4,
      make_store(y, {Expr(o) * 4 + r},
                 load(x, {Expr(o) * 8 + Expr(r) * 2 + 1, r}) + load(x, {Expr(o) * 8 + Expr(r) * 2, 3})));
  ranges.bind(o, 6);
  const auto read = region_read(s, x, ranges);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(to_text(read->min[0]), "o*8");
  EXPECT_EQ(read->extent[0], 8);
  EXPECT_EQ(to_text(read->min[1]), "0");
  EXPECT_EQ(read->extent[1], 4);
  const auto written = region_written(s, y, ranges);
  EXPECT_EQ(to_text(written->min[0]), "o*4");
  EXPECT_EQ(written->extent[0], 4);
  EXPECT_FALSE(region_read(s, y, ranges).has_value());
}

TEST_F(Simplify, ARegionOfBlocksIsInBlocks) {
  const Buffer x = make_buffer("x", DType::kFloat32, {16, 4});
  const Buffer y = make_buffer("y", DType::kFloat32, {64});
  const Expr index = Expr(o) * 6 + r;
  const Stmt s = make_for(r, 6, make_store(y, {index}, load(x, {floor_div(index, 4), floor_mod(index, 4)})));
  ranges.bind(o, 10);
  const auto read = region_read(s, x, ranges);
  EXPECT_EQ(to_text(read->min[0]), "o*3//2");
  EXPECT_EQ(read->extent[0], 3);
  EXPECT_EQ(read->extent[1], 4);
}

// Random expressions, evaluated at every point of their variables' ranges before and after.
int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

int64_t evaluate(const Expr& e, const std::map<const VarNode*, int64_t>& at) {
  const auto operand = [&](int n) { return evaluate(e->operands[static_cast<size_t>(n)], at); };
  switch (e->kind) {
    case ExprKind::kIntImm:
      return e->int_value;
    case ExprKind::kVar:
      return at.at(e->var.get());
    case ExprKind::kSelect:
      return operand(0) != 0 ? operand(1) : operand(2);
    case ExprKind::kUnary:
      return e->unary_op == UnaryOp::kNot ? !operand(0) : -operand(0);
    default:
      break;
  }
  const int64_t a = operand(0), b = operand(1);
  switch (e->binary_op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kFloorDiv:
      return floor_divide(a, b);
    case BinaryOp::kFloorMod:
      return a - floor_divide(a, b) * b;
    case BinaryOp::kMin:
      return std::min(a, b);
    case BinaryOp::kMax:
      return std::max(a, b);
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    case BinaryOp::kGe:
      return a >= b;
    case BinaryOp::kAnd:
      return a && b;
    case BinaryOp::kOr:
      return a || b;
    default:
      ADD_FAILURE() << "no integer operation";
      return 0;
  }
}

class RandomExpressions {
 public:
  explicit RandomExpressions(uint32_t seed) : random_(seed) {
    for (const char* name : {"a", "b", "c"}) vars_.push_back({make_var(name), pick(1, 7)});
  }

  void check() {
    RangeMap ranges;
    for (const auto& [var, extent] : vars_) ranges.bind(var, extent);
    const Expr assumed = pick(0, 2) == 0 ? condition(2) : bool_imm(true);
    const RangeMap plain = ranges;
    ranges.assume(simplify(assumed, plain));
    const Expr e = pick(0, 3) == 0 ? condition(3) : index(4);
    const Expr simple = simplify(e, ranges);
    constexpr int64_t kAny = int64_t{1} << 60;
    const auto bounds = const_bounds(e, ranges).value_or(std::pair(-kAny, kAny));
    std::map<const VarNode*, int64_t> at;
    for (int64_t a = 0; a < vars_[0].second; ++a) {
      for (int64_t b = 0; b < vars_[1].second; ++b) {
        for (int64_t c = 0; c < vars_[2].second; ++c) {
          at[vars_[0].first.get()] = a, at[vars_[1].first.get()] = b, at[vars_[2].first.get()] = c;
          if (evaluate(assumed, at) == 0) continue;
          const int64_t value = evaluate(e, at);
          ASSERT_EQ(evaluate(simple, at), value)
              << to_text(e) << " became " << to_text(simple) << " at a=" << a << " b=" << b << " c=" << c
              << ", extents " << vars_[0].second << " " << vars_[1].second << " " << vars_[2].second
              << ", assumed " << to_text(assumed);
          ASSERT_TRUE(bounds.first <= value && value <= bounds.second)
              << to_text(e) << " is " << value << ", outside [" << bounds.first << ", " << bounds.second
              << "], assumed " << to_text(assumed);
        }
      }
    }
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Expr index(int depth) {
    if (depth == 0 || pick(0, 5) == 0)
      return pick(0, 3) == 0 ? Expr(pick(-9, 9)) : Expr(vars_[static_cast<size_t>(pick(0, 2))].first);
    switch (pick(0, 7)) {
      case 0:
      case 1:
        return index(depth - 1) + index(depth - 1);
      case 2:
        return index(depth - 1) - index(depth - 1);
      case 3:
        return index(depth - 1) * pick(-4, 12);
      case 4:
        return floor_div(index(depth - 1), pick(1, 12));
      case 5:
        return floor_mod(index(depth - 1), pick(1, 12));
      case 6:
        return pick(0, 1) == 0 ? min(index(depth - 1), index(depth - 1))
                               : max(index(depth - 1), index(depth - 1));
      default:
        return select(condition(depth - 1), index(depth - 1), index(depth - 1));
    }
  }
  Expr condition(int depth) {
    if (depth > 0 && pick(0, 3) == 0) {
      if (pick(0, 2) == 0) return unary(UnaryOp::kNot, condition(depth - 1));
      return pick(0, 1) == 0 ? condition(depth - 1) && condition(depth - 1)
                             : condition(depth - 1) || condition(depth - 1);
    }
    const auto op = static_cast<BinaryOp>(static_cast<int>(BinaryOp::kEq) + pick(0, 5));
    const int below = depth > 0 ? depth - 1 : 0;
    return binary(op, index(below), index(below));
  }

  std::mt19937 random_;
  std::vector<std::pair<Var, int64_t>> vars_;
};

// Loads of blocks, in steps and apart, for every iteration of the loops outside and inside.
// Two accesses some elements apart, in either order.
TEST(SimplifyRegions, ReachToTheFurthestAccess) {
  const Var o = make_var("o"), r = make_var("r");
  const Buffer x = make_buffer("x", DType::kFloat32, {400}), y = make_buffer("y", DType::kFloat32, {3});
  RangeMap outer;
  outer.bind(o, 5);
  const auto read = [&](int64_t first, int64_t second, int64_t block = 1) {
    const Expr place = Expr(o) * 4 + r;
    const Expr sum = load(x, {floor_div(place + first, block)}) + load(x, {floor_div(place + second, block)});
    const auto region = region_read(make_for(r, 3, make_store(y, {r}, sum)), x, outer);
    return region ? to_text(region->min[0]) + ", " + std::to_string(region->extent[0]) : "none";
  };
  EXPECT_EQ(read(0, 10), "o*4, 13");
  EXPECT_EQ(read(10, 0), "o*4, 13");
  EXPECT_EQ(read(0, 1), "o*4, 4");
  EXPECT_EQ(read(0, 0), "o*4, 3");
  // Three neighbours from a multiple of four on are in one block of four.
  EXPECT_EQ(read(0, 40, 4), "o, 11");
  EXPECT_EQ(read(40, 0, 4), "o, 11");
}

TEST(SimplifyRandom, RegionsCoverEveryElement) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/1000)) {
    std::mt19937 random(seed);
    const auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const Var o = make_var("o"), r = make_var("r"), q = make_var("q");
    const int64_t extents[] = {pick(1, 5), pick(1, 6), pick(1, 4)};
    const Buffer x = make_buffer("x", DType::kFloat32, {400}), y = make_buffer("y", DType::kFloat32, {6});
    std::vector<Expr> indices;
    const Expr inside = Expr(r) * pick(0, 6) + Expr(q) * pick(0, 6);
    for (int64_t n = pick(1, 3); n > 0; --n)
      indices.push_back(floor_div(Expr(o) * pick(0, 9) + inside + pick(0, 9), pick(1, 5)) + pick(0, 9));
    Expr sum = load(x, {indices[0]});
    for (size_t n = 1; n < indices.size(); ++n) sum = sum + load(x, {indices[n]});
    const Stmt s = make_for(r, extents[1], make_for(q, extents[2], make_store(y, {r}, sum)));
    RangeMap outer;
    outer.bind(o, extents[0]);
    const auto region = region_read(s, x, outer);
    ASSERT_TRUE(region.has_value());
    std::map<const VarNode*, int64_t> at;
    for (at[o.get()] = 0; at[o.get()] < extents[0]; ++at[o.get()])
      for (at[r.get()] = 0; at[r.get()] < extents[1]; ++at[r.get()])
        for (at[q.get()] = 0; at[q.get()] < extents[2]; ++at[q.get()])
          for (const Expr& index : indices) {
            const int64_t from = evaluate(region->min[0], at), element = evaluate(index, at);
            ASSERT_TRUE(from <= element && element < from + region->extent[0])
                << to_text(s) << "element " << element << " with o=" << at[o.get()] << ", region from "
                << to_text(region->min[0]) << ", " << region->extent[0] << " elements";
          }
  }
}

TEST(SimplifyRandom, KeepsEveryValue) {
  for (const uint32_t seed : Seeds(/*fixed=*/1, /*rounds=*/4000)) RandomExpressions(seed).check();
}

}  // namespace
}  // namespace tuner
