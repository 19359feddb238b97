// Masks of conditions in the copies of a pipeline: which conditions become bits, and which bit each step asks
// for.
#include "compiler_core/codegen_cuda/step_masks.h"

#include <gtest/gtest.h>

#include "compiler_core/codegen_cuda/vector_access.h"
#include "tests/compiler_core/gpu_kernels.h"

namespace tuner::testing {
namespace {

using cuda::StepMask;

const Var kThread = make_var("tx"), kStep = make_var("k"), kRound = make_var("round");

GpuKernel kernel_of(Stmt body) {
  GpuKernel kernel{.name = "copies"};
  kernel.block = {32, 1, 1};
  kernel.thread_vars[0] = kThread;
  kernel.body = std::move(body);
  return kernel;
}

// An asynchronous copy of as many rounds, where `condition` holds.
Stmt copy(const Expr& condition, int64_t rounds = 2) {
  const Buffer x = input("x", {4096});
  const Buffer s = make_buffer("s", DType::kFloat32, {1024}, MemoryScope::kShared);
  const Expr at = Expr(kRound) * 32 + kThread;
  return make_async_copy(loop(kRound, rounds,
                              make_store(s, {at}, select(condition, load(x, {at}), float_imm(0))),
                              LoopKind::kUnrolled));
}

std::vector<StepMask> masks_of(const Stmt& body) {
  const GpuKernel kernel = kernel_of(body);
  std::vector<StepMask> masks;
  const Stmt changed = cuda::with_step_masks(body, kernel, masks);
  EXPECT_EQ(masks.empty(), to_text(changed) == to_text(body)) << to_text(changed);
  return masks;
}

// Pixels of rows of 7, whose row moves on with every other step.
Expr in_image() { return floor_div(Expr(kRound) * 32 + kThread, 7) + floor_div(Expr(kStep), 2) < 9; }

using Kinds = std::vector<int64_t>;

TEST(StepMasks, StepsOfOneKindShareABit) {
  const auto masks = masks_of(loop(kStep, 6, copy(in_image())));
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].name, "x_inside");
  EXPECT_EQ(masks[0].kinds.size(), 3u);
  EXPECT_EQ(masks[0].kind_of_step, (Kinds{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(masks[0].before, kStep.get());
}

// An unrolled loop in the serial one: a step is of both.
TEST(StepMasks, StepsMayBeOfSeveralLoops) {
  const Var outer = make_var("outer"), stage = make_var("stage");
  const Expr step = Expr(outer) * 2 + stage;
  const Expr condition = floor_div(Expr(kRound) * 32 + kThread, 7) + step < 9;
  const auto masks = masks_of(loop(outer, 3, loop(stage, 2, copy(condition), LoopKind::kUnrolled)));
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].steps.size(), 2u);
  EXPECT_EQ(masks[0].kind_of_step, (Kinds{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(masks[0].before, outer.get());
}

// The copies ahead of a pipeline end before the loop does: those steps ask for nothing.
TEST(StepMasks, StepsThatCopyNothingHaveNoKind) {
  const auto guarded = [](const Stmt& then, const Stmt& otherwise) {
    return loop(kStep, 6, make_if(Expr(kStep) < 4, then, otherwise));
  };
  const auto masks = masks_of(guarded(copy(in_image()), nullptr));
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].kinds.size(), 2u);
  EXPECT_EQ(masks[0].kind_of_step, (Kinds{0, 0, 1, 1, 0, 0}));
  const auto other = masks_of(guarded(make_async_commit(), copy(in_image())));
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].kind_of_step, (Kinds{0, 0, 1, 1, 2, 2})) << "the guard says nothing of the other branch";
}

TEST(StepMasks, ARegisterHas32Bits) {
  const Expr condition = Expr(kRound) * 32 + kThread < Expr(kStep) * 2 + 1;
  const auto masks = masks_of(loop(kStep, 32, copy(condition)));
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].kinds.size(), 32u);
  EXPECT_TRUE(masks_of(loop(kStep, 33, copy(condition))).empty());
}

TEST(StepMasks, TablesAndRegistersAreFew) {
  const Expr condition = floor_div(Expr(kRound) * 32 + kThread, 7) + floor_div(Expr(kStep), 512) < 9;
  EXPECT_EQ(masks_of(loop(kStep, 1024, copy(condition))).size(), 1u);
  EXPECT_TRUE(masks_of(loop(kStep, 1025, copy(condition))).empty());
  EXPECT_EQ(masks_of(loop(kStep, 6, copy(in_image(), 16))).size(), 1u);
  EXPECT_TRUE(masks_of(loop(kStep, 6, copy(in_image(), 17))).empty());
}

TEST(StepMasks, WhatIsNotKnownBeforeTheStepsStays) {
  const Buffer limits = make_buffer("limits", DType::kInt32, {6}, MemoryScope::kGlobal, BufferRole::kInput);
  const Var part = make_var("part");
  const std::pair<const char*, Stmt> cases[] = {
      {"of the step alone", loop(kStep, 6, copy(Expr(kStep) < 5))},
      {"of the thread alone", loop(kStep, 6, copy(Expr(kThread) < 5))},
      {"read from memory",
       loop(kStep, 6, copy(Expr(kThread) < cast(DType::kInt64, load(limits, {Expr(kStep)}))))},
      {"of a loop in the copy",
       loop(kStep, 6,
            make_async_copy(loop(part, 2, copy(in_image() && Expr(part) + kStep + kThread < 30)->body)))},
      {"outside of any loop", copy(Expr(kThread) < 5)},
      {"in a loop of one step", loop(kStep, 1, copy(in_image()))},
  };
  for (const auto& [what, body] : cases) {
    SCOPED_TRACE(what);
    const auto masks = masks_of(body);
    for (const StepMask& m : masks)
      for (const Expr& kind : m.kinds)
        EXPECT_EQ(to_text(kind).find("part"), std::string::npos) << to_text(kind);
    EXPECT_EQ(masks.size(), std::string_view(what) == "of a loop in the copy" ? 1u : 0u);
  }
}

// Whether the four lanes from 4i on decide alike, for every comparison and border, tried for each of them.
TEST(VectorAccess, AGuardIsTheSameForAllLanesOnlyAtWholeVectors) {
  const Var lane = make_var("lane"), i = make_var("i");
  RangeMap ranges;
  ranges.bind(lane, 4);
  ranges.bind(i, 6);
  const Expr at = Expr(i) * 4 + lane;
  int alike = 0;
  for (int64_t border = 0; border <= 24; ++border)
    for (const BinaryOp op : {BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe}) {
      bool same = true;
      for (int64_t vector = 0; vector < 6; ++vector)
        for (int64_t l = 0; l < 4; ++l) {
          const auto holds = [&](int64_t x) {
            return op == BinaryOp::kLt   ? x < border
                   : op == BinaryOp::kLe ? x <= border
                   : op == BinaryOp::kGt ? x > border
                                         : x >= border;
          };
          same = same && holds(vector * 4 + l) == holds(vector * 4);
        }
      const bool found = cuda::same_for_all_lanes(binary(op, at, border), lane, 4, ranges);
      EXPECT_TRUE(same || !found) << to_text(binary(op, at, border)) << " is decided within a vector";
      alike += found ? 1 : 0;
    }
  EXPECT_GE(alike, 20) << "borders at multiples of four";
  EXPECT_TRUE(cuda::same_for_all_lanes(Expr(i) <= 3, lane, 4, ranges));
  EXPECT_FALSE(cuda::same_for_all_lanes(Expr(i) < 3 && Expr(lane) < 3, lane, 4, ranges));
}

}  // namespace
}  // namespace tuner::testing
