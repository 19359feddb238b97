// reduce_cuda: when it applies, its loops, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/row_template_check.h"

namespace tuner {
namespace {

TEST(ReduceCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = reduce_cuda();
  EXPECT_EQ(t.supports(ReduceWorkload{7, 7}, *parse_target("llvm -mcpu=haswell")).reason,
            "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(t.supports(ReduceWorkload{.dtype = DType::kFloat16}, gpu()).reason, "needs float32, got float16");
  EXPECT_EQ(t.supports(SoftmaxWorkload{7, 7}, gpu()).reason, "serves reduce, got softmax");
  EXPECT_TRUE(t.supports(ReduceWorkload{7, 7}, gpu()).yes);
}

TEST(ReduceCuda, LoopsOfRowsInParts) {
  const Program program = expect_gpu_config_right(reduce_cuda(), ReduceWorkload{4, 8192, RowReduction::kMean},
                                                  "loads=4 rows=1 splits=8 threads=64 vector=4");
  EXPECT_EQ(scheduled_loops(program), R"(
kernel reduce(input x float32[4, 8192], output out float32[4])
  allocate acc.partial float32[8, 4]
  blockIdx.y j.outer in 0..8
    blockIdx.x i.outer in 0..4
      threadIdx.y i.inner in 0..1
        allocate acc.partial.register float32[1, 1] register
        allocate acc.partial.register.partial float32[64, 1, 1] register
        threadIdx.x j.inner.inner.outer in 0..64
          for j.outer_1 in 0..1
            for i in 0..1
              acc.partial.register.partial[j.inner.inner.outer, 0, 0] = 0
              reduce j.inner.outer.outer in 0..1
                allocate x.packed.packed.register float32[1, 4, 1, 4] register
                for i0 in 0..1
                  unrolled i1 in 0..4
                    for i2 in 0..1
                      vectorized i3 in 0..4
                        x.packed.packed.register[0, i1, 0, i3] = x[i.outer, j.outer*1024 + i1*256 + j.inner.inner.outer*4 + i3]
                unrolled reduce j.inner.outer.inner in 0..4
                  unrolled reduce j.inner.inner.inner in 0..4
                    acc.partial.register.partial[j.inner.inner.outer, 0, 0] += x.packed.packed.register[0, j.inner.outer.inner, 0, j.inner.inner.inner]
        for j.outer_1 in 0..1
          for i in 0..1
            threadIdx.x reduce j.inner.inner.outer in 0..64
              acc.partial.register[0, 0] += acc.partial.register.partial[j.inner.inner.outer, 0, 0], from 0 when j.inner.inner.outer == 0
        acc.partial[j.outer, i.outer] = acc.partial.register[0, 0]
  blockIdx.x i.outer in 0..1
    threadIdx.y i.inner in 0..4
      allocate acc float32[1] register
      for i in 0..1
        threadIdx.x reduce j.outer in 0..8
          acc[0] += acc.partial[j.outer, i.inner], from 0 when j.outer == 0
      out[i.inner] = acc[0] / 8192
)");
}

TEST(ReduceCuda, EveryReductionInOnePartAndInSeveral) {
  // Part of a warp, one, several; guarded rows and columns; parts that the columns do not divide by.
  for (const char* config :
       {"loads=1 rows=4 splits=1 threads=16 vector=4", "loads=8 rows=2 splits=1 threads=96 vector=2",
        "loads=2 rows=1 splits=4 threads=128 vector=1", "loads=2 rows=2 splits=2 threads=32 vector=4"})
    expect_gpu_config_right(reduce_cuda(), ReduceWorkload{3, 5000, RowReduction::kSum}, config);
  for (const char* config :
       {"loads=1 rows=4 splits=1 threads=16 vector=4", "loads=8 rows=2 splits=1 threads=96 vector=2",
        "loads=2 rows=1 splits=4 threads=128 vector=1", "loads=2 rows=2 splits=2 threads=32 vector=4"})
    expect_gpu_config_right(reduce_cuda(), ReduceWorkload{3, 5000, RowReduction::kMax}, config);
  for (const char* config :
       {"loads=1 rows=4 splits=1 threads=16 vector=4", "loads=8 rows=2 splits=1 threads=96 vector=2",
        "loads=2 rows=1 splits=4 threads=128 vector=1", "loads=2 rows=2 splits=2 threads=32 vector=4"})
    expect_gpu_config_right(reduce_cuda(), ReduceWorkload{3, 5000, RowReduction::kMin}, config);
  for (const char* config :
       {"loads=1 rows=4 splits=1 threads=16 vector=4", "loads=8 rows=2 splits=1 threads=96 vector=2",
        "loads=2 rows=1 splits=4 threads=128 vector=1", "loads=2 rows=2 splits=2 threads=32 vector=4"})
    expect_gpu_config_right(reduce_cuda(), ReduceWorkload{3, 5000, RowReduction::kMean}, config);
}

TEST(ReduceCuda, DefaultsForEveryShape) {
  expect_row_defaults_valid(reduce_cuda(), [](int64_t rows, int64_t columns) {
    return ReduceWorkload{rows, columns};
  });
}

TEST(ReduceCuda, SchedulesReplay) {
  expect_gpu_schedules_replay(reduce_cuda(), ReduceWorkload{3, 100'000}, gpu(), 10, 1);
}

TEST(ReduceCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 300;
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 1}, {1, 13}, {33, 7}, {7, 96}, {3, 131}, {5, 300}, {2, 5001}})
    ASSERT_NO_FATAL_FAILURE(
        expect_gpu_configs_right(reduce_cuda(), ReduceWorkload{rows, columns}, gpu(), 8, ++seed));
}

}  // namespace
}  // namespace tuner
