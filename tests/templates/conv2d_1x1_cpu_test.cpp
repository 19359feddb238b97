// conv2d_1x1_pixels_cpu, conv2d_1x1_channels_cpu: when they apply, their loops, and random configs on odd
// shapes against the oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

Conv2dWorkload conv(int64_t ic, int64_t height, int64_t width, int64_t oc, int64_t stride = 1) {
  Conv2dWorkload w;
  w.in_channels = ic;
  w.in_height = height;
  w.in_width = width;
  w.out_channels = oc;
  w.stride = {stride, stride};
  w.constant = {"weight"};
  return w;
}

std::string loops(const AnyTemplate& t, const Conv2dWorkload& w, const Target& target, const char* config) {
  const auto instance = t.apply(w, target);
  if (!instance.is_ok()) return instance.message();
  const auto program = (*instance)->instantiate(*config_from_text(config));
  return program.is_ok() ? "\n" + to_text(*program) : program.message();
}

TEST(Conv2d1x1Cpu, DeclinesWithTheReason) {
  Conv2dWorkload w = conv(4, 5, 5, 4);
  for (const AnyTemplate* t : {&conv2d_1x1_pixels_cpu(), &conv2d_1x1_channels_cpu()}) {
    const auto reason = [&](const Conv2dWorkload& other) { return t->supports(other, cpu(256, 16)).reason; };
    EXPECT_TRUE(t->supports(w, cpu(256, 16)).yes);
    Conv2dWorkload other = w;
    other.kernel_width = 3;
    EXPECT_EQ(reason(other), "needs a 1x1 kernel, got 1x3");
    other = w;
    other.groups = 2;
    EXPECT_EQ(reason(other), "needs groups = 1, got 2");
    other = w;
    other.padding = {0, 1, 0, 1};
    EXPECT_EQ(reason(other), "needs no padding, got 0,1,0,1");
  }
  w.layout = "NCHW4c";
  EXPECT_EQ(conv2d_1x1_pixels_cpu().supports(w, cpu(256, 16)).reason, "needs layout NCHW, got NCHW4c");
  EXPECT_TRUE(conv2d_1x1_channels_cpu().supports(w, cpu(256, 16)).yes);
  w.out_layout = "NCHW4c";
  EXPECT_EQ(conv2d_1x1_channels_cpu().supports(w, cpu(256, 16)).reason,
            "needs whole vectors of 8 channels, got out_layout NCHW4c");
}

TEST(Conv2d1x1PixelsCpu, LoopsOfOneConfig) {
  Conv2dWorkload w = conv(6, 7, 7, 10);
  w.bias = true;
  EXPECT_EQ(loops(conv2d_1x1_pixels_cpu(), w, cpu(256, 16, /*threads=*/2),
                  "block_oc=0 pack_data=1 tile_oc=5 tile_p=16 unroll_ic=2"),
            R"(
kernel conv2d(input data float32[1, 6, 49], packed weight.packed float32[2, 6, 1, 1, 5], input bias float32[10], output out float32[1, 10, 49])
  parallel n.oc.outer.outer.p.outer.fused in 0..4
    allocate data.packed float32[1, 1, 6, 16]
    for p0 in 0..1
      for p1 in 0..1
        for p2 in 0..6
          unrolled p3.outer in 0..2
            vectorized p3.inner in 0..8
              data.packed[0, 0, p2, p3.outer*8 + p3.inner] = select(n.oc.outer.outer.p.outer.fused*16 + p3.outer*8 + p3.inner < 49, data[0, p2, n.oc.outer.outer.p.outer.fused*16 + p3.outer*8 + p3.inner], 0)
    for oc.outer.inner in 0..2
      allocate acc float32[1, 5, 16] register
      for n in 0..1
        unrolled oc.init in 0..5
          unrolled p.outer.init in 0..2
            vectorized p.inner.init in 0..8
              acc[0, oc.init, p.outer.init*8 + p.inner.init] = 0
        reduce ic.outer in 0..3
          unrolled reduce ic.inner in 0..2
            unrolled oc in 0..5
              unrolled p.outer in 0..2
                vectorized p.inner in 0..8
                  acc[0, oc, p.outer*8 + p.inner] += data.packed[0, 0, ic.outer*2 + ic.inner, p.outer*8 + p.inner] * weight.packed[oc.outer.inner, ic.outer*2 + ic.inner, 0, 0, oc]
      unrolled oc.inner in 0..5
        unrolled p.inner.outer in 0..2
          vectorized p.inner.inner in 0..8
            if n.oc.outer.outer.p.outer.fused*16 + p.inner.outer*8 + p.inner.inner < 49
              out[0, oc.outer.inner*5 + oc.inner, n.oc.outer.outer.p.outer.fused*16 + p.inner.outer*8 + p.inner.inner] = acc[0, oc.inner, p.inner.outer*8 + p.inner.inner] + bias[oc.outer.inner*5 + oc.inner]
packing conv2d_pack(constant weight float32[10, 6, 1, 1], packed weight.packed float32[2, 6, 1, 1, 5])
  for p0 in 0..2
    for p1 in 0..6
      for p2 in 0..1
        for p3 in 0..1
          for p4 in 0..5
            weight.packed[p0, p1, p2, p3, p4] = weight[p0*5 + p4, p1, p2, p3]
)");
}

TEST(Conv2d1x1ChannelsCpu, LoopsOfOneConfigWrittenBackToPlainImages) {
  EXPECT_EQ(loops(conv2d_1x1_channels_cpu(), conv(6, 7, 7, 32), cpu(256, 16),
                  "block_p=0 narrow_panels=0 next_panel=0 tile_oc=16 tile_p=5 unroll_ic=1"),
            R"(
kernel conv2d(input data float32[1, 6, 49], packed weight.packed float32[2, 6, 1, 1, 16], output out float32[1, 32, 49])
  for n in 0..1
    for p.outer.outer in 0..1
      for oc.outer in 0..2
        for p.outer.inner in 0..10
          allocate acc float32[1, 5, 16] register
          for n_1 in 0..1
            unrolled p.init in 0..5
              if p.outer.inner*5 + p.init < 49
                unrolled oc.outer.init in 0..2
                  vectorized oc.inner.init in 0..8
                    acc[0, p.init, oc.outer.init*8 + oc.inner.init] = 0
            reduce ic.outer in 0..6
              unrolled reduce ic.inner in 0..1
                unrolled p in 0..5
                  if p.outer.inner*5 + p < 49
                    unrolled oc.outer_1 in 0..2
                      vectorized oc.inner in 0..8
                        acc[0, p, oc.outer_1*8 + oc.inner] += data[0, ic.outer, p.outer.inner*5 + p] * weight.packed[oc.outer, ic.outer, 0, 0, oc.outer_1*8 + oc.inner]
          unrolled oc.inner.outer in 0..2
            vector_rows oc.inner.inner in 0..8
              vectorized p.inner in 0..5
                if p.outer.inner*5 + p.inner < 49
                  out[0, oc.outer*16 + oc.inner.outer*8 + oc.inner.inner, p.outer.inner*5 + p.inner] = acc[0, p.inner, oc.inner.outer*8 + oc.inner.inner]
packing conv2d_pack(constant weight float32[32, 6, 1, 1], packed weight.packed float32[2, 6, 1, 1, 16])
  for p0 in 0..2
    for p1 in 0..6
      for p2 in 0..1
        for p3 in 0..1
          for p4 in 0..16
            weight.packed[p0, p1, p2, p3, p4] = weight[p0*16 + p4, p1, p2, p3]
)");
}

TEST(Conv2d1x1ChannelsCpu, TilesAskForTheNextPanel) {
  EXPECT_THAT(loops(conv2d_1x1_channels_cpu(), conv(6, 7, 7, 32), cpu(256, 16),
                    "block_p=0 narrow_panels=0 next_panel=1 tile_oc=16 tile_p=5 unroll_ic=1"),
              ::testing::HasSubstr("reduce ic.outer in 0..6\n"
                                   "              prefetch.l2(weight.packed[oc.outer + 1, ic.outer, 0, 0, "
                                   "p.outer.inner%2*8])\n"));
  // In vectors apart, each has its own panel.
  EXPECT_THAT(loops(conv2d_1x1_channels_cpu(), conv(6, 7, 7, 32), cpu(256, 16),
                    "block_p=0 narrow_panels=1 next_panel=1 tile_oc=16 tile_p=5 unroll_ic=1"),
              ::testing::HasSubstr(
                  "prefetch.l2(weight.packed[(oc.outer + 1)*2 + p.outer.inner%2, ic.outer, 0, 0, 0])"));
}

TEST(Conv2d1x1ChannelsCpu, LoopsOfOneConfigInBlocksWithAStride) {
  Conv2dWorkload w = conv(32, 7, 7, 32, /*stride=*/2);
  w.layout = w.out_layout = "NCHW16c";
  EXPECT_EQ(loops(conv2d_1x1_channels_cpu(), w, cpu(256, 16),
                  "block_p=2 narrow_panels=1 next_panel=0 tile_oc=16 tile_p=4 unroll_ic=2"),
            R"(
kernel conv2d(input data float32[1, 2, 7, 7, 16], packed weight.packed float32[4, 32, 1, 1, 8], output out float32[1, 2, 16, 16])
  allocate picked float32[1, 2, 16, 16]
  for n in 0..1
    for ic in 0..2
      for p.outer in 0..4
        for p.inner in 0..4
          vectorized icb in 0..16
            picked[0, ic, p.outer*4 + p.inner, icb] = data[0, ic, p.outer*2, p.inner*2, icb]
  for n in 0..1
    for p.outer.outer in 0..2
      for oc.outer in 0..2
        for p.outer.inner in 0..2
          allocate acc float32[1, 4, 16] register
          for n_1 in 0..1
            unrolled p.init in 0..4
              unrolled oc.outer.init in 0..2
                vectorized oc.inner.init in 0..8
                  acc[0, p.init, oc.outer.init*8 + oc.inner.init] = 0
            reduce ic.outer in 0..2
              reduce ic.inner.outer in 0..8
                unrolled reduce ic.inner.inner in 0..2
                  unrolled p in 0..4
                    unrolled oc.outer_1 in 0..2
                      vectorized oc.inner in 0..8
                        acc[0, p, oc.outer_1*8 + oc.inner] += picked[0, ic.outer, p.outer.outer*8 + p.outer.inner*4 + p, ic.inner.outer*2 + ic.inner.inner] * weight.packed[oc.outer*2 + oc.outer_1, ic.outer*16 + ic.inner.outer*2 + ic.inner.inner, 0, 0, oc.inner]
          unrolled p.inner in 0..4
            unrolled oc.inner in 0..1
              unrolled ocb.outer in 0..2
                vectorized ocb.inner in 0..8
                  out[0, oc.outer, p.outer.outer*8 + p.outer.inner*4 + p.inner, ocb.outer*8 + ocb.inner] = acc[0, p.inner, ocb.outer*8 + ocb.inner]
packing conv2d_pack(constant weight float32[32, 32, 1, 1], packed weight.packed float32[4, 32, 1, 1, 8])
  for p0 in 0..4
    for p1 in 0..32
      for p2 in 0..1
        for p3 in 0..1
          for p4 in 0..8
            weight.packed[p0, p1, p2, p3, p4] = weight[p0*8 + p4, p1, p2, p3]
)");
}

TEST(Conv2d1x1Cpu, RandomConfigsOfPlainImages) {
  for (const AnyTemplate* t : {&conv2d_1x1_pixels_cpu(), &conv2d_1x1_channels_cpu()})
    for (const auto& w : {conv(1, 1, 1, 1), conv(5, 7, 7, 19), conv(3, 1, 29, 40), conv(2, 9, 70, 3),
                          conv(4, 9, 12, 17, /*stride=*/2), conv(3, 4, 140, 9, /*stride=*/2)}) {
      expect_configs_right(*t, w, cpu(256, 16), 8, 1);
      expect_configs_right(*t, w, cpu(512, 32), 8, 2);
      expect_configs_right(*t, w, cpu(128, 32, /*threads=*/2), 8, 3);
    }
}

// In float32 vectors: weights are widened as they are packed, pixels where they are loaded.
TEST(Conv2d1x1PixelsCpu, RandomConfigsOfBfloat16) {
  for (auto w : {conv(1, 1, 1, 1), conv(5, 7, 7, 19), conv(3, 1, 29, 40), conv(4, 9, 12, 17, /*stride=*/2)})
    for (int form = 0; form < 4; ++form) {
      w.dtype = DType::kBFloat16;
      if ((form & 1) != 0) w.constant.clear();
      if ((form & 2) != 0) w.narrow_out = DType::kBFloat16;
      w.bias = w.residual = (form & 2) != 0;
      expect_configs_right(conv2d_1x1_pixels_cpu(), w, cpu(256, 16), 4, 1);
      expect_configs_right(conv2d_1x1_pixels_cpu(), w, cpu(512, 32, /*threads=*/2), 4, 2);
    }
}

TEST(Conv2d1x1ChannelsCpu, RandomConfigsOfBlockedImages) {
  for (const auto& [in, out] : {std::pair{"NCHW16c", "NCHW16c"},
                                {"NCHW8c", "NCHW16c"},
                                {"NCHW", "NCHW16c"},
                                {"NCHW4c", "NCHW"},
                                {"NHWC", "NHWC"},
                                {"NHWC", "NCHW"},
                                {"NCHW", "NHWC"},
                                {"NHWC", "NCHW16c"}})
    for (const int64_t stride : {1, 2}) {
      Conv2dWorkload w = conv(16, 5, 7, 48, stride);
      w.layout = in;
      w.out_layout = out;
      w.bias = w.residual = true;
      expect_configs_right(conv2d_1x1_channels_cpu(), w, cpu(256, 16), 6, 4);
      expect_configs_right(conv2d_1x1_channels_cpu(), w, cpu(512, 32, /*threads=*/2), 6, 5);
    }
}

TEST(Conv2d1x1ChannelsCpu, RandomConfigsOfChannelsInnermost) {
  for (auto w : {conv(1, 1, 1, 1), conv(5, 7, 7, 19), conv(3, 1, 29, 40), conv(70, 5, 6, 3, /*stride=*/2)}) {
    w.layout = w.out_layout = "NHWC";
    w.residual = true;
    expect_configs_right(conv2d_1x1_channels_cpu(), w, cpu(256, 16), 6, 8);
    expect_configs_right(conv2d_1x1_channels_cpu(), w, cpu(512, 32, /*threads=*/2), 6, 9);
  }
}

TEST(Conv2d1x1Cpu, EveryPartOfTheEpilogueAndOperandForm) {
  for (int form = 0; form < 64; ++form) {
    Conv2dWorkload w = conv(3, 5, 4, 18, form % 2 + 1);
    w.bias = (form & 2) != 0;
    w.residual = (form & 4) != 0;
    w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
    w.batch = (form & 16) != 0 ? 3 : 1;
    if ((form & 32) != 0) w.constant.clear();
    for (const AnyTemplate* t : {&conv2d_1x1_pixels_cpu(), &conv2d_1x1_channels_cpu()})
      expect_configs_right(*t, w, cpu(256, 16, 1 + form / 2 % 2), 2, static_cast<uint64_t>(form));
  }
}

TEST(Conv2d1x1Cpu, ConstantDataIsServed) {
  Conv2dWorkload w = conv(3, 5, 4, 18);
  w.constant = {"data", "weight"};
  for (const int64_t stride : {1, 2}) {
    w.stride = {stride, stride};
    expect_configs_right(conv2d_1x1_pixels_cpu(), w, cpu(256, 16), 8, 6);
    expect_configs_right(conv2d_1x1_channels_cpu(), w, cpu(256, 16), 8, 7);
  }
}

TEST(Conv2d1x1Cpu, DefaultIsValidForAnyShape) {
  for (const Target& t : {cpu(128, 16), cpu(128, 32), cpu(256, 16), cpu(512, 32)})
    for (const int64_t oc : {1, 3, 64, 1000})
      for (const int64_t side : {1, 7, 14, 57})
        for (const AnyTemplate* which : {&conv2d_1x1_pixels_cpu(), &conv2d_1x1_channels_cpu()}) {
          const auto instance = which->apply(conv(24, side, side, oc), t);
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          EXPECT_TRUE(
              (*instance)->instantiate((*instance)->space().at((*instance)->space().first_index())).is_ok());
        }
}

TEST(Conv2d1x1Cpu, ScheduleReplaysFromItsText) {
  const Conv2dWorkload w = conv(6, 7, 7, 40, /*stride=*/2);
  for (const AnyTemplate* t : {&conv2d_1x1_pixels_cpu(), &conv2d_1x1_channels_cpu()}) {
    const auto instance = t->apply(w, cpu(256, 16, 2));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const Config config = (*instance)->space().at((*instance)->space().first_index());
    const auto program = (*instance)->instantiate(config);
    const auto text = (*instance)->schedule_text(config);
    ASSERT_TRUE(program.is_ok() && text.is_ok()) << program.message() << text.message();
    const auto again = replay((*instance)->math(), *text);
    ASSERT_TRUE(again.is_ok()) << again.message();
    EXPECT_EQ(to_text(*again), to_text(*program));
  }
}

}  // namespace
}  // namespace tuner
