// matmul_cuda: when it applies, its loops, and random configs on odd shapes, emulated, against the oracle.
#include <gtest/gtest.h>

#include "templates/cuda/cuda_schedule.h"
#include "templates/registry/registry.h"
#include "templates/space/int_expr.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  return w;
}

TEST(MatmulCuda, DeclinesWithTheReason) {
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(matmul_cuda().supports(matmul(4, 4, 4), cpu).reason, "needs a CUDA target, got " + cpu.name());
  EXPECT_EQ(matmul_cuda().supports(Conv2dWorkload{}, gpu()).reason, "serves matmul, got conv2d");
  EXPECT_TRUE(matmul_cuda().supports(matmul(4, 4, 4), gpu()).yes);
  MatmulWorkload w = matmul(4, 4, 4);
  w.dtype = DType::kInt8;
  EXPECT_EQ(matmul_cuda().supports(w, gpu()).reason, "needs float32, float16 or bfloat16, got int8");
  w.dtype = DType::kFloat16;
  EXPECT_EQ(matmul_cuda().supports(w, gpu()).reason, "leaves float16 to matmul_mma_cuda");
  EXPECT_TRUE(matmul_cuda().supports(w, gpu("sm_75")).yes);
}

// What tensor cores do not serve: older GPUs, one row, one column, one term, sums that are too long.
TEST(MatmulCuda, SixteenBitTypes) {
  for (int form = 0; form < 48; ++form) {
    MatmulWorkload w = matmul((form & 1) != 0 ? 1 : 37, (form & 2) != 0 ? 1 : 66, (form & 4) != 0 ? 1 : 75);
    w.dtype = form % 3 == 0 ? DType::kBFloat16 : DType::kFloat16;
    w.transpose_a = (form & 8) != 0;
    w.transpose_b = form % 5 < 2;
    w.batch = form % 7 == 0 ? 3 : 1;
    w.bias = form % 4 == 0;
    if (form % 3 != 1) w.constant = {"b"};
    if (form % 6 == 5) w.constant = {"a", "b"};
    if (form % 5 == 0) w.narrow_out = w.dtype;
    const bool of_tensor_cores = (form & 7) == 0;
    SCOPED_TRACE(str("form ", form));
    expect_gpu_configs_right(matmul_cuda(), w, gpu(of_tensor_cores ? "sm_75" : "sm_90a"), 2,
                             static_cast<uint32_t>(form));
  }
  MatmulWorkload longer = matmul(4, 4, 65600);
  longer.dtype = DType::kBFloat16;
  expect_gpu_configs_right(matmul_cuda(), longer, gpu(), 0, 1);
}

TEST(MatmulCuda, LoopsOfOneConfig) {
  MatmulWorkload w = matmul(40, 60, 20);
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"b"};
  EXPECT_EQ(kernels_of(matmul_cuda(), w,
                       "block_k=8 double_buffer=0 group_m=1 lanes_m=8 layout_a=0 layout_b=0 min_blocks=2 "
                       "rows_a=4 rows_b=1 split_k=1 strided_m=1 strided_n=0 thread_m=8 thread_n=2 unroll_k=4 "
                       "unroll_stages=0 vector_a=1 vector_b=2 warps_m=1 warps_n=4"),
            R"(
kernel matmul(a, b.packed, bias, out) grid (2, 1, 1) block (128, 1, 1) min_blocks 2
  shared a.packed float32[1, 1, 8, 64] layout pad:4 at 0
  shared b.packed.shared float32[1, 1, 8, 32] at 2176
  allocate acc float32[2, 4, 2] register
  unrolled i_part in 0..2
    unrolled i.init in 0..4
      unrolled j.init in 0..2
        acc[i_part, i.init, j.init] = 0
  reduce k_tile in 0..3
    block
      allocate a.ahead float32[4] register
      vectorized row_lane in 0..4
        a.ahead[row_lane] = select(k_tile*8 + tx%8 < 20, a[min(tx//8*4, 36) + row_lane, k_tile*8 + tx%8], 0)
      vectorized row_lane in 0..4
        a.packed[0, 0, tx%8, tx//8*4 + row_lane] = a.ahead[row_lane]
    vectorized lane in 0..2
      b.packed.shared[0, 0, tx//16, tx%16*2 + lane] = b.packed[0, bx, k_tile*8 + tx//16, tx%16*2 + lane]
    barrier shared
    reduce k_group in 0..2
      unrolled reduce k_in_group in 0..4
        allocate a.packed.register float32[2, 1, 1, 1, 4] register
        allocate b.packed.shared.register float32[1, 1, 1, 2] register
        unrolled i_part in 0..2
          vectorized lane in 0..4
            a.packed.register[i_part, 0, 0, 0, lane] = a.packed[0, 0, k_group*4 + k_in_group, i_part*32 + tx//8%4*8 + tx%2*4 + lane]
        vectorized lane in 0..2
          b.packed.shared.register[0, 0, 0, lane] = b.packed.shared[0, 0, k_group*4 + k_in_group, tx//32*8 + tx//2%4*2 + lane]
        unrolled i_part in 0..2
          unrolled i in 0..4
            unrolled j in 0..2
              acc[i_part, i, j] = acc[i_part, i, j] + a.packed.register[i_part, 0, 0, 0, i] * b.packed.shared.register[0, 0, 0, j]
    barrier shared
  unrolled i_part in 0..2
    if i_part*4 + tx//8%4 < 5 && bx*16 + tx//32*4 + tx//2%4 < 30
      unrolled row in 0..4
        vectorized lane in 0..2
          out[i_part*32 + tx//8%4*8 + tx%2*4 + row, bx*32 + tx//32*8 + tx//2%4*2 + lane] = max(acc[i_part, row, lane] + bias[bx*32 + tx//32*8 + tx//2%4*2 + lane], 0)
once before:
kernel matmul_pack(b, b.packed) grid (6, 1, 1) block (256, 1, 1)
  b.packed[0, bx//3, bx%3*8 + tx//32, tx%32] = select(bx%3*8 + tx//32 < 20 && bx//3*32 + tx%32 < 60, b[bx%3*8 + tx//32, bx//3*32 + tx%32], 0)
)");
}

// Half of the threads have no element of out: what they have on its way to the other half's tile is loaded
// all the same.
TEST(MatmulCuda, ThreadsBesideTheMatrixDoTheirPartOfADoubleBuffer) {
  MatmulWorkload w = matmul(11, 12, 20);
  w.constant = {"b"};
  const Result<Config> config = config_from_text(
      "block_k=16 double_buffer=1 group_m=1 lanes_m=2 layout_a=2 layout_b=0 min_blocks=1 rows_a=1 rows_b=1 "
      "split_k=1 strided_m=0 strided_n=0 thread_m=1 thread_n=1 unroll_k=1 unroll_stages=1 vector_a=1 "
      "vector_b=4 "
      "warps_m=1 warps_n=2");
  ASSERT_TRUE(config.is_ok()) << config.message();
  const auto instance = matmul_cuda().apply(w, gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Result<Program> program = (*instance)->instantiate(*config);
  ASSERT_TRUE(program.is_ok()) << program.message();
  expect_gpu_answer(*program, gpu_task_data(Workload(w).compute(), 1), tolerance_of(w));
}

TEST(MatmulCuda, SchedulesReplayFromTheirText) {
  MatmulWorkload w = matmul(70, 52, 100);
  w.transpose_b = w.bias = true;
  w.constant = {"b"};
  expect_gpu_schedules_replay(matmul_cuda(), w, gpu(), 10, 1);
}

TEST(MatmulCuda, DefaultIsValidForAnyShape) {
  for (const char* arch : {"sm_75", "sm_90a"})
    for (const int64_t m : {1, 7, 127, 100000})
      for (const int64_t n : {1, 13, 255, 4096})
        for (const int64_t k : {1, 65536}) {
          const auto instance = matmul_cuda().apply(matmul(m, n, k), gpu(arch));
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          const ConfigSpace& space = (*instance)->space();
          const auto program = (*instance)->instantiate(space.at(space.default_index()));
          ASSERT_TRUE(program.is_ok()) << m << " " << n << " " << k << ": " << program.message();
          const auto lowered = lower_gpu(*program);
          ASSERT_TRUE(lowered.is_ok()) << m << " " << n << " " << k << ": " << lowered.message();
        }
}

TEST(MatmulCuda, LargeSpaceForALargeShape) {
  const auto instance = matmul_cuda().apply(matmul(1024, 1024, 1024), gpu("sm_80"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

TEST(MatmulCuda, RandomConfigsOnOddShapes) {
  for (const auto& w : {matmul(1, 1, 1), matmul(7, 13, 29), matmul(1, 140, 9), matmul(133, 1, 5),
                        matmul(2, 3, 20), matmul(120, 150, 40), matmul(65, 33, 100)}) {
    expect_gpu_configs_right(matmul_cuda(), w, gpu(), 6, 1);
    MatmulWorkload packed = w;
    packed.constant = {"a", "b"};
    expect_gpu_configs_right(matmul_cuda(), packed, gpu(), 6, 1);
  }
}

TEST(MatmulCuda, EveryOperandForm) {
  for (int form = 0; form < 32; form += 3) {
    MatmulWorkload w = matmul(36, 68, 44);
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
    if (form % 4 != 3)
      w.constant = form % 4 == 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"b"};
    w.batch = (form & 16) != 0 ? 3 : 1;
    expect_gpu_configs_right(matmul_cuda(), w, gpu("sm_80"), 1, static_cast<uint64_t>(form));
  }
}

// Tiles of both operands, of the next step too where they are double-buffered, for each block that is wished
// for.
TEST(MatmulCuda, EveryConfigFitsSharedMemory) {
  for (const auto& [arch, bytes] :
       {std::pair{"sm_75", 64 << 10}, {"sm_86", 99 << 10}, {"sm_90", 227 << 10}}) {
    const auto instance = matmul_cuda().apply(matmul(2048, 2048, 2048), gpu(arch));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    std::mt19937_64 rng(7);
    for (int i = 0; i < 3000; ++i) {
      const Config c = space.at(space.sample(rng));
      const int64_t block_m = c.at("warps_m") * c.at("lanes_m") * c.at("thread_m"),
                    block_n = c.at("warps_n") * (32 / c.at("lanes_m")) * c.at("thread_n");
      ASSERT_LE((block_m + block_n) * c.at("block_k") * 4 * (1 + c.at("double_buffer")) * c.at("min_blocks"),
                bytes)
          << space.describe(c);
      ASSERT_LE(c.at("warps_m") * c.at("warps_n") * 32, 1024);
    }
  }
}

// 65,535 blocks in y and in z: more batches go into x, which takes 2^31 - 1.
TEST(MatmulCuda, BatchesBeyondTheGridGoIntoItsFirstDimension) {
  for (const int64_t batch : {65'535, 65'536, 300'000}) {
    MatmulWorkload w = matmul(8, 8, 8);
    w.batch = batch;
    const auto instance = matmul_cuda().apply(w, gpu());
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const auto program =
        (*instance)->instantiate((*instance)->space().at((*instance)->space().default_index()));
    ASSERT_TRUE(program.is_ok()) << program.message();
    const auto lowered = lower_gpu(*program);
    ASSERT_TRUE(lowered.is_ok()) << lowered.message();
    const auto& grid = lowered->kernels[0].grid;
    EXPECT_LE(std::max(grid[1], grid[2]), 65'535);
    EXPECT_GE(grid[0] * grid[1] * grid[2], batch);
    EXPECT_EQ(grid[2], batch == 65'535 ? batch : 1);
  }
}

// 65,536 registers of a multiprocessor, a multiple of 8 for each thread, 255 at most.
TEST(MatmulCuda, RegistersAreDealtInEights) {
  const auto limit = [](int64_t threads, int64_t blocks) {
    return evaluate(*cuda::register_limit(gpu(), threads, blocks).node(), {});
  };
  EXPECT_EQ(limit(256, 1), 255);
  EXPECT_EQ(limit(256, 2), 128);
  EXPECT_EQ(limit(256, 3), 80);   // 85.3
  EXPECT_EQ(limit(384, 1), 168);  // 170.7
  EXPECT_EQ(limit(1024, 1), 64);
}

}  // namespace
}  // namespace tuner
