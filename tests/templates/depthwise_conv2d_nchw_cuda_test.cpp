// depthwise_conv2d_nchw_cuda: when it applies, and random configs on odd shapes, emulated, against the
// oracle.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

Conv2dWorkload depthwise(int64_t channels, int64_t size, int64_t kernel, int64_t multiplier = 1) {
  Conv2dWorkload w;
  w.in_channels = w.groups = channels;
  w.out_channels = channels * multiplier;
  w.in_height = w.in_width = size;
  w.kernel_height = w.kernel_width = kernel;
  return w;
}

TEST(DepthwiseConv2dNchwCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = depthwise_conv2d_nchw_cuda();
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(t.supports(depthwise(4, 8, 3), cpu).reason, "needs a CUDA target, got " + cpu.name());
  Conv2dWorkload w = depthwise(4, 8, 3);
  EXPECT_TRUE(t.supports(w, gpu()).yes);
  w.groups = 2;
  EXPECT_EQ(t.supports(w, gpu()).reason, "needs groups = in_channels (4), got 2");
  EXPECT_EQ(t.supports(depthwise(1, 8, 3), gpu()).reason,
            "needs more than one channel; one is an ordinary convolution");
  EXPECT_EQ(t.supports(depthwise(4, 80, 40), gpu()).reason,
            "needs a kernel that reaches over at most 1024 pixels, got 40 x 40");
}

TEST(DepthwiseConv2dNchwCuda, LoopsOfOneConfig) {
  Conv2dWorkload w = depthwise(6, 14, 3);
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.activation = Activation::kRelu;
  EXPECT_EQ(kernels_of(depthwise_conv2d_nchw_cuda(), w,
                       "channels=2 inner_x=2 inner_y=2 min_blocks=1 rows_first=1 shared=1 threads_x=8 "
                       "threads_y=8 unroll_kh=0"),
            R"(
kernel depthwise_conv2d(data, weight, bias, out) grid (3, 1, 1) block (128, 1, 1)
  shared padded float32[1, 2, 18, 18] at 0
  allocate acc float32[1, 1, 2, 2] register
  block
    allocate data.ahead float32[6] register
    unrolled round in 0..6
      data.ahead[round] = select(round*128 + tx < 648 && (round*128 + tx)//18%18 < 15 && (round*2 + tx)%18 < 15 && (round*128 + tx)//18%18 >= 1 && (round*2 + tx)%18 >= 1, data[0, bx*2 + (round*128 + tx)//324, (round*128 + tx)//18%18 - 1, (round*2 + tx)%18 - 1], 0)
    unrolled round in 0..6
      if round*128 + tx < 648
        padded[0, (round*128 + tx)//324, (round*128 + tx)//18%18, (round*2 + tx)%18] = data.ahead[round]
  unrolled oh.init in 0..2
    unrolled ow.init in 0..2
      acc[0, 0, oh.init, ow.init] = 0
  barrier shared
  reduce kh in 0..3
    allocate padded.register float32[1, 1, 2, 4] register
    unrolled i2 in 0..2
      unrolled i3 in 0..4
        padded.register[0, 0, i2, i3] = padded[0, tx//64, tx//8%8*2 + kh + i2, tx%8*2 + i3]
    unrolled reduce kw in 0..3
      unrolled oh in 0..2
        unrolled ow in 0..2
          acc[0, 0, oh, ow] = acc[0, 0, oh, ow] + padded.register[0, 0, oh, ow + kw] * weight[bx*2 + tx//64, 0, kh, kw]
  if tx//8%8 < 7 && tx%8 < 7
    unrolled y in 0..2
      vectorized lane in 0..2
        out[0, bx*2 + tx//64, tx//8%8*2 + y, tx%8*2 + lane] = max(acc[0, 0, y, lane] + bias[bx*2 + tx//64], 0)
)");
}

TEST(DepthwiseConv2dNchwCuda, SchedulesReplayFromTheirText) {
  Conv2dWorkload w = depthwise(24, 14, 3);
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  expect_gpu_schedules_replay(depthwise_conv2d_nchw_cuda(), w, gpu(), 8, 1);
}

TEST(DepthwiseConv2dNchwCuda, DefaultIsValidForAnyShape) {
  for (const char* arch : {"sm_75", "sm_90a"})
    for (const int64_t channels : {2, 3, 64, 2048})
      for (const int64_t size : {1, 2, 5, 7, 56, 230})
        for (const int64_t kernel : {1, 3, 7, 31})
          for (const int64_t stride : {1, 2}) {
            Conv2dWorkload w = depthwise(channels, size, kernel);
            w.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
            w.stride = {stride, stride};
            SCOPED_TRACE(str(Workload(w).key(), " on ", arch));
            ASSERT_TRUE(validate(w).is_ok());
            const auto instance = depthwise_conv2d_nchw_cuda().apply(w, gpu(arch));
            ASSERT_TRUE(instance.is_ok()) << instance.message();
            const ConfigSpace& space = (*instance)->space();
            const auto program = (*instance)->instantiate(space.at(space.default_index()));
            ASSERT_TRUE(program.is_ok()) << program.message();
            const auto lowered = lower_gpu(*program);
            ASSERT_TRUE(lowered.is_ok()) << lowered.message();
          }
}

TEST(DepthwiseConv2dNchwCuda, LargeSpaceForALargeShape) {
  const auto instance = depthwise_conv2d_nchw_cuda().apply(depthwise(96, 112, 3), gpu("sm_80"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

TEST(DepthwiseConv2dNchwCuda, RandomConfigsOnOddShapes) {
  Conv2dWorkload same = depthwise(19, 17, 3);
  same.padding = {1, 1, 1, 1};
  same.bias = same.residual = true;
  same.activation = Activation::kRelu;
  Conv2dWorkload strided = depthwise(5, 23, 5);
  strided.stride = {2, 3};
  strided.padding = {0, 1, 2, 2};
  strided.batch = 2;
  Conv2dWorkload dilated = depthwise(3, 15, 3, /*multiplier=*/3);
  dilated.dilation = {2, 1};
  dilated.kernel_width = 2;
  for (const Conv2dWorkload& w :
       {depthwise(2, 1, 1), depthwise(70, 4, 3), same, strided, dilated, depthwise(33, 40, 3)})
    expect_gpu_configs_right(depthwise_conv2d_nchw_cuda(), w, gpu(), 6, 1);
}

}  // namespace
}  // namespace tuner
