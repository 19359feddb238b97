// Printed kernels in compiler_core/host_cuda, which looks at each access: nothing is found in them, and each
// barrier fewer is a race that it finds in their text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/expr_text.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/host_cuda/host_cuda.h"
#include "compiler_core/host_cuda/printed_ptx.h"
#include "compiler_core/lower/gpu.h"
#include "templates/registry/registry.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kEdge = 64, kDepth = 256;

// A product of bfloat16 by mma.sync, its operands copied by cp.async. Of whole tiles: stores that do not
// count (GpuKernel::shared_nowhere) would be told as races. Of steps enough to use each stage again.
GpuProgram product() {
  const Target gpu = *parse_target("cuda -arch=sm_80");
  const Workload w = MatmulWorkload{.m = kEdge, .n = kEdge, .k = kDepth, .dtype = DType::kBFloat16};
  const auto instance = find_template("matmul_mma_cuda")->apply(w, gpu);
  const ConfigSpace& space = (*instance)->space();
  return *lower_gpu(*(*instance)->instantiate(space.at(space.default_index())));
}

HostCudaKernel watched(const GpuProgram& program, const std::string& text) {
  const GpuKernel& k = program.kernels.at(0);
  HostCudaKernel made{.files = {{"printed.cu", text}},
                      .source = "printed.cu",
                      .function = k.name,
                      .grid = k.grid,
                      .block = k.block,
                      .shared_bytes = k.shared_bytes};
  for (const Buffer& b : k.params)
    made.arguments.push_back({b->name, std::string(cuda::c_type(b->dtype)) + "*", b->elements(),
                              dtype_bytes(b->dtype), b->role, ""});
  return made;
}

TEST(WatchedCuda, APrintedProductIsRightAndNeedsEachOfItsBarriers) {
  if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
  if (const Result<Compiler> compiler = find_compiler("c++"); !compiler) GTEST_SKIP() << compiler.message();
  const GpuProgram program = product();
  ASSERT_EQ(program.kernels.size(), 1u);
  const std::string text = with_host_calls(print_cuda(program, *parse_target("cuda -arch=sm_80")));
  EXPECT_THAT(text, HasSubstr("host_cuda::copy_async("));
  EXPECT_THAT(text, HasSubstr("host_cuda::multiply_tiles("));
  // Row i of a has i % 8, column j of b j % 4: sums are exact.
  std::vector<float> a(kEdge * kDepth), b(kDepth * kEdge);
  for (int64_t i = 0; i < kEdge * kDepth; ++i) {
    a[static_cast<size_t>(i)] = static_cast<float>(i / kDepth % 8);
    b[static_cast<size_t>(i)] = static_cast<float>(i % 4);
  }
  const std::vector<std::string> given{element_bytes(a, DType::kBFloat16),
                                       element_bytes(b, DType::kBFloat16)};
  const Result<HostCudaRun> right = run_host_cuda(watched(program, text), given);
  ASSERT_TRUE(right.is_ok()) << right.message();
  EXPECT_EQ(right->fault(), "");
  ASSERT_EQ(right->outputs.size(), 1u);
  const std::vector<double> out = load_elements(right->outputs[0].data(), kEdge * kEdge, DType::kFloat32);
  for (int64_t i = 0; i < kEdge * kEdge; ++i)
    ASSERT_EQ(out[static_cast<size_t>(i)], static_cast<double>(kDepth * (i / kEdge % 8) * (i % 4))) << i;

  const std::string barrier = "__syncthreads();", idle = "  // keeps the threads together";
  int barriers = 0;
  for (size_t at = text.find(barrier); at != std::string::npos; at = text.find(barrier, at + 1)) {
    if (text.compare(at + barrier.size(), idle.size(), idle) == 0) continue;  // of use for speed alone
    ++barriers;
    std::string damaged = text;
    damaged.replace(at, barrier.size(), std::string(barrier.size(), ' '));
    const Result<HostCudaRun> run = run_host_cuda(watched(program, damaged), given);
    ASSERT_TRUE(run.is_ok()) << run.message();
    EXPECT_THAT(run->fault(), HasSubstr("a race on the dynamic array (shared memory)"))
        << text.substr(at, 100);
  }
  EXPECT_GE(barriers, 2);
}

}  // namespace
}  // namespace tuner
