// The static filter before compiling: limits, register estimate, occupancy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen_cuda/cuda.h"
#include "tests/compiler_core/gpu_kernels.h"
#ifdef TUNER_HAVE_CUDA_OCCUPANCY
#include <cuda_occupancy.h>
#endif

namespace tuner::testing {
namespace {

using ::testing::HasSubstr;

Target target(const std::string& arch = "sm_90a") { return *parse_target("cuda -arch=" + arch); }
Status check(const GpuKernel& k, const std::string& arch = "sm_90a") {
  return check_resources(k, target(arch));
}

TEST(CodegenCudaFilter, AcceptsAnOrdinaryTile) {
  const GpuKernel k = tiled_matmul({.tile = 8}).kernels[0];
  EXPECT_TRUE(check(k).is_ok()) << check(k).message();
  const ResourceEstimate e = estimate_resources(k, target());
  EXPECT_EQ(e.threads, 256);
  EXPECT_EQ(e.shared_bytes, 16384);
  EXPECT_EQ(e.register_limit, 255);
  EXPECT_GE(e.registers, 64 + 8);
  EXPECT_LE(e.registers, 121);  // what ptxas gave it
}

TEST(CodegenCudaFilter, StageARefusesAccumulatorsBeyondTheRegisters) {
  GpuKernel k = tiled_matmul({.tile = 16}).kernels[0];
  EXPECT_EQ(check(k).code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(check(k).message(), HasSubstr("stage A: matmul: needs about"));
  k = tiled_matmul({.tile = 8}).kernels[0];
  k.min_blocks = 4;  // leaves 64
  EXPECT_EQ(estimate_resources(k, target()).register_limit, 64);
  EXPECT_THAT(check(k).message(), HasSubstr("registers, 64 there"));
}

TEST(CodegenCudaFilter, StageARefusesTooManyThreadsAndTooLargeGrids) {
  GpuKernel k = elementwise(1024).kernels[0];
  k.block = {1024, 2, 1};
  EXPECT_THAT(check(k).message(), HasSubstr("2048 threads a block, at most 1024"));
  k.block = {32, 1, 1};
  k.grid = {1, 65536, 1};
  EXPECT_THAT(check(k).message(), HasSubstr("grid 1 x 65536 x 1"));
  k.grid = {0, 1, 1};
  EXPECT_THAT(check(k).message(), HasSubstr("no size"));
  k.grid = {1, 1, 65536};
  EXPECT_THAT(check(k).message(), HasSubstr("grid 1 x 1 x 65536, at most 2147483647 x 65535 x 65535 there"));
  k.grid = {65536, 65535, 65535};
  EXPECT_TRUE(check(k).is_ok()) << check(k).message();
  k.block = {1, 1, 65};
  EXPECT_THAT(check(k).message(), HasSubstr("65 threads a block, at most 1024 (64 in z) there"));
  k.block = {1, 1, 64};
  EXPECT_TRUE(check(k).is_ok()) << check(k).message();
}

TEST(CodegenCudaFilter, StageARefusesSharedMemoryThatIsNotThere) {
  GpuKernel k = elementwise(1024).kernels[0];
  k.shared_bytes = 232448;
  EXPECT_TRUE(check(k).is_ok()) << check(k).message();
  k.shared_bytes += 16;
  EXPECT_THAT(check(k).message(), HasSubstr("needs 232464 bytes of shared memory, 232448 there"));
  k.shared_bytes = 100 << 10;
  EXPECT_FALSE(check(k, "sm_86").is_ok());
}

TEST(CodegenCudaFilter, StageARefusesTooMuchUnrolling) {
  const GpuKernel k = tiled_matmul({.k = 1024, .block_k = 128, .tile = 8}).kernels[0];
  EXPECT_THAT(check(k).message(), HasSubstr("8192 multiply-adds written out, at most 4096"));
}

TEST(CodegenCudaFilter, StageCRefusesBlocksThatDoNotFit) {
  GpuKernel k = elementwise(1024).kernels[0];
  Target small = target();
  small.threads_per_sm = 128;
  EXPECT_EQ(check_resources(k, small).message(),
            "stage C: relu: no block of 256 threads and 0 bytes of shared memory fits a multiprocessor");
  // A wish of launch bounds that shared memory does not allow is only slow.
  k.shared_bytes = 120 << 10;
  k.min_blocks = 2;
  EXPECT_TRUE(check(k).is_ok()) << check(k).message();
}

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": KiB of shared memory of a
// block and of a multiprocessor, threads and blocks of a multiprocessor.
TEST(CodegenCudaFilter, LimitsAreThoseOfTheProgrammingGuide) {
  const struct {
    const char* arch;
    int64_t block_kib, sm_kib, threads, blocks;
  } kRows[] = {{"sm_70", 96, 96, 2048, 32},    {"sm_75", 64, 64, 1024, 16},    {"sm_80", 163, 164, 2048, 32},
               {"sm_86", 99, 100, 1536, 16},   {"sm_87", 163, 164, 1536, 16},  {"sm_89", 99, 100, 1536, 24},
               {"sm_90", 227, 228, 2048, 32},  {"sm_90a", 227, 228, 2048, 32}, {"sm_100", 227, 228, 2048, 32},
               {"sm_103", 227, 228, 2048, 32}, {"sm_120", 99, 100, 1536, 24}};
  for (const auto& [arch, block_kib, sm_kib, threads, blocks] : kRows) {
    const Target t = target(arch);
    EXPECT_EQ(t.shared_bytes_per_block, block_kib * 1024) << arch;
    EXPECT_EQ(t.shared_bytes_per_sm, sm_kib * 1024) << arch;
    EXPECT_EQ(t.shared_bytes_reserved, (sm_kib - block_kib) * 1024) << arch;
    EXPECT_EQ(t.threads_per_sm, threads) << arch;
    EXPECT_EQ(t.blocks_per_sm, blocks) << arch;
    EXPECT_EQ(t.registers_per_sm, 65536) << arch;
    EXPECT_EQ(t.vector_registers(), 255) << arch;
  }
}

// Data sheets, dense: TFLOP/s of TF32 (V100, T4's generation: float32), of 16 bits, TOP/s of int8.
TEST(CodegenCudaFilter, PeaksAreAboveTheDataSheetsByType) {
  const struct {
    const char *arch, *card;
    double wide, half, byte;
  } kCards[] = {{"sm_70", "V100 SXM2", 15.7, 125, 62.8},    {"sm_75", "T4", 8.1, 65, 130},
                {"sm_80", "A100", 156, 312, 624},           {"sm_86", "RTX 3090", 71, 142, 284},
                {"sm_89", "RTX 4090", 165.2, 330.3, 660.6}, {"sm_90a", "H100 SXM", 494.7, 989.4, 1978.9},
                {"sm_100", "B200", 1100, 2250, 4500},       {"sm_120", "RTX 5090", 209.5, 419, 838}};
  for (const auto& [arch, card, wide, half, byte] : kCards) {
    const Target t = target(arch);
    const std::pair<DType, double> kTypes[] = {
        {DType::kFloat32, wide}, {DType::kBFloat16, half}, {DType::kFloat16, half}, {DType::kInt8, byte}};
    for (const auto& [dtype, tera] : kTypes) {
      const auto limits = t.family->limits(t, dtype);
      ASSERT_TRUE(limits.has_value()) << arch;
      EXPECT_GE(limits->ops_per_ns, 1000 * tera) << card << ", " << dtype;
      EXPECT_LE(limits->ops_per_ns, 4000 * tera) << card << ", " << dtype;
      EXPECT_GE(limits->bytes_per_ns, 4'800) << "an H200's memory";
      EXPECT_GT(limits->call_ns, 0);
      EXPECT_LE(limits->call_ns, 1000) << "an empty kernel";
    }
  }
}

// As ptxas has it: 96 threads for 3 blocks are 9 warps, which count as 12.
TEST(CodegenCudaFilter, RegistersThatLaunchBoundsLeave) {
  GpuKernel k = elementwise(1024).kernels[0];
  const auto limit = [&](int64_t threads, int blocks) {
    k.block = {threads, 1, 1};
    k.min_blocks = blocks;
    return estimate_resources(k, target()).register_limit;
  };
  EXPECT_EQ(limit(96, 3), 168);
  EXPECT_EQ(limit(224, 3), 80);
  EXPECT_EQ(limit(32, 4), 255);
  EXPECT_EQ(limit(256, 2), 128);
  EXPECT_EQ(limit(1024, 0), 64);
}

// Worked examples of the notes: sm_90.
TEST(CodegenCudaFilter, BlocksOfAMultiprocessor) {
  EXPECT_EQ(blocks_per_multiprocessor(target(), 256, 151, 0), 1);  // by registers
  EXPECT_EQ(blocks_per_multiprocessor(target(), 256, 126, 64 << 10), 2);
  EXPECT_EQ(blocks_per_multiprocessor(target(), 256, 32, 240000), 0);
  EXPECT_EQ(blocks_per_multiprocessor(target(), 32, 16, 0), 32);   // by blocks
  EXPECT_EQ(blocks_per_multiprocessor(target(), 1024, 32, 0), 2);  // by threads
  EXPECT_EQ(blocks_per_multiprocessor(target(), 1024, 72, 0), 0);  // registers of one block
  EXPECT_EQ(blocks_per_multiprocessor(target("sm_86"), 1024, 32, 0), 1);
}

#ifdef TUNER_HAVE_CUDA_OCCUPANCY
// The rules of the toolkit's own calculator, for any kernel.
int calculator(const Target& t, int major, int minor, int threads, int registers, int64_t shared) {
  cudaOccDeviceProp device{};
  device.computeMajor = major, device.computeMinor = minor;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = static_cast<int>(t.threads_per_sm);
  device.regsPerBlock = device.regsPerMultiprocessor = static_cast<int>(t.registers_per_sm);
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 << 10;
  device.sharedMemPerMultiprocessor = static_cast<size_t>(t.shared_bytes_per_sm);
  device.numSms = 1;
  device.sharedMemPerBlockOptin = static_cast<size_t>(t.shared_bytes_per_block);
  device.reservedSharedMemPerBlock = static_cast<size_t>(t.shared_bytes_reserved);
  cudaOccFuncAttributes function{};
  function.maxThreadsPerBlock = 1024;
  function.numRegs = registers;
  function.maxDynamicSharedSizeBytes = static_cast<size_t>(t.shared_bytes_per_block);
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  cudaOccDeviceState state{};
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  cudaOccResult result{};
  const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state,
                                                                     threads, static_cast<size_t>(shared));
  EXPECT_EQ(error, CUDA_OCC_SUCCESS);
  return result.activeBlocksPerMultiprocessor;
}

TEST(CodegenCudaFilter, OccupancyIsThatOfTheToolkitsCalculator) {
  const std::tuple<const char*, int, int> kArchitectures[] = {
      {"sm_75", 7, 5}, {"sm_80", 8, 0}, {"sm_86", 8, 6}, {"sm_89", 8, 9}, {"sm_90", 9, 0}};
  for (const auto& [arch, major, minor] : kArchitectures)
    for (int threads = 32; threads <= 1024; threads += 96)
      for (int registers = 16; registers <= 255; registers += 7)
        for (const int64_t shared :
             {0, 1000, 8192, 20000, 48 << 10, 99 << 10, 100000, 163 << 10, 227 << 10}) {
          const Target t = target(arch);
          if (shared > t.shared_bytes_per_block) continue;
          ASSERT_EQ(blocks_per_multiprocessor(t, threads, registers, shared),
                    calculator(t, major, minor, threads, registers, shared))
              << arch << ", " << threads << " threads, " << registers << " registers, " << shared << " bytes";
        }
}
#else
TEST(CodegenCudaFilter, OccupancyIsThatOfTheToolkitsCalculator) {
  GTEST_SKIP() << "no cuda_occupancy.h: no CUDA toolkit was there when the tests were configured";
}
#endif

}  // namespace
}  // namespace tuner::testing
