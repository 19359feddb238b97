// depthwise_conv2d_nhwc_cuda: when it applies, and random configs on odd shapes, emulated, against the
// oracle.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

Conv2dWorkload depthwise(int64_t channels, int64_t size, int64_t kernel, int64_t multiplier = 1,
                         DType dtype = DType::kFloat32) {
  Conv2dWorkload w;
  w.in_channels = w.groups = channels;
  w.out_channels = channels * multiplier;
  w.in_height = w.in_width = size;
  w.kernel_height = w.kernel_width = kernel;
  w.layout = w.out_layout = "NHWC";
  w.dtype = dtype;
  return w;
}

TEST(DepthwiseConv2dNhwcCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = depthwise_conv2d_nhwc_cuda();
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(t.supports(depthwise(4, 8, 3), cpu).reason, "needs a CUDA target, got " + cpu.name());
  Conv2dWorkload w = depthwise(4, 8, 3);
  EXPECT_TRUE(t.supports(w, gpu()).yes);
  w.groups = 2;
  EXPECT_EQ(t.supports(w, gpu()).reason, "needs groups = in_channels (4), got 2");
  EXPECT_EQ(t.supports(depthwise(1, 8, 3), gpu()).reason,
            "needs more than one channel; one is an ordinary convolution");
  w = depthwise(4, 8, 3);
  w.layout = "NCHW";
  EXPECT_EQ(t.supports(w, gpu()).reason, "needs layout NHWC, got NCHW");
  w = depthwise(4, 80, 40);
  w.dilation = {1, 2};
  EXPECT_EQ(t.supports(w, gpu()).reason, "needs a kernel that reaches over at most 64 columns, got 79");
}

TEST(DepthwiseConv2dNhwcCuda, LoopsOfOneConfig) {
  Conv2dWorkload w = depthwise(24, 14, 3);
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.activation = Activation::kRelu;
  w.constant = {"weight"};
  EXPECT_EQ(
      kernels_of(depthwise_conv2d_nhwc_cuda(), w,
                 "channels_first=1 inner_x=2 inner_y=1 min_blocks=1 threads_c=8 threads_x=8 threads_y=2 "
                 "unroll_kh=0 vector=4"),
      R"(
kernel depthwise_conv2d(data, filter, bias, out) grid (7, 1, 1) block (128, 1, 1)
  allocate acc float32[1, 1, 2, 4] register
  if tx%8 < 6
    unrolled ow.init in 0..2
      unrolled oc.init in 0..4
        acc[0, 0, ow.init, oc.init] = 0
    reduce kh in 0..3
      allocate padded.register float32[1, 1, 4, 4] register
      unrolled i2 in 0..4
        vectorized lane in 0..4
          padded.register[0, 0, i2, lane] = select(bx*2 + tx//64 + kh < 15 && tx//8%8*2 + i2 < 15 && bx*2 + tx//64 + kh >= 1 && tx//8%8*2 + i2 >= 1, data[0, bx*2 + tx//64 + kh - 1, tx//8%8*2 + i2 - 1, tx%8*4 + lane], 0)
      unrolled reduce kw in 0..3
        allocate filter.register float32[1, 1, 4] register
        vectorized lane in 0..4
          filter.register[0, 0, lane] = filter[kh, kw, tx%8*4 + lane]
        unrolled ow in 0..2
          unrolled oc in 0..4
            acc[0, 0, ow, oc] = acc[0, 0, ow, oc] + padded.register[0, 0, ow + kw, oc] * filter.register[0, 0, oc]
  allocate bias.ahead float32[4] register
  vectorized lane in 0..4
    bias.ahead[lane] = select(tx//8%8 < 7 && tx%8 < 6, bias[tx%8*4 + lane], 0)
  if tx//8%8 < 7 && tx%8 < 6
    unrolled x in 0..2
      vectorized lane in 0..4
        out[0, bx*2 + tx//64, tx//8%8*2 + x, tx%8*4 + lane] = max(acc[0, 0, x, lane] + bias.ahead[lane], 0)
once before:
kernel depthwise_conv2d_pack(weight, filter) grid (1, 1, 1) block (216, 1, 1)
  filter[tx//72, tx//24%3, tx%24] = weight[tx%24, 0, tx//72, tx//24%3]
)");
}

TEST(DepthwiseConv2dNhwcCuda, SchedulesReplayFromTheirText) {
  Conv2dWorkload w = depthwise(24, 14, 3);
  w.padding = {1, 1, 1, 1};
  w.bias = true;
  w.constant = {"weight"};
  expect_gpu_schedules_replay(depthwise_conv2d_nhwc_cuda(), w, gpu(), 8, 1);
}

TEST(DepthwiseConv2dNhwcCuda, DefaultIsValidForAnyShape) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt8})
    for (const int64_t channels : {2, 3, 64, 2048})
      for (const int64_t size : {1, 2, 5, 7, 56, 230})
        for (const int64_t kernel : {1, 3, 7, 31})
          for (const int64_t stride : {1, 2}) {
            Conv2dWorkload w = depthwise(channels, size, kernel, 1, dtype);
            w.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
            w.stride = {stride, stride};
            SCOPED_TRACE(Workload(w).key());
            ASSERT_TRUE(validate(w).is_ok());
            const auto instance = depthwise_conv2d_nhwc_cuda().apply(w, gpu("sm_75"));
            ASSERT_TRUE(instance.is_ok()) << instance.message();
            const ConfigSpace& space = (*instance)->space();
            const auto program = (*instance)->instantiate(space.at(space.default_index()));
            ASSERT_TRUE(program.is_ok()) << program.message();
            const auto lowered = lower_gpu(*program);
            ASSERT_TRUE(lowered.is_ok()) << lowered.message();
          }
}

TEST(DepthwiseConv2dNhwcCuda, LargeSpaceForALargeShape) {
  const auto instance = depthwise_conv2d_nhwc_cuda().apply(depthwise(96, 112, 3), gpu("sm_80"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

TEST(DepthwiseConv2dNhwcCuda, RandomConfigsOnOddShapes) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8}) {
    Conv2dWorkload same = depthwise(20, 17, 3, 1, dtype);
    same.padding = {1, 1, 1, 1};
    same.bias = same.residual = true;
    same.activation = Activation::kRelu;
    same.constant = {"weight"};
    if (dtype != DType::kFloat32) same.narrow_out = dtype == DType::kInt8 ? DType::kUInt8 : dtype;
    Conv2dWorkload strided = depthwise(5, 23, 5, 1, dtype);
    strided.stride = {2, 3};
    strided.padding = {0, 1, 2, 2};
    strided.batch = 2;
    Conv2dWorkload dilated = depthwise(3, 15, 3, /*multiplier=*/3, dtype);
    dilated.dilation = {2, 1};
    dilated.kernel_width = 2;
    dilated.constant = {"weight"};
    for (const Conv2dWorkload& w : {depthwise(2, 1, 1, 1, dtype), depthwise(70, 4, 3, 1, dtype), same,
                                    strided, dilated, depthwise(48, 21, 3, 1, dtype)})
      expect_gpu_configs_right(depthwise_conv2d_nhwc_cuda(), w, gpu("sm_80"), 4, 1);
  }
}

}  // namespace
}  // namespace tuner
