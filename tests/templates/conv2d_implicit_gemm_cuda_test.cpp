// conv2d_implicit_gemm_cuda: when it applies, what a thread does, and random configs on odd shapes, emulated,
// against the oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen_cuda/cuda.h"
#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

Conv2dWorkload conv2d(int64_t ic, int64_t size, int64_t oc, int64_t kernel) {
  Conv2dWorkload w;
  w.in_channels = ic;
  w.in_height = w.in_width = size;
  w.out_channels = oc;
  w.kernel_height = w.kernel_width = kernel;
  return w;
}

Conv2dWorkload strided() {
  Conv2dWorkload w = conv2d(9, 17, 21, 3);
  w.stride = {2, 1};
  w.padding = {0, 1, 1, 2};
  w.batch = 2;
  w.bias = w.residual = true;
  w.activation = Activation::kRelu;
  return w;
}

Conv2dWorkload dilated() {
  Conv2dWorkload w = conv2d(8, 15, 34, 5);
  w.dilation = {2, 1};
  w.kernel_width = 2;
  w.in_width = 9;
  return w;
}

TEST(Conv2dImplicitGemmCuda, DeclinesWithTheReason) {
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  const AnyTemplate& t = conv2d_implicit_gemm_cuda();
  Conv2dWorkload w = conv2d(8, 8, 4, 3);
  EXPECT_EQ(t.supports(w, cpu).reason, "needs a CUDA target, got " + cpu.name());
  EXPECT_TRUE(t.supports(w, gpu()).yes);
  EXPECT_EQ(t.supports(conv2d(3, 8, 4, 3), gpu()).reason, "needs at least 8 input channels, got 3");
  w.groups = 2;
  EXPECT_EQ(t.supports(w, gpu()).reason, "needs groups = 1, got 2");
  EXPECT_EQ(t.supports(MatmulWorkload{}, gpu()).reason, "serves conv2d, got matmul");
}

// A 1x1 kernel is a product: its columns are data itself, read by vectors, and no index has a division left.
TEST(Conv2dImplicitGemmCuda, OneByOneIsAPlainProduct) {
  const auto instance = conv2d_implicit_gemm_cuda().apply(conv2d(64, 56, 128, 1), gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const auto program = (*instance)->instantiate(space.at(space.default_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const auto text = emit_cuda(*program, gpu());
  ASSERT_TRUE(text.is_ok()) << text.message();
  EXPECT_THAT(*text, ::testing::HasSubstr("(const float4*)&data["));
  EXPECT_THAT(*text, ::testing::HasSubstr("*(float4*)&out["));
  EXPECT_THAT(*text, ::testing::Not(::testing::HasSubstr("? data")));
}

TEST(Conv2dImplicitGemmCuda, SchedulesReplayFromTheirText) {
  Conv2dWorkload w = conv2d(24, 14, 40, 3);
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.constant = {"weight"};
  expect_gpu_schedules_replay(conv2d_implicit_gemm_cuda(), w, gpu(), 8, 1);
}

TEST(Conv2dImplicitGemmCuda, DefaultIsValidForAnyShape) {
  for (const int64_t stride : {1, 2})
    for (const int64_t channels : {8, 64, 2048})
      for (const int64_t out_channels : {1, 5, 64, 2048})
        for (const int64_t size : {1, 2, 7, 56})
          for (const int64_t kernel : {1, 3}) {
            const char* arch = size % 2 == 0 ? "sm_75" : "sm_90a";
            Conv2dWorkload w = conv2d(channels, size, out_channels, kernel);
            w.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
            w.stride = {stride, stride};
            if (!validate(w).is_ok()) continue;
            SCOPED_TRACE(str(Workload(w).key(), " on ", arch));
            const auto instance = conv2d_implicit_gemm_cuda().apply(w, gpu(arch));
            ASSERT_TRUE(instance.is_ok()) << instance.message();
            const ConfigSpace& space = (*instance)->space();
            const auto program = (*instance)->instantiate(space.at(space.default_index()));
            ASSERT_TRUE(program.is_ok()) << program.message();
            const auto lowered = lower_gpu(*program);
            ASSERT_TRUE(lowered.is_ok()) << lowered.message();
          }
}

TEST(Conv2dImplicitGemmCuda, RandomConfigsOnOddShapes) {
  Conv2dWorkload same = conv2d(19, 7, 40, 3);
  same.padding = {1, 1, 1, 1};
  same.bias = true;
  same.activation = Activation::kRelu;
  for (const Conv2dWorkload& w :
       {conv2d(8, 1, 1, 1), conv2d(40, 6, 70, 1), conv2d(16, 8, 33, 1), same, strided(), dilated()}) {
    expect_gpu_configs_right(conv2d_implicit_gemm_cuda(), w, gpu(), 6, 1);
    Conv2dWorkload packed = w;
    packed.constant = {"weight"};
    expect_gpu_configs_right(conv2d_implicit_gemm_cuda(), packed, gpu(), 6, 1);
  }
}

// Channels in parts, and the kernel that adds them up.
TEST(Conv2dImplicitGemmCuda, SmallImagesWithManyChannels) {
  Conv2dWorkload w = conv2d(128, 7, 32, 3);
  w.padding = {1, 1, 1, 1};
  w.batch = 2;
  w.bias = true;
  expect_gpu_configs_right(conv2d_implicit_gemm_cuda(), w, gpu("sm_80"), 4, 4);
}

}  // namespace
}  // namespace tuner
