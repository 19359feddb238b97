// Constraints in normal form: what says the same about the knobs that are left has the same id.
#include "templates/space/residuals.h"

#include <gtest/gtest.h>

#include <vector>

namespace tuner {
namespace {

// The picture of residuals.h: tile_m in layer 0, tile_n in layer 1.
class TwoTiles : public testing::Test {
 protected:
  IntExpr knob(int position) {
    return IntExpr(std::make_shared<IntExprNode>(IntExprNode{IntOp::kKnob, position, {}, {}}));
  }
  ResidualId import(const IntExpr& e) { return residuals.import_constraint(*e.node(), {0, 1}); }
  std::vector<int64_t> table_of(ResidualId e) {
    EXPECT_TRUE(residuals.is_table(e));
    return {residuals.table(e), residuals.table(e) + 3};
  }

  const std::vector<int64_t> ms{1, 2, 4}, ns{2, 4, 8};
  Residuals residuals{{&ms, &ns}};
  const IntExpr tile_m = knob(0), tile_n = knob(1);
  const IntExpr product = int_expr(IntOp::kMul, tile_m, tile_n);
};

TEST_F(TwoTiles, AKnobThatIsDecidedLeavesTheCandidatesOfTheOther) {
  const ResidualId budget = import(int_expr(IntOp::kLe, product, 24));
  EXPECT_FALSE(residuals.is_table(budget));
  EXPECT_EQ(residuals.first_layer(budget), 0);
  const ResidualId after_4 = residuals.substitute(budget, 2);
  EXPECT_EQ(residuals.first_layer(after_4), 1);
  EXPECT_EQ(table_of(after_4), (std::vector<int64_t>{1, 1, 0}));
}

TEST_F(TwoTiles, PrefixesThatLeaveTheSameAreTheSame) {
  const ResidualId budget = import(int_expr(IntOp::kLe, product, 24));
  const ResidualId after_1 = residuals.substitute(budget, 0), after_2 = residuals.substitute(budget, 1);
  EXPECT_EQ(after_1, after_2);
  ASSERT_TRUE(residuals.is_constant(after_1));
  EXPECT_EQ(residuals.constant_value(after_1), 1) << "the other knob is free";
}

TEST_F(TwoTiles, OneBoundWrittenInSeveralWaysHasOneId) {
  const ResidualId budget = import(int_expr(IntOp::kLe, product, 24));
  EXPECT_EQ(import(int_expr(IntOp::kLt, product, 25)), budget);
  EXPECT_EQ(import(int_expr(IntOp::kLe, int_expr(IntOp::kMul, tile_n, tile_m), 24)), budget);
  EXPECT_EQ(import(int_expr(IntOp::kLe, product, 31)), budget)
      << "between 16 and 32 the product has no value";
  EXPECT_EQ(import(int_expr(IntOp::kLe, int_expr(IntOp::kAdd, product, 3), 27)), budget);
  EXPECT_NE(import(int_expr(IntOp::kLe, product, 32)), budget);
}

TEST_F(TwoTiles, ALowerBoundOfAMultipleIsRoundedUp) {
  const IntExpr thrice = int_expr(IntOp::kMul, product, 3);
  EXPECT_EQ(import(int_expr(IntOp::kLe, 8, thrice)), import(int_expr(IntOp::kLe, 3, product)));
  EXPECT_NE(import(int_expr(IntOp::kLe, 8, thrice)), import(int_expr(IntOp::kLe, 2, product)));
}

TEST_F(TwoTiles, TheOrderOfOperandsOfAnExtremeDoesNotCount) {
  EXPECT_EQ(import(int_expr(IntOp::kLe, int_expr(IntOp::kMin, tile_m, tile_n), 2)),
            import(int_expr(IntOp::kLe, int_expr(IntOp::kMin, tile_n, tile_m), 2)));
}

// Against all assignments, one by one.
TEST_F(TwoTiles, DecidingBothKnobsIsWhatTheConstraintSays) {
  const std::vector<IntExpr> constraints{
      int_expr(IntOp::kLe, product, 8),
      int_expr(IntOp::kEq, int_expr(IntOp::kMod, tile_n, int_expr(IntOp::kAdd, tile_m, 1)), 0),
      int_expr(IntOp::kOr, int_expr(IntOp::kLt, tile_m, tile_n), int_expr(IntOp::kEq, product, 4)),
      int_expr(IntOp::kNe, int_expr(IntOp::kSub, tile_n, tile_m), 2)};
  for (size_t k = 0; k < constraints.size(); ++k) {
    const ResidualId e = import(constraints[k]);
    for (int m = 0; m < 3; ++m)
      for (int n = 0; n < 3; ++n) {
        ResidualId left = e;
        if (residuals.first_layer(left) == 0) left = residuals.substitute(left, m);
        if (residuals.first_layer(left) == 1) left = residuals.substitute(left, n);
        ASSERT_TRUE(residuals.is_constant(left));
        EXPECT_EQ(residuals.constant_value(left) != 0, evaluate(*constraints[k].node(), {ms[m], ns[n]}) != 0)
            << "constraint " << k << ", tile_m " << ms[m] << ", tile_n " << ns[n];
      }
  }
}

}  // namespace
}  // namespace tuner
