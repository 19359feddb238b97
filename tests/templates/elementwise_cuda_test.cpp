// elementwise_cuda: when it applies, its loops, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/row_template_check.h"

namespace tuner {
namespace {

TEST(ElementwiseCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = elementwise_cuda();
  EXPECT_EQ(t.supports(ElementwiseWorkload{7, 7}, *parse_target("llvm -mcpu=haswell")).reason,
            "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(t.supports(ElementwiseWorkload{.dtype = DType::kFloat16}, gpu()).reason,
            "needs float32, got float16");
  EXPECT_EQ(t.supports(SoftmaxWorkload{7, 7}, gpu()).reason, "serves elementwise, got softmax");
  EXPECT_TRUE(t.supports(ElementwiseWorkload{7, 7}, gpu()).yes);
}

TEST(ElementwiseCuda, LoopsOfAResidualBlock) {
  const Program program = expect_gpu_config_right(
      elementwise_cuda(), ElementwiseWorkload{10, 600, true, true, true, Activation::kRelu},
      "loads=2 threads=64 vector=4");
  EXPECT_EQ(thread_loops(program), R"(
kernel elementwise(x, scale, bias, residual, out) grid (12, 1, 1) block (64, 1, 1)
  allocate residual.ahead float32[2, 4] register
  allocate bias.ahead float32[2, 4] register
  allocate scale.ahead float32[2, 4] register
  allocate x.ahead float32[2, 4] register
  unrolled i.j.outer.fused.inner.outer in 0..2
    vectorized j.inner in 0..4
      x.ahead[i.j.outer.fused.inner.outer, j.inner] = select(bx*128 + i.j.outer.fused.inner.outer*64 + tx < 1500, x[(bx*128 + i.j.outer.fused.inner.outer*64 + tx)//150, (bx*128 + i.j.outer.fused.inner.outer*64 + tx)%150*4 + j.inner], 0)
  unrolled i.j.outer.fused.inner.outer in 0..2
    vectorized j.inner in 0..4
      scale.ahead[i.j.outer.fused.inner.outer, j.inner] = select(bx*128 + i.j.outer.fused.inner.outer*64 + tx < 1500, scale[(bx*128 + i.j.outer.fused.inner.outer*64 + tx)%150*4 + j.inner], 0)
  unrolled i.j.outer.fused.inner.outer in 0..2
    vectorized j.inner in 0..4
      bias.ahead[i.j.outer.fused.inner.outer, j.inner] = select(bx*128 + i.j.outer.fused.inner.outer*64 + tx < 1500, bias[(bx*128 + i.j.outer.fused.inner.outer*64 + tx)%150*4 + j.inner], 0)
  unrolled i.j.outer.fused.inner.outer in 0..2
    vectorized j.inner in 0..4
      residual.ahead[i.j.outer.fused.inner.outer, j.inner] = select(bx*128 + i.j.outer.fused.inner.outer*64 + tx < 1500, residual[(bx*128 + i.j.outer.fused.inner.outer*64 + tx)//150, (bx*128 + i.j.outer.fused.inner.outer*64 + tx)%150*4 + j.inner], 0)
  unrolled i.j.outer.fused.inner.outer in 0..2
    if bx*128 + i.j.outer.fused.inner.outer*64 + tx < 1500
      vectorized j.inner in 0..4
        out[(bx*128 + i.j.outer.fused.inner.outer*64 + tx)//150, (bx*128 + i.j.outer.fused.inner.outer*64 + tx)%150*4 + j.inner] = max(x.ahead[i.j.outer.fused.inner.outer, j.inner] * scale.ahead[i.j.outer.fused.inner.outer, j.inner] + bias.ahead[i.j.outer.fused.inner.outer, j.inner] + residual.ahead[i.j.outer.fused.inner.outer, j.inner], 0)
)");
}

TEST(ElementwiseCuda, EveryPart) {
  for (int form = 0; form < 16; ++form) {
    const ElementwiseWorkload w{
        .rows = 7,
        .columns = 30,
        .scale = (form & 1) != 0,
        .bias = (form & 2) != 0,
        .residual = (form & 4) != 0,
        .activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone,
    };
    expect_gpu_config_right(elementwise_cuda(), w, "loads=2 threads=32 vector=2");
  }
}

TEST(ElementwiseCuda, DefaultsForEveryShape) {
  expect_row_defaults_valid(elementwise_cuda(), [](int64_t rows, int64_t columns) {
    return ElementwiseWorkload{rows, columns, true, true, true};
  });
}

TEST(ElementwiseCuda, SchedulesReplay) {
  expect_gpu_schedules_replay(elementwise_cuda(), ElementwiseWorkload{333, 1000}, gpu(), 10, 1);
}

TEST(ElementwiseCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 500;
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 1}, {1, 13}, {33, 7}, {7, 96}, {1, 4000}, {5, 300}})
    ASSERT_NO_FATAL_FAILURE(expect_gpu_configs_right(
        elementwise_cuda(), ElementwiseWorkload{rows, columns, true, true, true}, gpu(), 8, ++seed));
}

}  // namespace
}  // namespace tuner
