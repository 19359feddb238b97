// layer_norm_cuda: when it applies, its loops, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/row_template_check.h"

namespace tuner {
namespace {

TEST(LayerNormCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = layer_norm_cuda();
  EXPECT_EQ(t.supports(LayerNormWorkload{7, 7}, *parse_target("llvm -mcpu=haswell")).reason,
            "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(t.supports(LayerNormWorkload{.dtype = DType::kFloat16}, gpu()).reason,
            "needs float32, got float16");
  EXPECT_EQ(t.supports(SoftmaxWorkload{7, 7}, gpu()).reason, "serves layer_norm, got softmax");
  EXPECT_TRUE(t.supports(LayerNormWorkload{7, 7}, gpu()).yes);
}

TEST(LayerNormCuda, LoopsOfARowInSharedMemory) {
  const Program program = expect_gpu_config_right(layer_norm_cuda(), LayerNormWorkload{4, 256},
                                                  "kept=1 loads=2 rows=2 threads=32 vector=2");
  EXPECT_EQ(scheduled_loops(program), R"(
kernel layer_norm(input x float32[4, 256], input gamma float32[256], input beta float32[256], output out float32[4, 256])
  blockIdx.x i.outer in 0..2
    threadIdx.y i.inner in 0..2
      allocate inverse_deviation float32[1] register
      allocate squares float32[1] register
      allocate squares.partial float32[32, 1] register
      allocate mean float32[1] register
      allocate row_sum float32[1] register
      allocate row_sum.partial float32[32, 1] register
      allocate x.packed.packed float32[2, 4, 32, 2] shared
      threadIdx.y p0 in 0..2
        threadIdx.x p2 in 0..32
          for p1.outer in 0..2
            unrolled p1.inner in 0..2
              vectorized p3 in 0..2
                x.packed.packed[p0, p1.outer*2 + p1.inner, p2, p3] = x[i.outer*2 + p0, p1.outer*128 + p1.inner*64 + p2*2 + p3]
      threadIdx.x j.inner.outer in 0..32
        for i in 0..1
          row_sum.partial[j.inner.outer, 0] = 0
          reduce j.outer.outer in 0..2
            allocate x.packed.packed.register.3 float32[1, 2, 1, 2] register
            for i0 in 0..1
              unrolled i1 in 0..2
                for i2 in 0..1
                  vectorized i3 in 0..2
                    x.packed.packed.register.3[0, i1, 0, i3] = x.packed.packed[i.inner, j.outer.outer*2 + i1, j.inner.outer, i3]
            unrolled reduce j.outer.inner in 0..2
              unrolled reduce j.inner.inner in 0..2
                row_sum.partial[j.inner.outer, 0] += x.packed.packed.register.3[0, j.outer.inner, 0, j.inner.inner]
      for i in 0..1
        threadIdx.x reduce j.inner.outer in 0..32
          row_sum[0] += row_sum.partial[j.inner.outer, 0], from 0 when j.inner.outer == 0
      for i in 0..1
        mean[0] = row_sum[0] / 256
      threadIdx.x j.inner.outer in 0..32
        for i in 0..1
          squares.partial[j.inner.outer, 0] = 0
          reduce j.outer.outer in 0..2
            allocate x.packed.packed.register.2 float32[1, 2, 1, 2] register
            for i0 in 0..1
              unrolled i1 in 0..2
                for i2 in 0..1
                  vectorized i3 in 0..2
                    x.packed.packed.register.2[0, i1, 0, i3] = x.packed.packed[i.inner, j.outer.outer*2 + i1, j.inner.outer, i3]
            unrolled reduce j.outer.inner in 0..2
              unrolled reduce j.inner.inner in 0..2
                squares.partial[j.inner.outer, 0] += (x.packed.packed.register.2[0, j.outer.inner, 0, j.inner.inner] - mean[0]) * (x.packed.packed.register.2[0, j.outer.inner, 0, j.inner.inner] - mean[0])
      for i in 0..1
        threadIdx.x reduce j.inner.outer in 0..32
          squares[0] += squares.partial[j.inner.outer, 0], from 0 when j.inner.outer == 0
      for i in 0..1
        inverse_deviation[0] = 1 / sqrt(squares[0] / 256 + 1e-05)
      for j.outer.outer in 0..2
        threadIdx.x j.inner.outer in 0..32
          allocate x.packed.packed.register float32[1, 2, 1, 2] register
          for i0 in 0..1
            unrolled i1 in 0..2
              for i2 in 0..1
                vectorized i3 in 0..2
                  x.packed.packed.register[0, i1, 0, i3] = x.packed.packed[i.inner, j.outer.outer*2 + i1, j.inner.outer, i3]
          unrolled j.outer.inner in 0..2
            vectorized j.inner.inner in 0..2
              out[i.outer*2 + i.inner, j.outer.outer*128 + j.outer.inner*64 + j.inner.outer*2 + j.inner.inner] = (x.packed.packed.register[0, j.outer.inner, 0, j.inner.inner] - mean[0]) * inverse_deviation[0] * gamma[j.outer.outer*128 + j.outer.inner*64 + j.inner.outer*2 + j.inner.inner] + beta[j.outer.outer*128 + j.outer.inner*64 + j.inner.outer*2 + j.inner.inner]
)");
}

TEST(LayerNormCuda, EveryWayToKeepARow) {
  // Part of a warp, one, several; guarded rows and columns; steps of several loads.
  for (const char* config :
       {"kept=0 loads=1 rows=4 threads=8 vector=4", "kept=0 loads=1 rows=1 threads=96 vector=1",
        "kept=1 loads=1 rows=2 threads=32 vector=4", "kept=1 loads=4 rows=4 threads=32 vector=1",
        "kept=1 loads=2 rows=4 threads=128 vector=2", "kept=2 loads=8 rows=2 threads=16 vector=1",
        "kept=2 loads=2 rows=1 threads=256 vector=1"})
    expect_gpu_config_right(layer_norm_cuda(), LayerNormWorkload{7, 300}, config);
}

TEST(LayerNormCuda, DefaultsForEveryShape) {
  expect_row_defaults_valid(layer_norm_cuda(), [](int64_t rows, int64_t columns) {
    return LayerNormWorkload{rows, columns};
  });
}

TEST(LayerNormCuda, SchedulesReplay) {
  expect_gpu_schedules_replay(layer_norm_cuda(), LayerNormWorkload{33, 1000}, gpu(), 10, 1);
}

TEST(LayerNormCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 200;
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 1}, {1, 13}, {33, 7}, {7, 96}, {3, 131}, {5, 300}})
    ASSERT_NO_FATAL_FAILURE(
        expect_gpu_configs_right(layer_norm_cuda(), LayerNormWorkload{rows, columns}, gpu(), 8, ++seed));
}

}  // namespace
}  // namespace tuner
