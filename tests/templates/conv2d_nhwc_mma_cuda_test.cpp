// conv2d_nhwc_mma_cuda: when it applies, what its copies are, and random configs on odd shapes, emulated,
// against the oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler_core/codegen_cuda/cuda.h"
#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

Conv2dWorkload conv2d(int64_t ic, int64_t size, int64_t oc, int64_t kernel, DType dtype = DType::kBFloat16) {
  Conv2dWorkload w;
  w.in_channels = ic;
  w.in_height = w.in_width = size;
  w.out_channels = oc;
  w.kernel_height = w.kernel_width = kernel;
  w.dtype = dtype;
  w.layout = w.out_layout = "NHWC";
  return w;
}

Conv2dWorkload same(Conv2dWorkload w) {
  w.padding = {w.kernel_height / 2, w.kernel_width / 2, w.kernel_height / 2, w.kernel_width / 2};
  return w;
}

Conv2dWorkload strided(DType dtype) {
  Conv2dWorkload w = conv2d(9, 17, 21, 3, dtype);
  w.stride = {2, 1};
  w.padding = {0, 1, 1, 2};
  w.batch = 2;
  w.bias = w.residual = true;
  w.activation = Activation::kRelu;
  return w;
}

Conv2dWorkload dilated(DType dtype) {
  Conv2dWorkload w = conv2d(8, 15, 34, 5, dtype);
  w.dilation = {2, 1};
  w.kernel_width = 2;
  w.in_width = 9;
  return w;
}

Conv2dWorkload grouped(int64_t groups, DType dtype) {
  Conv2dWorkload w = same(conv2d(8 * groups, 9, 10 * groups, 3, dtype));
  w.groups = groups;
  w.stride = {1, 2};
  w.batch = 2;
  w.bias = true;
  return w;
}

Conv2dWorkload packed(Conv2dWorkload w) {
  w.constant = {"weight"};
  return w;
}

TEST(Conv2dNhwcMmaCuda, DeclinesWithTheReason) {
  const auto reason = [](const Conv2dWorkload& w, const Target& t) {
    return conv2d_nhwc_mma_cuda().supports(w, t).reason;
  };
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  Conv2dWorkload w = conv2d(8, 8, 4, 3);
  EXPECT_EQ(reason(w, cpu), "needs a CUDA target, got " + cpu.name());
  EXPECT_EQ(reason(w, gpu("sm_80")), "");
  EXPECT_EQ(reason(w, gpu("sm_75")), "needs sm_80 or later, got sm_75");
  EXPECT_EQ(reason(conv2d(8, 8, 4, 3, DType::kFloat32), gpu()),
            "needs bfloat16, float16 or int8, got float32");
  w.groups = 4;
  EXPECT_EQ(reason(w, gpu()), "needs 2 output channels of a group or more, got 1");
  EXPECT_EQ(reason(conv2d(8, 1, 4, 1), gpu()), "needs 2 pixels or more, got 1");
  EXPECT_EQ(reason(conv2d(1, 8, 4, 1), gpu()), "needs 2 terms of a sum or more, got 1");
  w = conv2d(8, 8, 4, 3);
  w.out_layout = "NCHW";
  EXPECT_EQ(reason(w, gpu()), "needs out_layout NHWC, got NCHW");
  w.layout = "NCHW";
  EXPECT_EQ(reason(w, gpu()), "needs layout NHWC, got NCHW");
  EXPECT_EQ(conv2d_nhwc_mma_cuda().supports(MatmulWorkload{}, gpu()).reason, "serves conv2d, got matmul");
}

// Templates of planar images say so themselves, before they are asked for anything else.
TEST(Conv2dNhwcMmaCuda, PlanarTemplatesDeclineTheLayout) {
  Conv2dWorkload w = conv2d(8, 8, 8, 3, DType::kFloat32);
  EXPECT_EQ(conv2d_nchw_cuda().supports(Workload(w), gpu()).reason, "does not serve layout NHWC yet");
  w.layout = "NCHW";
  EXPECT_EQ(conv2d_nchw_cuda().supports(Workload(w), gpu()).reason, "does not serve out_layout NHWC yet");
}

std::string default_text(const Conv2dWorkload& w) {
  const auto instance = conv2d_nhwc_mma_cuda().apply(w, gpu());
  if (!instance) return instance.message();
  const ConfigSpace& space = (*instance)->space();
  const auto program = (*instance)->instantiate(space.at(space.default_index()));
  if (!program) return program.message();
  const auto text = emit_cuda(*program, gpu());
  return text ? *text : text.message();
}

// Whole groups of channels are copied by 16 bytes, asynchronously, and the padding is zeros of the copy.
TEST(Conv2dNhwcMmaCuda, CopiesAreAsynchronousVectors) {
  const std::string text = default_text(packed(same(conv2d(64, 56, 64, 3))));
  EXPECT_THAT(text, ::testing::HasSubstr("cp.async.cg.shared.global [%0], [%1], 16"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("cp.async.ca")));
  EXPECT_THAT(text, ::testing::HasSubstr("ldmatrix"));
}

// A 1x1 kernel is a product: no index of its copies has a division by the image's size.
TEST(Conv2dNhwcMmaCuda, OneByOneIsAPlainProduct) {
  const std::string text = default_text(packed(conv2d(64, 56, 128, 1)));
  EXPECT_THAT(text, ::testing::HasSubstr("cp.async.cg"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("/ 56")));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("/ 3136")));
}

TEST(Conv2dNhwcMmaCuda, DefaultIsValidForAnyShape) {
  for (const int64_t stride : {1, 2})
    for (const int64_t channels : {2, 3, 64, 2048})
      for (const int64_t out_channels : {2, 5, 64, 2048})
        for (const int64_t size : {3, 7, 56})
          for (const int64_t kernel : {1, 3}) {
            const char* arch = size % 2 == 0 ? "sm_80" : "sm_90a";
            Conv2dWorkload w = same(conv2d(channels, size, out_channels, kernel));
            w.stride = {stride, stride};
            if (channels > 2) w.constant = {"weight"};
            SCOPED_TRACE(str(Workload(w).key(), " on ", arch));
            const auto instance = conv2d_nhwc_mma_cuda().apply(w, gpu(arch));
            ASSERT_TRUE(instance.is_ok()) << instance.message();
            const ConfigSpace& space = (*instance)->space();
            const auto program = (*instance)->instantiate(space.at(space.default_index()));
            ASSERT_TRUE(program.is_ok()) << program.message();
            const auto lowered = lower_gpu(*program);
            ASSERT_TRUE(lowered.is_ok()) << lowered.message();
          }
}

TEST(Conv2dNhwcMmaCuda, RandomConfigsOnOddShapes) {
  for (const DType t : {DType::kBFloat16, DType::kFloat16}) {
    Conv2dWorkload residual = same(conv2d(24, 7, 40, 3, t));
    residual.bias = residual.residual = true;
    residual.narrow_out = t;
    for (const Conv2dWorkload& w : {conv2d(2, 3, 2, 1, t), conv2d(40, 6, 70, 1, t), conv2d(3, 9, 8, 3, t),
                                    residual, strided(t), dilated(t), grouped(2, t)}) {
      expect_gpu_configs_right(conv2d_nhwc_mma_cuda(), w, gpu("sm_80"), 3, 1);
      expect_gpu_configs_right(conv2d_nhwc_mma_cuda(), packed(w), gpu(), 4, 1);
    }
  }
}

TEST(Conv2dNhwcMmaCuda, Bytes) {
  Conv2dWorkload narrow = same(conv2d(32, 7, 40, 3, DType::kInt8));
  narrow.bias = narrow.residual = true;
  narrow.narrow_out = DType::kUInt8;
  narrow.activation = Activation::kRelu;
  Conv2dWorkload signed_out = grouped(3, DType::kInt8);
  signed_out.narrow_out = DType::kInt8;
  for (const Conv2dWorkload& w : {conv2d(40, 6, 70, 1, DType::kInt8), strided(DType::kInt8),
                                  dilated(DType::kInt8), narrow, signed_out}) {
    expect_gpu_configs_right(conv2d_nhwc_mma_cuda(), w, gpu(), 3, 1);
    expect_gpu_configs_right(conv2d_nhwc_mma_cuda(), packed(w), gpu("sm_80"), 4, 1);
  }
}

// Of float32 the numbers' first 11 bits where that is allowed, else three products for one.
TEST(Conv2dNhwcMmaCuda, Float32) {
  Conv2dWorkload residual = same(conv2d(20, 7, 40, 3, DType::kFloat32));
  residual.bias = residual.residual = true;
  for (const Conv2dWorkload& each :
       {conv2d(40, 6, 70, 1, DType::kFloat32), residual, strided(DType::kFloat32), dilated(DType::kFloat32),
        grouped(2, DType::kFloat32)}) {
    Conv2dWorkload w = each;
    expect_gpu_configs_right(conv2d_nhwc_tf32x3_cuda(), w, gpu("sm_80"), 2, 1);
    expect_gpu_configs_right(conv2d_nhwc_tf32x3_cuda(), packed(w), gpu(), 2, 1);
    w.allow_tf32 = true;
    expect_gpu_configs_right(conv2d_nhwc_tf32_cuda(), w, gpu(), 2, 1);
    expect_gpu_configs_right(conv2d_nhwc_tf32_cuda(), packed(w), gpu("sm_80"), 2, 1);
  }
}

TEST(Conv2dNhwcMmaCuda, WhoServesFloat32) {
  Conv2dWorkload w = conv2d(8, 8, 8, 3, DType::kFloat32);
  const auto names = [&] {
    std::string all;
    const auto serving = templates_for(w, gpu());
    if (!serving) return serving.message();
    for (const AnyTemplate* t : *serving) all += str(all.empty() ? "" : " ", t->name());
    return all;
  };
  EXPECT_EQ(names(), "conv2d_nhwc_tf32x3_cuda");
  w.allow_tf32 = true;
  EXPECT_EQ(names(), "conv2d_nhwc_tf32_cuda");
  w = conv2d(4, 8, 8, 1, DType::kFloat32);
  EXPECT_EQ(conv2d_nhwc_tf32x3_cuda().supports(Workload(w), gpu()).reason,
            "needs 16 terms of a sum or more, got 4");
}

// Terms in parts, and the kernel that adds them up.
TEST(Conv2dNhwcMmaCuda, SmallImagesWithManyChannels) {
  Conv2dWorkload w = packed(same(conv2d(128, 7, 32, 3)));
  w.batch = 2;
  w.bias = true;
  expect_gpu_configs_right(conv2d_nhwc_mma_cuda(), w, gpu("sm_80"), 6, 4);
}

TEST(Conv2dNhwcMmaCuda, SchedulesReplayFromTheirText) {
  expect_gpu_schedules_replay(conv2d_nhwc_mma_cuda(), packed(grouped(2, DType::kBFloat16)), gpu(), 8, 1);
  expect_gpu_schedules_replay(conv2d_nhwc_mma_cuda(), packed(same(conv2d(64, 14, 72, 3))), gpu("sm_80"), 8,
                              1);
}

}  // namespace
}  // namespace tuner
