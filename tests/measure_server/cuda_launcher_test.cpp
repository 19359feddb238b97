// The C launcher of a bundle as an application uses it: compiled as C, linked to a driver of ours
// (fake_cuda), run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "compiler_core/base/input_file.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

constexpr int64_t kRows = 32, kColumns = 40;

// out = 2 * x by one kernel through a workspace, then a copy; `maps`: both read tensor maps.
Manifest manifest(bool maps) {
  Manifest m;
  m.kind = binary_kind::kCubin;
  m.entry = "twice";
  m.target = "cuda -arch=sm_90a";
  const int64_t bytes = kRows * kColumns * 4;
  m.args = {{.name = "x", .role = BufferRole::kInput, .shape = {kRows, kColumns}, .bytes = bytes},
            {.name = "out", .role = BufferRole::kOutput, .shape = {kRows, kColumns}, .bytes = bytes}};
  m.workspaces = {100, bytes};
  m.launches = {{.kernel = "first", .block = {32, 1, 1}, .params = {0, 3}},
                {.kernel = "second", .block = {32, 1, 1}, .params = {3, 1}}};
  if (!maps) return m;
  m.abi_version = 3;
  const TensorMap map{.dtype = DType::kFloat32,
                      .extents = {kColumns, kRows},
                      .strides = {kColumns * 4},
                      .box = {8, 16},
                      .swizzle_bytes = 32};
  m.launches[0].params = {3};
  m.launches[0].tensor_maps = {{.operand = 0, .map = map}};
  m.launches[1].params = {1};
  m.launches[1].tensor_maps = {{.operand = 3, .map = map}};
  return m;
}

// Binds two sets of operands and launches each twice, in turn. Prints the sums of what comes out, or the call
// that failed.
const char* const kApplication = R"(#include <stdio.h>
#include <stdlib.h>
#include "twice.h"
#define DO(call) do { CUresult r = call; if (r != CUDA_SUCCESS) { printf("%s: %d\n", #call, (int)r); return 1; } } while (0)
int main(int argc, char** argv) {
  static char image[4096];
  static float x[2][1280], out[1280];
  CUcontext context;
  CUdeviceptr in[2], to[2], room;
  twice_kernel kernel;
  twice_operands* operands = (twice_operands*)malloc(2 * sizeof(twice_operands) + 8);
  FILE* f = fopen(argv[argc - 1], "rb");
  if (f == NULL || fread(image, 1, sizeof image - 1, f) == 0) return 2;
  fclose(f);
  /* Anywhere in memory: what the driver asks for is bind's business. */
  operands = (twice_operands*)((char*)operands + 8);
  DO(cuInit(0));
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  DO(twice_load(&kernel, image));
  DO(cuMemAlloc(&room, TWICE_WORKSPACE_BYTES));
  for (int set = 0; set < 2; ++set) {
    for (int i = 0; i < 1280; ++i) x[set][i] = (float)(i * (set + 1));
    DO(cuMemAlloc(&in[set], TWICE_X_BYTES));
    DO(cuMemAlloc(&to[set], TWICE_OUT_BYTES));
    DO(cuMemcpyHtoD(in[set], x[set], TWICE_X_BYTES));
    DO(twice_bind(&operands[set], in[set], to[set], room));
  }
  for (int turn = 0; turn < 4; ++turn) {
    double sum = 0;
    DO(twice_launch(&kernel, &operands[turn % 2], NULL));
    DO(cuMemcpyDtoH(out, to[turn % 2], TWICE_OUT_BYTES));
    for (int i = 0; i < 1280; ++i) sum += out[i];
    printf("%.0f\n", sum);
  }
  DO(twice_unload(&kernel));
  return 0;
}
)";

// What the application printed with these kernels.
std::string printed(const Manifest& m, const std::string& module) {
  const TemporaryFolder folder;
  const CudaLauncher launcher = cuda_launcher(m, "twice", "a test");
  std::ofstream(folder.file("twice.h")) << launcher.header;
  std::ofstream(folder.file("twice.c")) << launcher.source;
  std::ofstream(folder.file("main.c")) << kApplication;
  std::ofstream(folder.file("module")) << module;
  const std::string in = folder.path().string() + "/";
  const std::string build =
      str(TUNER_CC " -std=c99 -Wall -Wextra -Werror -isystem " TUNER_CUDA_HEADERS " ", in, "main.c ", in,
          "twice.c " TUNER_FAKE_CUDA " -Wl,-rpath,$(dirname " TUNER_FAKE_CUDA ") -o ", in, "application");
  EXPECT_EQ(std::system(build.c_str()), 0);
  (void)!std::system(str(in, "application ", in, "module > ", in, "printed 2>&1").c_str());
  const Result<std::string> text = read_whole(in + "printed");
  return text ? *text : text.message();
}

class CudaLauncherRun : public ::testing::Test {
  void SetUp() override {
    if (std::string(TUNER_CUDA_HEADERS).empty()) GTEST_SKIP() << "no cuda.h here";
    if (access(TUNER_CC, X_OK) != 0) GTEST_SKIP() << "no C compiler at " TUNER_CC;
  }
};

// 2 * (0 + 1 + ... + 1279), and twice as much of the second set.
constexpr const char* kSums = "1637120\n3274240\n1637120\n3274240\n";

TEST_F(CudaLauncherRun, BindsOnceAndLaunchesOften) {
  EXPECT_EQ(printed(manifest(false), "FAKECUBIN\nkernel first doubling n=1280\nkernel second copy n=1280\n"),
            kSums);
}

TEST_F(CudaLauncherRun, PassesTensorMapsOfArgumentsAndOfTheWorkspace) {
  const std::string module =
      "FAKECUBIN\nkernel first doubling n=1280 maps=1\nkernel second copy n=1280 maps=1\n";
  EXPECT_EQ(printed(manifest(true), module), kSums);
  // Half of the rows are out of the map: NaN of the driver for tests.
  Manifest half = manifest(true);
  half.launches[0].tensor_maps[0].map.extents[1] /= 2;
  EXPECT_THAT(printed(half, module), ::testing::HasSubstr("nan"));
}

TEST_F(CudaLauncherRun, AnswersWithTheDriversErrorOfAMapThatItRefuses) {
  Manifest wrong = manifest(true);
  wrong.launches[1].tensor_maps[0].map.strides = {kColumns * 4 + 4};
  EXPECT_EQ(
      printed(wrong, "FAKECUBIN\nkernel first doubling n=1280 maps=1\nkernel second copy n=1280 maps=1\n"),
      "twice_bind(&operands[set], in[set], to[set], room): 1\n");
}

}  // namespace
}  // namespace tuner
