// softmax_cuda: when it applies, its loops, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/row_template_check.h"

namespace tuner {
namespace {

TEST(SoftmaxCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = softmax_cuda();
  EXPECT_EQ(t.supports(SoftmaxWorkload{7, 7}, *parse_target("llvm -mcpu=haswell")).reason,
            "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(t.supports(SoftmaxWorkload{.dtype = DType::kFloat16}, gpu()).reason,
            "needs float32, got float16");
  EXPECT_EQ(t.supports(TransposeWorkload{7, 7}, gpu()).reason, "serves softmax, got transpose");
  EXPECT_TRUE(t.supports(SoftmaxWorkload{7, 7}, gpu()).yes);
}

TEST(SoftmaxCuda, ACpuIsServedByAnotherTemplate) {
  const auto serving = templates_for(SoftmaxWorkload{7, 7}, *parse_target("llvm -mcpu=haswell"));
  ASSERT_TRUE(serving.is_ok()) << serving.message();
  EXPECT_EQ(*serving, std::vector<const AnyTemplate*>{&softmax_cpu()});
}

TEST(SoftmaxCuda, LoopsOfARowInRegisters) {
  const Program program = expect_gpu_config_right(softmax_cuda(), SoftmaxWorkload{4, 128},
                                                  "kept=0 loads=1 rows=2 threads=32 vector=2");
  EXPECT_EQ(scheduled_loops(program), R"(
kernel softmax(input x float32[4, 128], output out float32[4, 128])
  blockIdx.x i.outer in 0..2
    threadIdx.y i.inner in 0..2
      allocate row_sum float32[1] register
      allocate row_sum.partial float32[32, 1] register
      allocate exps.packed.packed float32[1, 2, 32, 2] register
      allocate row_max float32[1] register
      allocate row_max.partial float32[32, 1] register
      allocate x.packed.packed float32[1, 2, 32, 2] register
      for p0 in 0..1
        threadIdx.x p2 in 0..32
          for p1.outer in 0..1
            unrolled p1.inner in 0..2
              vectorized p3 in 0..2
                x.packed.packed[0, p1.inner, p2, p3] = x[i.outer*2 + i.inner, p1.inner*64 + p2*2 + p3]
      threadIdx.x j.inner.outer in 0..32
        for i in 0..1
          row_max.partial[j.inner.outer, 0] = -inf
          reduce j.outer.outer in 0..1
            unrolled reduce j.outer.inner in 0..2
              unrolled reduce j.inner.inner in 0..2
                row_max.partial[j.inner.outer, 0] max= x.packed.packed[0, j.outer.inner, j.inner.outer, j.inner.inner]
      for i in 0..1
        threadIdx.x reduce j.inner.outer in 0..32
          row_max[0] max= row_max.partial[j.inner.outer, 0], from -inf when j.inner.outer == 0
      for p0 in 0..1
        threadIdx.x p2 in 0..32
          for p1.outer in 0..1
            unrolled p1.inner in 0..2
              vectorized p3 in 0..2
                exps.packed.packed[0, p1.inner, p2, p3] = exp(x.packed.packed[0, p1.inner, p2, p3] - row_max[0])
      threadIdx.x j.inner.outer in 0..32
        for i in 0..1
          row_sum.partial[j.inner.outer, 0] = 0
          reduce j.outer.outer in 0..1
            unrolled reduce j.outer.inner in 0..2
              unrolled reduce j.inner.inner in 0..2
                row_sum.partial[j.inner.outer, 0] += exps.packed.packed[0, j.outer.inner, j.inner.outer, j.inner.inner]
      for i in 0..1
        threadIdx.x reduce j.inner.outer in 0..32
          row_sum[0] += row_sum.partial[j.inner.outer, 0], from 0 when j.inner.outer == 0
      for j.outer.outer in 0..1
        threadIdx.x j.inner.outer in 0..32
          unrolled j.outer.inner in 0..2
            vectorized j.inner.inner in 0..2
              out[i.outer*2 + i.inner, j.outer.inner*64 + j.inner.outer*2 + j.inner.inner] = exps.packed.packed[0, j.outer.inner, j.inner.outer, j.inner.inner] / row_sum[0]
)");
}

TEST(SoftmaxCuda, EveryWayToKeepARow) {
  // Part of a warp, one, several; guarded rows and columns; steps of several loads.
  for (const char* config :
       {"kept=0 loads=1 rows=4 threads=8 vector=4", "kept=0 loads=1 rows=1 threads=96 vector=1",
        "kept=1 loads=1 rows=2 threads=32 vector=4", "kept=1 loads=4 rows=4 threads=32 vector=1",
        "kept=1 loads=2 rows=4 threads=128 vector=2", "kept=2 loads=8 rows=2 threads=16 vector=1",
        "kept=2 loads=2 rows=1 threads=256 vector=1"})
    expect_gpu_config_right(softmax_cuda(), SoftmaxWorkload{7, 300}, config);
}

TEST(SoftmaxCuda, DefaultsForEveryShape) {
  expect_row_defaults_valid(softmax_cuda(), [](int64_t rows, int64_t columns) {
    return SoftmaxWorkload{rows, columns};
  });
}

TEST(SoftmaxCuda, SchedulesReplay) {
  expect_gpu_schedules_replay(softmax_cuda(), SoftmaxWorkload{33, 1000}, gpu(), 10, 1);
}

TEST(SoftmaxCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 100;
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 1}, {1, 13}, {33, 7}, {7, 96}, {3, 131}, {5, 300}})
    ASSERT_NO_FATAL_FAILURE(
        expect_gpu_configs_right(softmax_cuda(), SoftmaxWorkload{rows, columns}, gpu(), 8, ++seed));
}

// Rows of a block, each as long as its threads cover, in shared memory.
TEST(SoftmaxCuda, RowsThatAreKeptFitSharedMemory) {
  const auto instance = softmax_cuda().apply(SoftmaxWorkload{4096, 3000}, gpu("sm_86"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  std::mt19937_64 rng(8);
  int kept = 0;
  for (int i = 0; i < 3000; ++i) {
    const Config c = space.at(space.sample(rng));
    if (c.at("kept") != 1) continue;  // registers, shared, nowhere
    const int64_t covered = c.at("threads") * c.at("vector"), chunks = (3000 + covered - 1) / covered;
    ASSERT_LE(c.at("rows") * chunks * covered * 4, 99 << 10) << space.describe(c);
    ++kept;
  }
  EXPECT_GT(kept, 100);
}

}  // namespace
}  // namespace tuner
