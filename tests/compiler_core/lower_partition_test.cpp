// Guards move out of inner loops: what the loops look like after partition_loops.
#include <gtest/gtest.h>

#include "compiler_core/lower/lower.h"
#include "tests/compiler_core/kernel_testing.h"

namespace tuner {
namespace {

using namespace tuner::testing;

std::string partitioned(const Stmt& body, int64_t max_stores = 4096) {
  return "\n" + to_text(simplify_program(partition_loops({"p", {}, body}, max_stores)).body);
}

const Buffer y = output("y", {20, 20});

TEST(LowerPartition, TheLastIterationBecomesShorterAndTheOthersLoseTheirGuard) {
  const Stmt s = loop("o", 3, [&](Expr o) {
    return loop("r", 8, [&](Expr r) {
      return make_if(o * 8 + r < 20, make_store(y, {0, o * 8 + r}, float_imm(1)));
    });
  });
  EXPECT_EQ(partitioned(s), R"(
for o in 0..3
  if o <= 1
    for r in 0..8
      y[0, o*8 + r] = 1
  else
    for r in 0..4
      y[0, r + 16] = 1
)");
}

TEST(LowerPartition, ALoopEndsWhereNoGuardBehindAnInnerLoopLetsAnythingRun) {
  const Stmt s = loop("o", 16, [&](Expr o) {
    return loop("r", 3, LoopKind::kUnrolled, [&](Expr r) {
      return make_if(o * 3 + r < 20, make_store(y, {0, o * 3 + r}, float_imm(1)));
    });
  });
  EXPECT_EQ(partitioned(s), R"(
for o in 0..7
  if o <= 5
    unrolled r in 0..3
      y[0, o*3 + r] = 1
  else
    unrolled r in 0..2
      y[0, r + 18] = 1
)");
}

TEST(LowerPartition, TailsInTwoDirectionsGiveFourTilesWithoutGuards) {
  const Stmt s = loop("io", 2, [&](Expr io) {
    return loop("jo", 2, [&](Expr jo) {
      return loop("i", 8, [&](Expr i) {
        return loop("j", 16, [&](Expr j) {
          return make_if(io * 8 + i < 11 && jo * 16 + j < 20,
                         make_store(y, {io * 8 + i, jo * 16 + j}, float_imm(1)));
        });
      });
    });
  });
  EXPECT_EQ(partitioned(s), R"(
for io in 0..2
  if io <= 0
    for jo in 0..2
      if jo <= 0
        for i in 0..8
          for j in 0..16
            y[i, j] = 1
      else
        for i in 0..8
          for j in 0..4
            y[i, j + 16] = 1
  else
    for jo in 0..2
      if jo <= 0
        for i in 0..3
          for j in 0..16
            y[i + 8, j] = 1
      else
        for i in 0..3
          for j in 0..4
            y[i + 8, j + 16] = 1
)");
}

TEST(LowerPartition, FusedAxesAreTakenApart) {
  const Stmt s = loop("f", 6, LoopKind::kParallel, [&](Expr f) {
    return loop("r", 8, [&](Expr r) {
      const Expr at = floor_mod(f, 3) * 8 + r;
      return make_if(at < 20, make_store(y, {floor_div(f, 3), at}, float_imm(1)));
    });
  });
  const std::string text = partitioned(s);
  EXPECT_NE(text.find("for r in 0..8"), std::string::npos) << text;
  EXPECT_NE(text.find("for r in 0..4"), std::string::npos) << text;
  EXPECT_EQ(text.find("if f % 3*8"), std::string::npos) << text;
}

TEST(LowerPartition, ALoopWhoseRestNeverRunsIsShortened) {
  const Stmt s = loop("r", 8, [&](Expr r) { return make_if(r < 5, make_store(y, {0, r}, float_imm(1))); });
  EXPECT_EQ(partitioned(s), R"(
for r in 0..5
  y[0, r] = 1
)");
}

TEST(LowerPartition, AGuardOfTheFirstIterationIsDecidedToo) {
  const Stmt s = loop("k", 4, [&](Expr k) {
    return loop("i", 2, [&](Expr i) {
      return make_seq({make_if(binary(BinaryOp::kEq, k, 0), make_store(y, {0, i}, float_imm(0))),
                       make_store(y, {0, i}, load(y, {0, i}) + 1)});
    });
  });
  const std::string text = partitioned(s);
  EXPECT_NE(text.find("if k >= 1"), std::string::npos) << text;
  EXPECT_EQ(text.find("k == 0"), std::string::npos) << text;
}

// Each iteration set apart is a copy of the body: nine at one end are too many.
TEST(LowerPartition, AGuardThatReachesFarInStays) {
  const auto of = [&](int64_t first) {
    return partitioned(loop("o", 20, [&](Expr o) {
      return loop("r", 2, [&](Expr r) {
        return make_if(o + r >= first, make_store(y, {0, r}, float_imm(1)));
      });
    }));
  };
  EXPECT_EQ(of(9), R"(
for o in 0..20
  for r in 0..2
    if o + r >= 9
      y[0, r] = 1
)");
  EXPECT_EQ(of(2).find("o + r"), std::string::npos) << of(2);
}

TEST(LowerPartition, StopsCopyingAtTheLimitAndKeepsTheGuard) {
  const Stmt s = loop("o", 3, [&](Expr o) {
    return loop("r", 8, [&](Expr r) {
      return make_if(o * 8 + r < 20, make_store(y, {0, o * 8 + r}, float_imm(1)));
    });
  });
  EXPECT_EQ(partitioned(s, 1), R"(
for o in 0..3
  for r in 0..8
    if o*8 + r < 20
      y[0, o*8 + r] = 1
)");
}

const Buffer z = output("z", {3, 8, 8});

// Two stages under one loop: a long one without a guard, and the tail of y.
TEST(LowerPartition, AStatementThatTheGuardDoesNotConcernStandsOnce) {
  const Stmt s = loop("o", 3, [&](Expr o) {
    return make_seq(
        {loop("i", 8,
              [&](Expr i) {
                return loop("j", 8, [&](Expr j) { return make_store(z, {o, i, j}, float_imm(2)); });
              }),
         loop("r", 8, [&](Expr r) {
           return make_if(o * 8 + r < 20, make_store(y, {0, o * 8 + r}, float_imm(1)));
         })});
  });
  EXPECT_EQ(partitioned(s), R"(
for o in 0..3
  for i in 0..8
    for j in 0..8
      z[o, i, j] = 2
  if o <= 1
    for r in 0..8
      y[0, o*8 + r] = 1
  else
    for r in 0..4
      y[0, r + 16] = 1
)");
}

// The same inside a serial loop: one test in front of its body, not two loops.
TEST(LowerPartition, TheChoiceGoesIntoALoopThatShares) {
  const Stmt s = loop("o", 3, [&](Expr o) {
    return loop("i", 8, [&](Expr i) {
      return make_seq({loop("j", 40,
                            [&](Expr) {
                              return make_store(z, {o, i, 0}, float_imm(2));
                            }),
                       loop("r", 8, [&](Expr r) {
                         return make_if(o * 8 + r < 20, make_store(y, {i, o * 8 + r}, float_imm(1)));
                       })});
    });
  });
  EXPECT_EQ(partitioned(s), R"(
for o in 0..3
  for i in 0..8
    for j in 0..40
      z[o, i, 0] = 2
    if o <= 1
      for r in 0..8
        y[i, o*8 + r] = 1
    else
      for r in 0..4
        y[i, r + 16] = 1
)");
}

// Two short statements with the same guard: one test in front of both.
TEST(LowerPartition, ShortStatementsThatTheGuardConcernsStayTogether) {
  const auto tail = [](Expr o, int64_t row) {
    return loop("r", 8, [&](Expr r) {
      return make_if(o * 8 + r < 20, make_store(y, {row, o * 8 + r}, float_imm(1)));
    });
  };
  const Stmt s = loop("o", 3, [&](Expr o) { return make_seq({tail(o, 0), tail(o, 1)}); });
  EXPECT_EQ(partitioned(s), R"(
for o in 0..3
  if o <= 1
    for r in 0..8
      y[0, o*8 + r] = 1
    for r in 0..8
      y[1, o*8 + r] = 1
  else
    for r in 0..4
      y[0, r + 16] = 1
    for r in 0..4
      y[1, r + 16] = 1
)");
}

// A tile of 4 outputs at o*4, each the sum of k in 0..3 taps at o*4 + r + k - 1 of 12 inputs; `inner` times.
Stmt taps(int64_t inner) {
  return loop("o", 3, [&](Expr o) {
    return loop("k", 3, [&](Expr k) {
      return loop("c", inner, [&](Expr c) {
        return loop("r", 4, LoopKind::kUnrolled, [&](Expr r) {
          return make_if(o * 4 + k + r >= 1 && o * 4 + k + r < 13,
                         make_store(y, {c, o * 4 + r}, float_imm(1)));
        });
      });
    });
  });
}

TEST(LowerPartition, AGuardOverTwoLoopsIsDecidedByTheirSumWhereATestIsFree) {
  EXPECT_EQ(partitioned(taps(20)), R"(
for o in 0..3
  for k in 0..3
    if o*4 + k >= 1
      if o*4 + k <= 9
        for c in 0..20
          unrolled r in 0..4
            y[c, o*4 + r] = 1
      else
        for c in 0..20
          unrolled r in 0..3
            y[c, o*4 + r] = 1
    else
      for c in 0..20
        unrolled r in 0..4
          if r >= 1
            y[c, o*4 + r] = 1
)");
}

TEST(LowerPartition, AGuardInFrontOfMuchWorkStays) {
  const Stmt s = loop("o", 3, [&](Expr o) {
    return loop("k", 3, [&](Expr k) {
      return make_if(o + k >= 1 && o + k < 4,
                     loop(
                         "c", 20,
                         [&](Expr c) {
                           return loop("r", 4, [&](Expr r) { return make_store(y, {c, r}, float_imm(1)); });
                         }));
    });
  });
  EXPECT_EQ(partitioned(s), "\n" + to_text(s));
}

// Blocks of 4 tiles, of which the last block has 2: what runs under the guard of the block is not all there
// is.
TEST(LowerPartition, AGuardInsideAnotherIsDecidedForAllIterationsOfTheLoop) {
  const Buffer z = output("z", {11, 20});
  const Stmt s = loop("b", 2, [&](Expr b) {
    return loop("t", 4, [&](Expr t) {
      return make_if(
          b * 4 + t < 6,
          loop(
              "c", 20,
              [&](Expr c) {
                return loop("r", 2, LoopKind::kUnrolled, [&](Expr r) {
                  return make_if(b * 8 + t * 2 + r < 11, make_store(z, {b * 8 + t * 2 + r, c}, float_imm(1)));
                });
              }));
    });
  });
  std::vector<std::vector<double>> args{{}};
  const Program lowered = simplify_program(partition_loops({"p", {z}, s, nullptr}, 4096));
  const Status status = interpret(lowered, args);
  EXPECT_TRUE(status.is_ok()) << status.message() << to_text(lowered);
}

TEST(LowerPartition, AnUndecidableGuardStays) {
  const Stmt s = loop("i", 9, [&](Expr i) {
    return loop("j", 9, [&](Expr j) { return make_if(j <= i, make_store(y, {i, j}, float_imm(1))); });
  });
  const std::string text = partitioned(s);
  EXPECT_NE(text.find("j <= i"), std::string::npos) << text;
}

}  // namespace
}  // namespace tuner
