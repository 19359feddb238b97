// matmul_dp4a_cuda: when it applies, its loops, and random configs on odd shapes, emulated, against the
// oracle.
#include <gtest/gtest.h>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/ir/visitor.h"
#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

MatmulWorkload bytes(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m, w.n = n, w.k = k;
  w.dtype = DType::kInt8;
  return w;
}

TEST(MatmulDp4aCuda, DeclinesWithTheReason) {
  const auto reason = [](const MatmulWorkload& w, const Target& t) {
    return matmul_dp4a_cuda().supports(w, t).reason;
  };
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(reason(bytes(4, 4, 4), gpu()), "needs k > 4, got 4");
  EXPECT_EQ(reason(bytes(4, 4, 8), cpu), "needs a CUDA target, got " + cpu.name());
  MatmulWorkload w = bytes(4, 4, 8);
  w.dtype = DType::kBFloat16;
  EXPECT_EQ(reason(w, gpu()), "needs int8, got bfloat16");
  w = bytes(4, 4, 8);
  w.accumulate = true;
  EXPECT_EQ(reason(w, gpu()), "has no accumulate yet: give the residual apart (\"residual\")");
}

// Tensor cores come first where they serve the task; everything else is served all the same.
TEST(MatmulDp4aCuda, IsTheOnlyOneWhereTensorCoresServeNothing) {
  const auto names = [](const MatmulWorkload& w, const Target& t) {
    std::vector<std::string> found;
    const auto serving = templates_for(w, t);
    EXPECT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* each : *serving) found.emplace_back(each->name());
    return found;
  };
  const std::vector<std::string> both = {"matmul_mma_cuda", "matmul_dp4a_cuda"}, only = {"matmul_dp4a_cuda"};
  MatmulWorkload w = bytes(16, 24, 64);
  EXPECT_EQ(names(w, gpu()), only) << "k lies across the rows of b";
  w.transpose_b = true;
  EXPECT_EQ(names(w, gpu()), both);
  EXPECT_TRUE(matmul_dp4a_cuda().supports(w, gpu()).as_second);
  EXPECT_EQ(names(w, gpu("sm_75")), only);
  w.m = 1;
  EXPECT_EQ(names(w, gpu()), only);
}

TEST(MatmulDp4aCuda, LoopsOfOneConfig) {
  MatmulWorkload w = bytes(40, 60, 100);
  w.bias = true;
  w.constant = {"b"};
  EXPECT_EQ(kernels_of(matmul_dp4a_cuda(), w,
                       "block_k=8 double_buffer=0 group_m=1 lanes_m=8 layout_a=0 layout_b=0 min_blocks=2 "
                       "rows_a=1 rows_b=1 split_k=1 strided_m=1 strided_n=0 thread_m=8 thread_n=2 unroll_k=4 "
                       "unroll_stages=0 vector_a=1 vector_b=2 warps_m=1 warps_n=4"),
            R"(
kernel matmul(a, b.packed, bias, out) grid (2, 1, 1) block (128, 1, 1) min_blocks 2
  shared a.packed uint8[1, 8, 64, 4] layout groups:pad:4 at 0
  shared b.packed.shared int8[1, 8, 32, 4] at 2176
  allocate acc int32[2, 4, 2] register
  unrolled i_part in 0..2
    unrolled i.init in 0..4
      unrolled j.init in 0..2
        acc[i_part, i.init, j.init] = 0
  reduce k_tile in 0..4
    block
      allocate a.ahead uint8[4, 4] register
      unrolled row_round in 0..4
        vectorized lane in 0..4
          a.ahead[row_round, lane] = select(k_tile*8 + tx%8 < 25, a[min(row_round*16 + tx//32*4, 36) + tx//8%4, k_tile*32 + tx%8*4 + lane], 0)
      unrolled row_round in 0..4
        vectorized lane in 0..4
          a.packed[0, tx%8, row_round*16 + tx//8, lane] = a.ahead[row_round, lane]
    vectorized lane in 0..8
      b.packed.shared[0, tx//16, tx%16*2 + lane//4, lane%4] = b.packed[bx, k_tile*8 + tx//16, tx%16*2 + lane//4, lane%4]
    barrier shared
    reduce k_group in 0..2
      unrolled reduce k_in_group in 0..4
        allocate a.packed.register uint8[2, 1, 1, 4, 4] register
        allocate b.packed.shared.register int8[1, 1, 2, 4] register
        unrolled i_part in 0..2
          vectorized lane in 0..16
            a.packed.register[i_part, 0, 0, lane//4, lane%4] = a.packed[0, k_group*4 + k_in_group, i_part*32 + tx//8%4*8 + tx%2*4 + lane//4, lane%4]
        vectorized lane in 0..8
          b.packed.shared.register[0, 0, lane//4, lane%4] = b.packed.shared[0, k_group*4 + k_in_group, tx//32*8 + tx//2%4*2 + lane//4, lane%4]
        unrolled i_part in 0..2
          unrolled i in 0..4
            unrolled j in 0..2
              dot reduce term in 0..4
                acc[i_part, i, j] = acc[i_part, i, j] + int32(a.packed.register[i_part, 0, 0, i, term])*int32(b.packed.shared.register[0, 0, j, term])
    barrier shared
  unrolled i_part in 0..2
    if i_part*4 + tx//8%4 < 5 && bx*16 + tx//32*4 + tx//2%4 < 30
      unrolled row in 0..4
        vectorized lane in 0..2
          out[i_part*32 + tx//8%4*8 + tx%2*4 + row, bx*32 + tx//32*8 + tx//2%4*2 + lane] = acc[i_part, row, lane] + bias[bx*32 + tx//32*8 + tx//2%4*2 + lane]
once before:
kernel matmul_pack(b, b.packed) grid (32, 1, 1) block (256, 1, 1)
  b.packed[bx//16, bx%16*2 + tx//128, tx//4%32, tx%4] = select(bx%16*2 + tx//128 < 25 && bx//16*32 + tx//4%32 < 60, b[bx%16*8 + tx//128*4 + tx%4, bx//16*32 + tx//4%32], 0)
)");
}

TEST(MatmulDp4aCuda, SchedulesReplayFromTheirText) {
  MatmulWorkload w = bytes(70, 52, 100);
  w.transpose_b = w.bias = true;
  w.constant = {"b"};
  expect_gpu_schedules_replay(matmul_dp4a_cuda(), w, gpu(), 10, 1);
}

TEST(MatmulDp4aCuda, DefaultIsValidForAnyShape) {
  for (const char* arch : {"sm_70", "sm_75", "sm_90a"})
    for (const int64_t m : {1, 7, 127, 100000})
      for (const int64_t n : {1, 13, 255, 4096})
        for (const int64_t k : {5, 50, 65536})
          for (const bool turned : {false, true}) {
            MatmulWorkload w = bytes(m, n, k);
            w.transpose_a = w.transpose_b = turned;
            SCOPED_TRACE(str(Workload(w).key(), " on ", arch));
            const auto instance = matmul_dp4a_cuda().apply(w, gpu(arch));
            ASSERT_TRUE(instance.is_ok()) << instance.message();
            const ConfigSpace& space = (*instance)->space();
            const auto program = (*instance)->instantiate(space.at(space.default_index()));
            ASSERT_TRUE(program.is_ok()) << program.message();
            const auto lowered = lower_gpu(*program);
            ASSERT_TRUE(lowered.is_ok()) << lowered.message();
            ASSERT_TRUE(cuda::check_printable(*lowered).is_ok()) << cuda::check_printable(*lowered).message();
          }
}

TEST(MatmulDp4aCuda, LargeSpaceForALargeShape) {
  const auto instance = matmul_dp4a_cuda().apply(bytes(1024, 1024, 1024), gpu("sm_75"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

TEST(MatmulDp4aCuda, RandomConfigsOnOddShapes) {
  for (const auto& w : {bytes(1, 1, 5), bytes(7, 13, 29), bytes(1, 140, 9), bytes(133, 1, 5), bytes(2, 3, 20),
                        bytes(120, 150, 40), bytes(65, 33, 100)}) {
    expect_gpu_configs_right(matmul_dp4a_cuda(), w, gpu("sm_75"), 6, 1);
    MatmulWorkload packed = w;
    packed.constant = {"a", "b"};
    expect_gpu_configs_right(matmul_dp4a_cuda(), packed, gpu("sm_75"), 6, 1);
    MatmulWorkload along_k = w;
    along_k.transpose_b = true;
    expect_gpu_configs_right(matmul_dp4a_cuda(), along_k, gpu(), 6, 1);
  }
}

// Both operands along k and across, packed and not; batches; every kind of output.
TEST(MatmulDp4aCuda, EveryOperandForm) {
  for (int form = 0; form < 64; form += 3) {
    MatmulWorkload w = bytes(form % 5 == 0 ? 37 : 40, form % 7 == 0 ? 51 : 72, form % 4 == 0 ? 45 : 96);
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
    if (form % 4 == 3) w.constant = {"b"};
    if (form % 8 == 6) w.constant = {"a", "b"};
    if ((form & 16) != 0) w.narrow_out = (form & 1) != 0 ? DType::kUInt8 : DType::kInt8;
    w.residual = (form & 32) != 0;
    w.batch = form % 3 == 0 && form % 2 == 0 ? 3 : 1;
    expect_gpu_configs_right(matmul_dp4a_cuda(), w, gpu("sm_80"), 2, static_cast<uint32_t>(form));
  }
}

// Every config that may be drawn has its four bytes side by side: none is refused when it is printed.
TEST(MatmulDp4aCuda, EveryDotProductIsOneInstruction) {
  const RandomSeed seed(5);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 60; ++i) {
    MatmulWorkload w = bytes(1 + static_cast<int64_t>(rng() % 90), 1 + static_cast<int64_t>(rng() % 90),
                             5 + static_cast<int64_t>(rng() % 300));
    w.transpose_a = rng() % 2 == 0, w.transpose_b = rng() % 2 == 0;
    if (rng() % 3 == 0) w.constant = {"b"};
    const auto instance = matmul_dp4a_cuda().apply(w, gpu("sm_75"));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const Config config = (*instance)->space().at((*instance)->space().sample(rng));
    SCOPED_TRACE(str(Workload(w).key(), ": ", config.to_text()));
    const auto program = (*instance)->instantiate(config);
    ASSERT_TRUE(program.is_ok()) << program.message();
    const auto lowered = lower_gpu(*program);
    ASSERT_TRUE(lowered.is_ok()) << lowered.message();
    ASSERT_TRUE(cuda::check_printable(*lowered).is_ok()) << cuda::check_printable(*lowered).message();
    int dots = 0;
    visit(lowered->kernels[0].body, [&](const Stmt& s) { dots += s->loop == LoopKind::kDot; });
    EXPECT_EQ(dots, 1);
  }
}

}  // namespace
}  // namespace tuner
