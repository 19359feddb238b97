// transpose_cuda: when it applies, its loops, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/row_template_check.h"

namespace tuner {
namespace {

TEST(TransposeCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = transpose_cuda();
  EXPECT_EQ(t.supports(TransposeWorkload{7, 7}, *parse_target("llvm -mcpu=haswell")).reason,
            "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(t.supports(TransposeWorkload{.dtype = DType::kFloat16}, gpu()).reason,
            "needs float32, got float16");
  EXPECT_EQ(t.supports(SoftmaxWorkload{7, 7}, gpu()).reason, "serves transpose, got softmax");
  EXPECT_TRUE(t.supports(TransposeWorkload{7, 7}, gpu()).yes);
}

TEST(TransposeCuda, LoopsOfATile) {
  const Program program =
      expect_gpu_config_right(transpose_cuda(), TransposeWorkload{128, 100},
                              "order=0 threads=128 tile_columns=32 tile_rows=64 vector_in=4 vector_out=2");
  EXPECT_EQ(thread_loops(program), R"(
kernel transpose(x, out) grid (8, 1, 1) block (128, 1, 1)
  shared x.shared float32[64, 32] layout pad:1 at 0
  block
    allocate x.ahead float32[4, 4] register
    unrolled round in 0..4
      vectorized lane in 0..4
        x.ahead[round, lane] = select(bx%4*8 + tx%8 < 25, x[bx//4*64 + round*16 + tx//8, bx%4*32 + tx%8*4 + lane], 0)
    unrolled round in 0..4
      vectorized lane in 0..4
        if bx%4*8 + tx%8 < 25
          x.shared[round*16 + tx//8, tx%8*4 + lane] = x.ahead[round, lane]
  barrier shared
  unrolled round in 0..8
    vectorized lane in 0..2
      if bx%4*8 + round < 25
        out[bx%4*32 + round*4 + tx//64*2 + tx//16%2, bx//4*64 + tx//32%2*32 + tx%16*2 + lane] = x.shared[tx//32%2*32 + tx%16*2 + lane, round*4 + tx//64*2 + tx//16%2]
)");
}

TEST(TransposeCuda, VectorsOfEveryWidth) {
  // Tiles that the matrix does not divide by, in both orders.
  for (const char* config : {"order=0 threads=64 tile_columns=32 tile_rows=32 vector_in=4 vector_out=4",
                             "order=1 threads=256 tile_columns=64 tile_rows=32 vector_in=1 vector_out=4",
                             "order=1 threads=1024 tile_columns=128 tile_rows=128 vector_in=2 vector_out=1",
                             "order=0 threads=64 tile_columns=64 tile_rows=64 vector_in=4 vector_out=2"})
    expect_gpu_config_right(transpose_cuda(), TransposeWorkload{100, 76}, config);
}

TEST(TransposeCuda, DefaultsForEveryShape) {
  expect_row_defaults_valid(transpose_cuda(), [](int64_t rows, int64_t columns) {
    return TransposeWorkload{rows, columns};
  });
}

TEST(TransposeCuda, SchedulesReplay) {
  expect_gpu_schedules_replay(transpose_cuda(), TransposeWorkload{333, 1000}, gpu(), 10, 1);
}

TEST(TransposeCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 400;
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 1}, {1, 13}, {33, 7}, {64, 96}, {70, 131}, {45, 40}})
    ASSERT_NO_FATAL_FAILURE(
        expect_gpu_configs_right(transpose_cuda(), TransposeWorkload{rows, columns}, gpu(), 12, ++seed));
}

}  // namespace
}  // namespace tuner
