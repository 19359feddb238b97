// depthwise_conv2d_cpu: when it applies, its loops, and random configs on odd shapes against the oracle.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

Conv2dWorkload depthwise(int64_t channels, int64_t height, int64_t width, int64_t kernel, int64_t stride,
                         int64_t padding, int64_t dilation = 1, const char* layout = "NCHW") {
  Conv2dWorkload w;
  w.in_channels = w.out_channels = w.groups = channels;
  w.in_height = height;
  w.in_width = width;
  w.kernel_height = w.kernel_width = kernel;
  w.stride = {stride, stride};
  w.padding = {padding, padding, padding, padding};
  w.dilation = {dilation, dilation};
  w.layout = w.out_layout = layout;
  w.constant = {"weight"};
  return w;
}

TEST(DepthwiseConv2dCpu, DeclinesWithTheReason) {
  Conv2dWorkload w = depthwise(4, 5, 5, 3, 1, 1);
  EXPECT_TRUE(depthwise_conv2d_cpu().supports(w, cpu(256, 16)).yes);
  w.groups = 2;
  EXPECT_EQ(depthwise_conv2d_cpu().supports(w, cpu(256, 16)).reason, "needs groups = 4 channels, got 2");
  w.groups = 4;
  w.out_channels = 12;
  EXPECT_EQ(depthwise_conv2d_cpu().supports(w, cpu(256, 16)).reason,
            "needs 1 output channel in a group, got 3");
  EXPECT_EQ(depthwise_conv2d_cpu().supports(MatmulWorkload{}, cpu(256, 16)).reason,
            "serves conv2d, got matmul");
}

TEST(DepthwiseConv2dCpu, LoopsOfOneConfig) {
  Conv2dWorkload w = depthwise(16, 5, 7, 3, 1, 1, 1, "NCHW8c");
  w.bias = true;
  const auto instance = depthwise_conv2d_cpu().apply(w, cpu(256, 16, /*threads=*/2));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(*config_from_text("tile_oh=1 tile_ow=4 unroll_kh=0"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_EQ("\n" + to_text(*program), R"(
kernel conv2d(input data float32[1, 2, 5, 7, 8], packed weight.packed float32[2, 1, 3, 3, 8], input bias float32[16], output out float32[1, 2, 5, 7, 8])
  parallel n.oc.ocb.outer.fused.oh.outer.fused in 0..10
    for ow.outer in 0..2
      allocate acc float32[1, 1, 4, 8] register
      for n in 0..1
        unrolled oh.init in 0..1
          unrolled ow.init in 0..4
            vectorized oc.init in 0..8
              acc[0, 0, ow.init, oc.init] = 0
        reduce ic in 0..1
          reduce kh in 0..3
            if n.oc.ocb.outer.fused.oh.outer.fused%5 + kh >= 1 && n.oc.ocb.outer.fused.oh.outer.fused%5 + kh < 6
              unrolled oh in 0..1
                unrolled ow in 0..4
                  unrolled reduce kw in 0..3
                    if ow.outer*4 + ow + kw >= 1 && ow.outer*4 + ow + kw < 8
                      vectorized oc in 0..8
                        acc[0, 0, ow, oc] += data[0, n.oc.ocb.outer.fused.oh.outer.fused//5, n.oc.ocb.outer.fused.oh.outer.fused%5 + kh - 1, ow.outer*4 + ow + kw - 1, oc] * weight.packed[n.oc.ocb.outer.fused.oh.outer.fused//5, 0, kh, kw, oc]
      unrolled oh.inner in 0..1
        unrolled ow.inner in 0..4
          if ow.outer*4 + ow.inner < 7
            vectorized ocb.inner in 0..8
              out[0, n.oc.ocb.outer.fused.oh.outer.fused//5, n.oc.ocb.outer.fused.oh.outer.fused%5, ow.outer*4 + ow.inner, ocb.inner] = acc[0, 0, ow.inner, ocb.inner] + bias[n.oc.ocb.outer.fused.oh.outer.fused//5*8 + ocb.inner]
packing conv2d_pack(constant weight float32[16, 1, 3, 3], packed weight.packed float32[2, 1, 3, 3, 8])
  for p0 in 0..2
    for p1 in 0..1
      for p2 in 0..3
        for p3 in 0..3
          for p4 in 0..8
            weight.packed[p0, p1, p2, p3, p4] = weight[p0*8 + p4, p1, p2, p3]
)");
}

TEST(DepthwiseConv2dCpu, RandomConfigsOnOddShapes) {
  const Conv2dWorkload shapes[] = {
      depthwise(3, 7, 7, 3, 1, 1),
      depthwise(2, 9, 21, 3, 2, 1),
      depthwise(1, 1, 1, 1, 1, 0),
      depthwise(2, 11, 40, 5, 1, 2),
      depthwise(2, 8, 9, 2, 3, 1),
      depthwise(2, 12, 35, 3, 1, 2, 2),
      depthwise(3, 18, 17, 7, 2, 3),
      depthwise(3, 7, 7, 3, 1, 1, 1, "NHWC"),
      depthwise(37, 9, 8, 5, 2, 2, 1, "NHWC"),
      depthwise(1, 6, 7, 3, 1, 2, 2, "NHWC"),
  };
  for (const auto& w : shapes) {
    expect_configs_right(depthwise_conv2d_cpu(), w, cpu(256, 16), 8, 1);
    expect_configs_right(depthwise_conv2d_cpu(), w, cpu(512, 32), 8, 2);
    expect_configs_right(depthwise_conv2d_cpu(), w, cpu(512, 32, /*threads=*/2), 8, 3);
  }
}

TEST(DepthwiseConv2dCpu, EveryLayoutInAndOut) {
  uint64_t seed = 0;
  for (const char* layout : {"NCHW", "NHWC", "NCHW4c", "NCHW8c", "NCHW16c"})
    for (const char* out_layout : {"NCHW", "NHWC", "NCHW4c", "NCHW8c", "NCHW16c"}) {
      Conv2dWorkload w = depthwise(16, 6, 9, 3, 1 + static_cast<int64_t>(seed % 2), 1);
      w.layout = layout;
      w.out_layout = out_layout;
      w.bias = w.residual = true;
      w.activation = Activation::kRelu;
      for (const Target& t : {cpu(128, 16), cpu(256, 16, /*threads=*/2), cpu(512, 32)})
        expect_configs_right(depthwise_conv2d_cpu(), w, t, 3, ++seed);
    }
}

TEST(DepthwiseConv2dCpu, EveryForm) {
  for (int form = 0; form < 32; ++form) {
    Conv2dWorkload w = depthwise(16, 6, 7, 3, 1 + form % 2, 0, 1, (form & 16) != 0 ? "NCHW" : "NCHW8c");
    if ((form & 1) != 0) w.padding = {0, 2, 1, 0};  // one side each
    w.bias = (form & 2) != 0;
    w.residual = (form & 4) != 0;
    if ((form & 8) != 0) w.constant = {};
    w.batch = 1 + form % 2;
    expect_configs_right(depthwise_conv2d_cpu(), w, cpu(256, 16, 1 + form % 2), 3,
                         static_cast<uint64_t>(form));
  }
}

}  // namespace
}  // namespace tuner
