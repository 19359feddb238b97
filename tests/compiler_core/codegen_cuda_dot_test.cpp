// Dot products of bytes on GPUs: one instruction for each, or a line that says why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen/emulated_run.h"
#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/dot_words.h"
#include "compiler_core/oracle/oracle.h"
#include "tests/compiler_core/programs.h"

namespace tuner::testing {
namespace {

using ::testing::HasSubstr;

Target target() { return *parse_target("cuda -arch=sm_75"); }

// C[m, n] += A[m, k] * B[k, n], a thread for each n. `words`: B is packed so that four terms lie side by
// side.
Program dots(DType a, DType b, int64_t k, int64_t terms, bool words) {
  Schedule s(typed_matmul(a, b, 2, 8, k));
  if (words) s.pack(s.tensor("B"), {{1, 8}, {0, 4}, {1, 8, true}, {0, 4, true}});
  const Tensor c = s.tensor("C");
  const auto [m, n] = s.axes<2>(c);
  const auto [outer, inner] = s.split(s.reduce_axes<1>(c)[0], terms);
  s.decompose_reduction(c, outer);
  s.dot(inner);
  s.bind(m, LoopKind::kBlockX);
  s.bind(n, LoopKind::kThreadX);
  const Result<Program> program = s.finish();
  EXPECT_TRUE(program.is_ok()) << program.message();
  return *program;
}

std::string refusal(const Program& program) { return compile_cuda(program, target()).message(); }

TEST(CodegenCudaDot, IsOneCallOfAWordOfEachOperand) {
  const Program program = dots(DType::kUInt8, DType::kInt8, 12, 4, /*words=*/true);
  const Result<GpuProgram> lowered = lower_gpu(program);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const std::string text = print_cuda(*lowered, target());
  EXPECT_THAT(text, HasSubstr("asm(\"dp4a.u32.s32 %0, %1, %2, %0;\" : \"+r\"(sum) : \"r\"(a), \"r\"(b));"));
  EXPECT_THAT(text, HasSubstr("dot_uint8_int8(C[")) << text;
}

TEST(CodegenCudaDot, MeansItsLoop) {
  const Program program = dots(DType::kInt8, DType::kUInt8, 12, 4, /*words=*/true);
  std::vector<std::vector<float>> inputs(2);
  for (int i = 0; i < 2 * 12; ++i) inputs[0].push_back(static_cast<float>(i * 37 % 256 - 128));
  for (int i = 0; i < 12 * 8; ++i) inputs[1].push_back(static_cast<float>(i * 91 % 256));
  const Result<GpuProgram> lowered = lower_gpu(program);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const Result<EmulatedRun> run = run_emulated(*lowered, inputs);
  ASSERT_TRUE(run.is_ok()) << run.message();
  EXPECT_THAT(run->faults, ::testing::IsEmpty());
  for (size_t m = 0; m < 2; ++m)
    for (size_t n = 0; n < 8; ++n) {
      float sum = 0;
      for (size_t k = 0; k < 12; ++k) sum += inputs[0][m * 12 + k] * inputs[1][k * 8 + n];
      EXPECT_EQ(run->outputs[0][m * 8 + n], sum) << m << ", " << n;
    }
}

TEST(CodegenCudaDot, WhatIsNoInstructionIsRefused) {
  EXPECT_EQ(refusal(dots(DType::kUInt8, DType::kInt8, 12, 4, /*words=*/false)),
            "kernel matmul: the dot product along k.inner reads B[k.outer*4 + k.inner, tx], four of which "
            "are not shown to be an aligned word");
  EXPECT_EQ(refusal(dots(DType::kUInt8, DType::kInt8, 10, 4, /*words=*/true)),
            "kernel matmul: the dot product along k.inner is under a guard or not a sum alone: decompose the "
            "reduction, and pad its operands");
  EXPECT_EQ(refusal(dots(DType::kBFloat16, DType::kBFloat16, 12, 2, /*words=*/false)),
            "kernel matmul: the dot product along k.inner stores C[bx, tx] + float32(A[bx, k.outer*2 + "
            "k.inner]) * float32(B[k.outer*2 + k.inner, tx]), 2 times; expected 4 products of bytes, cast to "
            "int32, added to C");
}

TEST(CodegenCudaDot, AWordHasFourTerms) {
  const Buffer a = make_buffer("a", DType::kUInt8, {8}), b = make_buffer("b", DType::kInt8, {8}),
               sum = make_buffer("sum", DType::kInt32, {1});
  const auto terms = [&](int64_t n) {
    const Var r = make_var("r");
    const Expr product = cast(DType::kInt32, load(a, {Expr(r)})) * cast(DType::kInt32, load(b, {Expr(r)}));
    return cuda::dot_words(*make_for(r, n, make_store(sum, {0}, load(sum, {0}) + product)), RangeMap())
        .message();
  };
  EXPECT_EQ(terms(4), "");
  for (const int64_t other : {2, 3, 8})
    EXPECT_THAT(terms(other), HasSubstr(str(other, " times; expected 4 products of bytes")));
}

}  // namespace
}  // namespace tuner::testing
