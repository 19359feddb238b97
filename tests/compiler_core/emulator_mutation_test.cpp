// Deliberate damage to kernels that are right: each kind must be caught, by a report or by wrong values, and
// the whole kernels must report nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen/emulated_run.h"
#include "tests/compiler_core/emulator_kernels.h"

namespace tuner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace tuner::testing;

// What running a kernel showed.
struct Verdict {
  Status refused;
  std::vector<std::string> faults;
  int64_t wrong = 0;
  bool caught() const { return !refused.is_ok() || !faults.empty() || wrong > 0; }
};

Verdict judge(const GpuProgram& program, const std::vector<std::vector<float>>& inputs,
              const std::vector<float>& answer, bool oracle = false) {
  const Result<EmulatedRun> run =
      oracle ? interpret_emulated(program, inputs) : run_emulated(program, inputs);
  if (!run) return {.refused = run.status()};
  return {.faults = run->faults, .wrong = wrong_elements(run->outputs[0], answer)};
}

Verdict matmul(Damage damage, MatmulShape shape = {}, bool oracle = false) {
  const GpuProgram program = MatmulKernel(shape, damage).program();
  const auto inputs = random_inputs(program);
  return judge(program, inputs, matmul_answer(shape, inputs), oracle);
}
Verdict softmax(Damage damage, int64_t columns = 150, bool oracle = false) {
  const GpuProgram program = SoftmaxKernel(5, columns, damage).program();
  const auto inputs = random_inputs(program);
  return judge(program, inputs, softmax_answer(5, columns, inputs[0]), oracle);
}

void expect_right(const Verdict& v) {
  EXPECT_TRUE(v.refused.is_ok()) << v.refused.message();
  EXPECT_THAT(v.faults, IsEmpty());
  EXPECT_EQ(v.wrong, 0);
}
void expect_fault(const Verdict& v, const std::string& text) {
  ASSERT_TRUE(v.refused.is_ok()) << v.refused.message();
  EXPECT_THAT(v.faults, Contains(HasSubstr(text)));
}
void expect_refused(const Verdict& v, const std::string& text) {
  EXPECT_EQ(v.refused.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(v.refused.message(), HasSubstr(text));
}

TEST(EmulatorMutation, WholeKernelsReportNothing) {
  for (const bool oracle : {false, true}) {
    SCOPED_TRACE(oracle ? "interpreted" : "compiled");
    expect_right(matmul(Damage::kNone, {}, oracle));
    expect_right(softmax(Damage::kNone, 150, oracle));
  }
  for (const MatmulShape shape : {MatmulShape{.m = 64, .n = 64, .k = 32}, MatmulShape{.m = 1, .n = 1, .k = 1},
                                  MatmulShape{.m = 33, .n = 65, .k = 17}})
    expect_right(matmul(Damage::kNone, shape));
  for (const int64_t columns : {1, 63, 64, 65, 1000}) expect_right(softmax(Damage::kNone, columns));
}

TEST(EmulatorMutation, DroppedBarrierIsARaceEvenWhereValuesAreRight) {
  expect_fault(matmul(Damage::kNoBarrierAfterFill), "race");
  expect_fault(matmul(Damage::kNoBarrierInLoop), "race");
  expect_fault(softmax(Damage::kNoBarrierAfterFill), "race");
  expect_fault(softmax(Damage::kNoBarrierBeforeReuse), "race");
  // Here threads one after the other happen to be right: only the race detector sees it.
  const GpuProgram program = SoftmaxKernel(5, 150, Damage::kNoBarrierBeforeReuse).program();
  const auto inputs = random_inputs(program);
  const Result<EmulatedRun> run = run_emulated(program, inputs, {.reverse_threads = false});
  ASSERT_TRUE(run.is_ok()) << run.message();
  EXPECT_THAT(run->faults, Contains(HasSubstr("race")));
  EXPECT_EQ(wrong_elements(run->outputs[0], softmax_answer(5, 150, inputs[0])), 0);
}

TEST(EmulatorMutation, WrongStageOfADoubleBuffer) {
  expect_fault(matmul(Damage::kWrongStageRead), "race");
  expect_fault(matmul(Damage::kWrongStageWritten), "race");
  expect_fault(matmul(Damage::kWrongStageModulo), "race");
}

TEST(EmulatorMutation, OneSidedSwizzleGivesWrongValues) {
  const Verdict v = matmul(Damage::kOneSidedSwizzle);
  ASSERT_TRUE(v.refused.is_ok()) << v.refused.message();
  EXPECT_GT(v.wrong, 0);
}

TEST(EmulatorMutation, GuardsOffByOneOrMissing) {
  expect_fault(matmul(Damage::kOffByOneStoreGuard), "out of bounds");
  expect_fault(matmul(Damage::kOffByOneLoadGuard), "out of bounds");
  expect_fault(matmul(Damage::kMissingStorePredicate), "out of bounds");
  expect_fault(matmul(Damage::kMissingLoadPredicate), "out of bounds");
  expect_fault(softmax(Damage::kOffByOneLoadGuard), "out of bounds");
  expect_fault(softmax(Damage::kMissingLoadPredicate), "out of bounds");
}

TEST(EmulatorMutation, SharedBufferTooSmallOrMisplaced) {
  expect_fault(matmul(Damage::kSharedTooSmall), "out of bounds");
  expect_refused(matmul(Damage::kSharedBytesTooSmall), "the kernel asks for only");
  expect_fault(matmul(Damage::kSharedOverlap), "which lies on");
}

// Where stores go that do not count: bytes that are nobody's.
TEST(EmulatorMutation, NowhereLiesOnABufferOrOutside) {
  const auto with_nowhere = [](int64_t from_end) {
    GpuProgram program = MatmulKernel({}, Damage::kNone).program();
    GpuKernel& k = program.kernels.front();
    k.shared_bytes += 16;
    k.shared_nowhere = k.shared_bytes - from_end;
    return judge(program, random_inputs(program), {});
  };
  expect_refused(with_nowhere(32), "are nobody's");
  expect_refused(with_nowhere(0), "stores that do not count go to byte");
}

TEST(EmulatorMutation, OutputStoredTwiceOrNotAtAll) {
  expect_fault(matmul(Damage::kThreadTilesOverlap), "written twice");
  expect_fault(matmul(Damage::kBlockTilesOverlap), "written twice");
  expect_fault(matmul(Damage::kBlockTilesOverlap), "unwritten");
  expect_fault(matmul(Damage::kShortStore), "unwritten");
}

TEST(EmulatorMutation, LoopBoundsSwapped) {
  expect_fault(matmul(Damage::kSwappedLoopBounds), "out of bounds");
}

TEST(EmulatorMutation, BarrierThatNotAllThreadsComeBy) {
  expect_refused(matmul(Damage::kBarrierUnderThreadGuard), "`if (ty < 2)`");
}

TEST(EmulatorMutation, WhatWasNeverWritten) {
  expect_fault(matmul(Damage::kAccumulatorNotZeroed), "uninitialised read");
  expect_fault(matmul(Damage::kShortCopy), "uninitialised read");
}

TEST(EmulatorMutation, ReductionWithoutItsShuffles) {
  EXPECT_GT(softmax(Damage::kNoShuffle).wrong, 0);
  EXPECT_GT(softmax(Damage::kNarrowShuffle).wrong, 0);
  EXPECT_GT(softmax(Damage::kReductionShort).wrong, 0);
  expect_fault(softmax(Damage::kDivergentShuffle), "divergent intrinsic");
}

TEST(EmulatorMutation, TheOracleSeesWhatTheCompiledProgramSees) {
  for (const Damage damage : {Damage::kNoBarrierInLoop, Damage::kWrongStageRead, Damage::kOffByOneStoreGuard,
                              Damage::kThreadTilesOverlap, Damage::kShortCopy, Damage::kShortStore}) {
    const MatmulShape small{.m = 18, .n = 20, .k = 19, .block_m = 16, .block_n = 16, .block_k = 8};
    const Verdict compiled = matmul(damage, small), interpreted = matmul(damage, small, true);
    ASSERT_TRUE(interpreted.refused.is_ok()) << interpreted.refused.message();
    EXPECT_TRUE(interpreted.caught()) << "damage " << static_cast<int>(damage);
    EXPECT_EQ(compiled.faults, interpreted.faults) << "damage " << static_cast<int>(damage);
  }
  for (const Damage damage : {Damage::kDivergentShuffle, Damage::kNoBarrierBeforeReuse})
    EXPECT_EQ(softmax(damage).faults, softmax(damage, 150, true).faults);
}

}  // namespace
}  // namespace tuner
