// conv2d_direct_cpu: when it applies, its loops, and random configs on odd shapes against the oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

Conv2dWorkload conv(int64_t ic, int64_t height, int64_t width, int64_t oc, int64_t kh, int64_t kw,
                    int64_t stride, int64_t padding, int64_t dilation) {
  Conv2dWorkload w;
  w.in_channels = ic;
  w.in_height = height;
  w.in_width = width;
  w.out_channels = oc;
  w.kernel_height = kh;
  w.kernel_width = kw;
  w.stride = {stride, stride};
  w.padding = {padding, padding, padding, padding};
  w.dilation = {dilation, dilation};
  w.constant = {"weight"};
  return w;
}

TEST(Conv2dDirectCpu, DeclinesWithTheReason) {
  Conv2dWorkload w = conv(4, 5, 5, 4, 3, 3, 1, 1, 1);
  EXPECT_TRUE(conv2d_direct_cpu().supports(w, cpu(256, 16)).yes);
  w.groups = 2;
  EXPECT_TRUE(conv2d_direct_cpu().supports(w, cpu(256, 16)).yes);
  w.groups = 4;
  EXPECT_EQ(conv2d_direct_cpu().supports(w, cpu(256, 16)).reason,
            "needs more than one channel in a group, got groups = 4 of 4 channels");
  EXPECT_EQ(conv2d_direct_cpu().supports(MatmulWorkload{}, cpu(256, 16)).reason, "serves conv2d, got matmul");
}

// Those that say the same share a line.
TEST(Templates, RefusalListsEveryTemplateOfTheOperatorWithItsReason) {
  Conv2dWorkload w = conv(4, 5, 5, 4, 3, 3, 1, 1, 1);
  w.dtype = DType::kFloat64;
  const std::string refusal = templates_for(w, cpu(256, 16)).message();
  EXPECT_THAT(refusal, ::testing::StartsWith("no template serves " + Workload(w).key() + " on \"" +
                                             cpu(256, 16).name() + "\":\n"));
  for (const AnyTemplate* t : all_templates()) {
    const Support support = t->supports(w, cpu(256, 16));
    if (support.other_operator || support.other_target) {
      EXPECT_THAT(refusal, ::testing::Not(::testing::HasSubstr(std::string(t->name()))));
    } else {
      EXPECT_THAT(refusal,
                  ::testing::ContainsRegex(str("\n[^\n:]*\\b", t->name(), "\\b[^\n:]*: ", support.reason)));
    }
  }
  w.dtype = DType::kFloat32;
  const auto serving = templates_for(w, cpu(256, 16));
  ASSERT_TRUE(serving.is_ok());
  EXPECT_THAT(*serving, ::testing::Contains(find_template("conv2d_direct_cpu")));
  EXPECT_EQ(find_template("conv3d"), nullptr);
}

// Threads share the panels, so the next one is that of the next iteration, whoever runs it.
TEST(Conv2dDirectCpu, RowsOfTilesAskForTheNextPanel) {
  const auto instance = conv2d_direct_cpu().apply(conv(16, 7, 7, 48, 3, 3, 1, 1, 1), cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(
      *config_from_text("block_ic=16 block_oh=0 narrow_panels=0 next_panel=1 tile_oc=16 tile_oh=1 tile_ow=4 "
                        "unroll_ic=2 unroll_kw=0"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_THAT(to_text(*program), ::testing::HasSubstr("prefetch.l2(weight.packed[oc.outer + 1, 0, kh, kw, "));
  EXPECT_EQ(
      (*instance)
          ->instantiate(*config_from_text("block_ic=16 block_oh=0 narrow_panels=0 next_panel=1 tile_oc=16 "
                                          "tile_oh=7 tile_ow=7 unroll_ic=2 unroll_kw=0"))
          .status()
          .code(),
      StatusCode::kInvalidConfig);
}

TEST(Conv2dDirectCpu, LoopsOfOneConfig) {
  Conv2dWorkload w = conv(16, 7, 7, 16, 3, 3, 1, 1, 1);
  w.bias = true;
  w.activation = Activation::kRelu;
  w.layout = "NCHW8c";
  const auto instance = conv2d_direct_cpu().apply(w, cpu(256, 16, /*threads=*/2));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(*config_from_text(
      "block_ic=8 block_oh=0 narrow_panels=0 next_panel=0 tile_oc=16 tile_oh=1 tile_ow=4 unroll_ic=2 "
      "unroll_kw=0"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_EQ("\n" + to_text(*program), R"(
kernel conv2d(input data float32[1, 2, 7, 7, 8], packed weight.packed float32[1, 2, 3, 3, 8, 16], input bias float32[16], output out float32[1, 16, 7, 7])
  parallel n.oc.outer.oh.outer.fused in 0..7
    for ow.outer in 0..2
      allocate acc float32[1, 1, 4, 16] register
      for n in 0..1
        unrolled oh.init in 0..1
          unrolled ow.init in 0..4
            unrolled oc.outer.init in 0..2
              vectorized oc.inner.init in 0..8
                acc[0, 0, ow.init, oc.outer.init*8 + oc.inner.init] = 0
        reduce ic.outer in 0..2
          reduce kh in 0..3
            if n.oc.outer.oh.outer.fused + kh >= 1 && n.oc.outer.oh.outer.fused + kh < 8
              reduce kw in 0..3
                reduce ic.inner.outer in 0..1
                  reduce ic.inner.inner.outer in 0..4
                    unrolled reduce ic.inner.inner.inner in 0..2
                      unrolled oh in 0..1
                        unrolled ow in 0..4
                          if ow.outer*4 + ow + kw >= 1 && ow.outer*4 + ow + kw < 8
                            unrolled oc.outer in 0..2
                              vectorized oc.inner in 0..8
                                acc[0, 0, ow, oc.outer*8 + oc.inner] += data[0, ic.outer, n.oc.outer.oh.outer.fused + kh - 1, ow.outer*4 + ow + kw - 1, ic.inner.inner.outer*2 + ic.inner.inner.inner] * weight.packed[0, ic.outer, kh, kw, ic.inner.inner.outer*2 + ic.inner.inner.inner, oc.outer*8 + oc.inner]
      unrolled oh.inner in 0..1
        unrolled oc.inner.outer in 0..2
          vector_rows oc.inner.inner in 0..8
            vectorized ow.inner in 0..4
              if ow.outer*4 + ow.inner < 7
                out[0, oc.inner.outer*8 + oc.inner.inner, n.oc.outer.oh.outer.fused, ow.outer*4 + ow.inner] = max(acc[0, 0, ow.inner, oc.inner.outer*8 + oc.inner.inner] + bias[oc.inner.outer*8 + oc.inner.inner], 0)
packing conv2d_pack(constant weight float32[16, 16, 3, 3], packed weight.packed float32[1, 2, 3, 3, 8, 16])
  for p0 in 0..1
    for p1 in 0..2
      for p2 in 0..3
        for p3 in 0..3
          for p4 in 0..8
            for p5 in 0..16
              weight.packed[p0, p1, p2, p3, p4, p5] = weight[p0*16 + p5, p1*8 + p4, p2, p3]
)");
}

TEST(Conv2dDirectCpu, DefaultIsValidForAnyShape) {
  for (const Target& t : {cpu(128, 16), cpu(256, 16), cpu(512, 32)})
    for (const int64_t size : {1, 5, 7, 56, 224})
      for (const int64_t oc : {1, 5, 16, 512})
        for (const int64_t ic : {1, 3, 64})
          for (const int64_t kernel : {1, 3, 7, 11}) {
            const auto instance =
                conv2d_direct_cpu().apply(conv(ic, size, size, oc, kernel, kernel, 1, kernel / 2, 1), t);
            ASSERT_TRUE(instance.is_ok()) << instance.message();
            EXPECT_GE((*instance)->space().size(), 1u);
          }
}

TEST(Conv2dDirectCpu, RandomConfigsOnOddShapes) {
  const Conv2dWorkload shapes[] = {
      conv(3, 17, 19, 5, 2, 2, 3, 2, 2),  conv(1, 1, 1, 1, 1, 1, 1, 0, 1),  conv(4, 7, 7, 33, 3, 3, 1, 1, 1),
      conv(6, 5, 9, 20, 1, 1, 1, 0, 1),   conv(8, 6, 5, 17, 1, 1, 2, 0, 1), conv(2, 9, 8, 3, 5, 3, 2, 1, 1),
      conv(3, 10, 18, 16, 7, 7, 2, 3, 1), conv(2, 6, 7, 8, 3, 3, 1, 2, 2),
  };
  for (const auto& w : shapes) {
    expect_configs_right(conv2d_direct_cpu(), w, cpu(256, 16), 8, 1);
    expect_configs_right(conv2d_direct_cpu(), w, cpu(512, 32), 8, 2);
    expect_configs_right(conv2d_direct_cpu(), w, cpu(512, 32, /*threads=*/2), 8, 3);
  }
}

TEST(Conv2dDirectCpu, EveryLayoutInAndOut) {
  uint64_t seed = 0;
  for (const char* layout : {"NCHW", "NHWC", "NCHW4c", "NCHW8c", "NCHW16c"})
    for (const char* out_layout : {"NCHW", "NHWC", "NCHW4c", "NCHW8c", "NCHW16c"}) {
      Conv2dWorkload w = conv(16, 4, 9, 16, 3, 3, 1, 1, 1);
      w.layout = layout;
      w.out_layout = out_layout;
      w.bias = w.residual = true;
      for (const Target& t : {cpu(128, 16), cpu(256, 16, /*threads=*/2), cpu(512, 32)})
        expect_configs_right(conv2d_direct_cpu(), w, t, 3, ++seed);
    }
}

TEST(Conv2dDirectCpu, GroupsOfManyAndOfFewChannels) {
  struct Groups {
    int64_t groups, ic, oc;
    const char* layout;
  };
  for (const Groups& g : {Groups{2, 6, 10, "NCHW"}, Groups{4, 4, 12, "NCHW"}, Groups{4, 12, 20, "NHWC"},
                          Groups{2, 34, 36, "NHWC"}, Groups{2, 32, 64, "NCHW16c"},
                          Groups{8, 32, 32, "NCHW16c"}, Groups{4, 16, 48, "NCHW8c"}}) {
    Conv2dWorkload w = conv(g.ic, 5, 6, g.oc, 3, 3, 1, 1, 1);
    w.groups = g.groups;
    w.layout = w.out_layout = g.layout;
    expect_configs_right(conv2d_direct_cpu(), w, cpu(512, 32), 5, static_cast<uint64_t>(g.groups));
    expect_configs_right(conv2d_direct_cpu(), w, cpu(256, 16, /*threads=*/2), 5, static_cast<uint64_t>(g.oc));
  }
}

TEST(Conv2dDirectCpu, EveryForm) {
  for (int form = 0; form < 64; ++form) {
    Conv2dWorkload w = conv(4, 6, 7, 18, 3, 2, 1, 0, 1);
    if ((form & 1) != 0) w.padding = {0, 2, 1, 0};  // one side each
    w.bias = (form & 2) != 0;
    w.activation = (form & 4) != 0 ? Activation::kRelu : Activation::kNone;
    if ((form & 8) != 0) w.constant = {};
    w.batch = (form & 16) != 0 ? 2 : 1;
    w.residual = (form & 32) != 0;
    w.stride = {1 + form % 3, 1 + form % 2};
    expect_configs_right(conv2d_direct_cpu(), w, cpu(256, 16, 1 + form % 2), 3, static_cast<uint64_t>(form));
  }
}

}  // namespace
}  // namespace tuner
