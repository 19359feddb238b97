// Kernels compile to cubins, without a GPU: resources, stage B, the cache, the C launcher. Needs NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/nvrtc.h"
#include "tests/compiler_core/gpu_kernels.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"

namespace tuner::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Target target(const std::string& arch = "sm_90a") { return *parse_target("cuda -arch=" + arch); }

#define NEEDS_NVRTC() \
  if (const Status there = nvrtc_available(); !there.is_ok()) GTEST_SKIP() << there.message()

TEST(CodegenCudaCompile, KernelsCompileWithoutSpills) {
  NEEDS_NVRTC();
  const std::vector<GpuProgram> programs = {elementwise(1000), elementwise(1002), row_sum(64, 1024),
                                            tiled_matmul({.tile = 8, .double_buffer = true}),
                                            tiled_matmul({.tile = 8, .b_layout = "xor:4,8"})};
  for (const char* arch : {"sm_80", "sm_90a"})
    for (const GpuProgram& p : programs) {
      const auto artifact = cuda::compile_kernels(p, target(arch), {});
      ASSERT_TRUE(artifact.is_ok()) << arch << ": " << artifact.message();
      const LaunchInfo& launch = artifact->manifest.launches.at(0);
      EXPECT_EQ(launch.spill_bytes, 0) << arch << ": " << p.name;
      EXPECT_GT(launch.registers, 8);
      EXPECT_GE(launch.blocks_per_sm, 1);
      EXPECT_EQ(launch.params.size(), p.args.size());
      EXPECT_EQ(artifact->manifest.digest, artifact_digest(*artifact));
    }
}

TEST(CodegenCudaCompile, ManifestReadsBack) {
  NEEDS_NVRTC();
  const auto artifact = cuda::compile_kernels(tiled_matmul({.tile = 8}), target(), {});
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const auto manifest = parse_manifest(artifact->manifest.to_json());
  ASSERT_TRUE(manifest.is_ok()) << manifest.message();
  EXPECT_EQ(manifest->kind, binary_kind::kCubin);
  EXPECT_EQ(manifest->launches[0].registers, artifact->manifest.launches[0].registers);
  EXPECT_EQ(manifest->launches[0].shared_bytes, 16384);
  EXPECT_THAT(manifest->toolchain, HasSubstr("cuda codegen"));
}

TEST(CodegenCudaCompile, CubinAndLogAgree) {
  NEEDS_NVRTC();
  const auto artifact = cuda::compile_kernels(tiled_matmul({.tile = 8}), target(), {});
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const auto kernels = read_cubin(artifact->binary);
  ASSERT_TRUE(kernels.is_ok()) << kernels.message();
  ASSERT_EQ(kernels->size(), 1u);
  EXPECT_EQ(kernels->front().name, "matmul");
  EXPECT_EQ(kernels->front().barriers, 1);
  EXPECT_EQ(kernels->front().max_threads, 256);
  EXPECT_EQ(kernels->front().stack_bytes, 0);
}

TEST(CodegenCudaCompile, DamagedCubinsNeverCrash) {
  NEEDS_NVRTC();
  const auto artifact = cuda::compile_kernels(row_sum(8, 64), target(), {});
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const RandomSeed seed(5);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = artifact->binary.substr(
        0, round % 2 == 0 ? artifact->binary.size() : rng() % artifact->binary.size());
    for (int flips = 0; flips < 8 && !bytes.empty(); ++flips) {
      char& damaged = bytes[rng() % bytes.size()];
      damaged = static_cast<char>(damaged ^ (1 << (rng() % 8)));
    }
    (void)read_cubin(bytes);
  }
}

TEST(CodegenCudaCompile, StageBRefusesASpillingKernel) {
  NEEDS_NVRTC();
  CudaOptions options;
  options.static_filter = false;  // stage A would see it coming
  GpuProgram tight = tiled_matmul({.m = 192, .n = 192, .tile = 12});
  tight.kernels[0].min_blocks = 2;  // leaves 128 registers, for 144 sums
  EXPECT_THAT(cuda::compile_kernels(tight, target(), {}).message(), HasSubstr("stage A: matmul"));
  const auto artifact = cuda::compile_kernels(tight, target(), options);
  ASSERT_FALSE(artifact.is_ok());
  EXPECT_EQ(artifact.status().code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(artifact.message(), HasSubstr("stage B: matmul: spills"));
}

TEST(CodegenCudaCompile, CacheServesTheSecondCompileAndRebuildsDamage) {
  NEEDS_NVRTC();
  const TemporaryFolder folder;
  CudaOptions options;
  options.cache_directory = folder.file("made/when/missing");
  const GpuProgram p = row_sum(8, 64);
  const auto first = cuda::compile_kernels(p, target(), options);
  ASSERT_TRUE(first.is_ok()) << first.message();
  const std::string file = fs::directory_iterator(options.cache_directory)->path().string();
  const auto written = fs::last_write_time(file);
  const auto second = cuda::compile_kernels(p, target(), options);
  ASSERT_TRUE(second.is_ok()) << second.message();
  EXPECT_EQ(second->binary, first->binary);
  EXPECT_EQ(fs::last_write_time(file), written);

  std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(500);
  damaged.put('X');
  damaged.close();
  const auto third = cuda::compile_kernels(p, target(), options);
  ASSERT_TRUE(third.is_ok()) << third.message();
  EXPECT_EQ(third->binary, first->binary);
  const auto fourth = cuda::compile_kernels(p, target(), options);
  ASSERT_TRUE(fourth.is_ok()) << fourth.message();
  // Another architecture is another entry.
  ASSERT_TRUE(cuda::compile_kernels(p, target("sm_80"), options).is_ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(options.cache_directory), fs::directory_iterator()), 2);
}

// Needs no NVRTC: the manifest is made up.
Manifest made_up_manifest() {
  Manifest m;
  m.kind = binary_kind::kCubin;
  m.entry = "dense";
  m.target = "cuda -arch=sm_90a";
  m.args = {{.name = "data", .role = BufferRole::kInput, .shape = {4, 8}, .bytes = 128},
            {.name = "kernel", .role = BufferRole::kInput, .shape = {8, 8}, .bytes = 256},
            {.name = "out", .role = BufferRole::kOutput, .shape = {4, 8}, .bytes = 128}};
  m.workspaces = {100, 300};
  m.launches.push_back({.kernel = "dense_partial",
                        .grid = {2, 1, 1},
                        .block = {64, 1, 1},
                        .shared_bytes = 100 << 10,
                        .params = {0, 1, 3, 4}});
  m.launches.push_back({.kernel = "dense_out", .block = {64, 1, 1}, .params = {3, 2}});
  return m;
}

// The same with its weights packed ahead.
Manifest packing_manifest() {
  Manifest m = made_up_manifest();
  m.abi_version = 2;
  m.args[1] = {.name = "kernel.packed", .role = BufferRole::kPacked, .shape = {2, 8, 4}, .bytes = 256};
  m.pack_entry = "dense_pack";
  m.pack_args = {{.name = "kernel", .role = BufferRole::kConstant, .shape = {8, 8}, .bytes = 256}, m.args[1]};
  m.pack_launches = {{.kernel = "dense_pack", .block = {64, 1, 1}, .params = {0, 1}}};
  return m;
}

TEST(CodegenCudaLauncher, TypedFunctionsSizesAndOrder) {
  const CudaLauncher launcher = cuda_launcher(made_up_manifest(), "dense", "dense layer");
  EXPECT_THAT(launcher.header, HasSubstr("#define DENSE_OUT_BYTES 128\n"));
  EXPECT_THAT(launcher.header, HasSubstr("#define DENSE_WORKSPACE_BYTES 768\n"));
  EXPECT_THAT(
      launcher.header,
      HasSubstr("CUresult dense_bind(dense_operands* operands, CUdeviceptr data, CUdeviceptr kernel_1, "
                "CUdeviceptr out, CUdeviceptr workspace);"));
  EXPECT_THAT(launcher.header, HasSubstr("CUresult dense_launch(const dense_kernel* kernel, const "
                                         "dense_operands* operands, CUstream stream);"));
  EXPECT_THAT(launcher.source,
              HasSubstr("operands->pointers[2] = out;\n  operands->pointers[3] = workspace + "
                        "0;\n  operands->pointers[4] = workspace + 256;\n"));
  EXPECT_THAT(launcher.header, Not(HasSubstr("maps")));
  EXPECT_THAT(launcher.source, HasSubstr("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 102400"));
  EXPECT_LT(launcher.source.find("dense_partial"), launcher.source.find("dense_out"));
  EXPECT_THAT(launcher.header, Not(HasSubstr("_pack(")));
}

TEST(CodegenCudaLauncher, ConstantsArePackedByAFunctionOfTheirOwn) {
  const CudaLauncher launcher = cuda_launcher(packing_manifest(), "dense", "dense layer");
  EXPECT_THAT(launcher.header,
              HasSubstr("CUresult dense_pack(const dense_kernel* kernel, CUdeviceptr kernel_1, "
                        "CUdeviceptr kernel_packed, CUstream stream);"));
  EXPECT_THAT(launcher.header, HasSubstr("CUfunction functions[3];"));
  EXPECT_THAT(launcher.source, HasSubstr("CUdeviceptr pointers[] = {kernel_1, kernel_packed};"));
  EXPECT_THAT(launcher.source, HasSubstr("cuLaunchKernel(kernel->functions[2], "));
}

// The same whose first kernel fetches two of its operands, one of them a workspace.
Manifest mapped_manifest() {
  Manifest m = made_up_manifest();
  m.abi_version = 3;
  TensorMap tiled{.dtype = DType::kFloat32,
                  .extents = {8, 8},
                  .strides = {32},
                  .box = {8, 4},
                  .swizzle_bytes = 32,
                  .l2_bytes = 256};
  TensorMap pixels{
      .kind = TensorMap::Kind::kIm2col, .dtype = DType::kFloat32, .extents = {4, 3, 1}, .strides = {16, 48}};
  pixels.lower = {-1}, pixels.upper = {1}, pixels.channels = 4, pixels.pixels = 3, pixels.fills_nan = true;
  m.launches[0].params = {0, 3};
  m.launches[0].tensor_maps = {{.operand = 1, .map = tiled}, {.operand = 4, .map = pixels}};
  m.launches[1].tensor_maps = {{.operand = 1, .map = tiled}};
  return m;
}

TEST(CodegenCudaLauncher, TensorMapsAreEncodedOnceForASetOfOperands) {
  const CudaLauncher launcher = cuda_launcher(mapped_manifest(), "dense", "dense layer");
  EXPECT_THAT(launcher.header, HasSubstr("cuuint64_t maps[3][CU_TENSOR_MAP_NUM_QWORDS];"));
  EXPECT_THAT(launcher.source, HasSubstr("cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, "
                                         "(void*)(size_t)operands->pointers[1], extents, strides,"));
  EXPECT_THAT(launcher.source, HasSubstr("cuTensorMapEncodeIm2col(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, "
                                         "(void*)(size_t)operands->pointers[4], extents, strides,\n"
                                         "        lower, upper, 4, 3, steps"));
  EXPECT_THAT(launcher.source, HasSubstr("CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"));
  EXPECT_THAT(launcher.source, HasSubstr("{(void*)&operands->pointers[0], (void*)&operands->pointers[3], "
                                         "(void*)operands->maps[0], (void*)operands->maps[1]}"));
  EXPECT_LT(launcher.source.find("dense_bind(dense_operands"),
            launcher.source.find("cuTensorMapEncodeTiled"));
  EXPECT_LT(launcher.source.rfind("cuTensorMapEncode"), launcher.source.find("dense_launch(const"));
}

TEST(CodegenCudaLauncher, CompilesAsC) {
  if (std::string(TUNER_CUDA_HEADERS).empty())
    GTEST_SKIP() << "no cuda.h: no CUDA toolkit was there when the tests were configured";
  if (access(TUNER_CC, X_OK) != 0) GTEST_SKIP() << "no C compiler at " TUNER_CC;
  const TemporaryFolder folder;
  for (const Manifest& manifest : {made_up_manifest(), packing_manifest(), mapped_manifest()}) {
    const CudaLauncher launcher = cuda_launcher(manifest, "dense", "dense layer */ with a trap");
    std::ofstream(folder.file("dense.h")) << launcher.header;
    std::ofstream(folder.file("dense.c")) << launcher.source;
    const std::string command =
        str(TUNER_CC " -std=c99 -Wall -Wextra -Werror -isystem " TUNER_CUDA_HEADERS " -c ", folder.path(),
            "/dense.c -o ", folder.path(), "/dense.o");
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
}

TEST(CodegenCudaNvrtc, AbsenceIsAnErrorThatSaysWhereItLooked) {
  // A process of its own: NVRTC is looked for once.
  const Status there = nvrtc_available();
  if (there.is_ok()) {
    EXPECT_THAT(cuda_toolchain_fingerprint(), HasSubstr("nvrtc "));
    return;
  }
  EXPECT_EQ(there.code(), StatusCode::kUnavailable);
  EXPECT_THAT(there.message(), HasSubstr("libnvrtc.so"));
  EXPECT_EQ(cuda_toolchain_fingerprint(), "no nvrtc");
  EXPECT_EQ(cuda::compile_kernels(elementwise(64), target(), {}).status().code(), StatusCode::kUnavailable);
}

// That is this NVRTC's trouble, not the candidate's: another one may know it.
TEST(CodegenCudaCompile, AnArchitectureThatNvrtcDoesNotKnowIsNoFaultOfTheKernel) {
  if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  const auto compiled =
      cuda::compile_source("extern \"C\" __global__ void k() {}", "k.cu", {"--gpu-architecture=sm_999"});
  EXPECT_EQ(compiled.status().code(), StatusCode::kUnavailable) << compiled.message();
}

}  // namespace
}  // namespace tuner::testing
