// The Winograd templates: what they serve, their loops, and random configs against the direct sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

const std::vector<const AnyTemplate*>& winograd_templates() {
  static const std::vector<const AnyTemplate*> all = {&conv2d_winograd2_cpu(), &conv2d_winograd2x4_cpu(),
                                                      &conv2d_winograd4_cpu(), &conv2d_winograd5_cpu(),
                                                      &conv2d_winograd6_cpu()};
  return all;
}

Conv2dWorkload layer(int64_t channels, int64_t height, int64_t width, int64_t out_channels,
                     int64_t padding = 1) {
  return {.in_channels = channels,
          .in_height = height,
          .in_width = width,
          .out_channels = out_channels,
          .kernel_height = 3,
          .kernel_width = 3,
          .padding = {padding, padding, padding, padding},
          .constant = {"weight"}};
}

TEST(Conv2dWinogradCpu, SaysWhatItDeclines) {
  const AnyTemplate& t = conv2d_winograd4_cpu();
  const auto reason = [&](const Conv2dWorkload& w) { return t.supports(w, cpu(512, 32)).reason; };
  Conv2dWorkload w = layer(16, 8, 8, 16);
  EXPECT_TRUE(t.supports(w, cpu(512, 32)).yes);
  EXPECT_EQ(t.algorithm(), "winograd");
  w.stride = {1, 2};
  EXPECT_EQ(reason(w), "needs stride 1, got [1, 2]");
  w = layer(16, 8, 8, 16);
  w.dilation = {2, 1};
  EXPECT_EQ(reason(w), "needs dilation 1, got [2, 1]");
  w = layer(16, 8, 8, 16);
  w.groups = 2;
  EXPECT_EQ(reason(w), "needs groups = 1, got 2");
  w = layer(16, 8, 8, 16);
  w.kernel_width = 1;
  EXPECT_EQ(reason(w), "needs a kernel of 3x3, got 3x1");
  w = layer(16, 8, 8, 16);
  w.constant = {};
  EXPECT_EQ(reason(w), "needs a constant weight, to transform it ahead");
}

TEST(Conv2dWinogradCpu, GroupsOfTilesAskForTheNextPanel) {
  const auto instance = conv2d_winograd4_cpu().apply(layer(16, 14, 14, 64), cpu(512, 32));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(*config_from_text(
      "data_ahead=0 group=8 next_panel=1 oc_share=1 order=0 tile_rows=4 unroll_ic=1 vectors=2"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_THAT(to_text(*program), ::testing::HasSubstr("prefetch.l2(u.packed[xi, nu, ocb.outer + 1, "));
}

TEST(Conv2dWinogradCpu, IsLeftOutWhereItsAlgorithmIsNotAllowed) {
  const Conv2dWorkload w = layer(16, 8, 8, 16);
  const auto direct = templates_for(w, cpu(512, 32), "direct");
  ASSERT_TRUE(direct.is_ok()) << direct.message();
  for (const AnyTemplate* t : *direct) EXPECT_EQ(t->algorithm(), "direct");
  EXPECT_EQ(templates_for(w, cpu(512, 32), "winograd")->size(), 5u);
  EXPECT_EQ(
      templates_of("winograd"),
      (std::vector<std::string>{"conv2d_winograd2_cpu", "conv2d_winograd2x4_cpu", "conv2d_winograd4_cpu",
                                "conv2d_winograd5_cpu", "conv2d_winograd6_cpu"}));
  EXPECT_NE(templates_for(MatmulWorkload{}, cpu(512, 32), "winograd")
                .message()
                .find("matmul_cpu: its algorithm is direct, allowed is winograd"),
            std::string::npos);
}

TEST(Conv2dWinogradCpu, DeclinesWhatItWouldRoundTooFarOff) {
  EXPECT_EQ(conv2d_winograd6_cpu().supports(layer(2048, 7, 7, 16), cpu(512, 32)).reason,
            "F(6, 3) over 2048 channels may err by 0.000177658 of the largest output, allowed are 0.000119");
  EXPECT_TRUE(conv2d_winograd4_cpu().supports(layer(1024, 7, 7, 16), cpu(512, 32)).yes);
}

// Every size must have a valid default, also where a block holds few tiles.
TEST(Conv2dWinogradCpu, EachThreadHasABlockOfTileRowsOrOfChannels) {
  for (const int64_t size : {7, 14, 28, 56}) {
    const Conv2dWorkload w = layer(64, size, size, 64);
    const std::pair<const AnyTemplate*, int64_t> templates[] = {{&conv2d_winograd2_cpu(), 2},
                                                                {&conv2d_winograd2x4_cpu(), 2},
                                                                {&conv2d_winograd4_cpu(), 4},
                                                                {&conv2d_winograd5_cpu(), 5},
                                                                {&conv2d_winograd6_cpu(), 6}};
    for (const auto& [winograd, m] : templates) {
      const auto instance = winograd->apply(w, cpu(512, 32, 2));
      ASSERT_TRUE(instance.is_ok()) << instance.message();
      const ConfigSpace& space = (*instance)->space();
      const int64_t rows = (size + m - 1) / m;
      std::mt19937_64 random(1);
      for (int i = 0; i < 20; ++i) {
        const Config config = space.at(i == 0 ? space.first_index() : space.sample(random));
        EXPECT_GE(rows / config.at("tile_rows") * (config.at("data_ahead") ? config.at("oc_share") : 1), 2)
            << winograd->name() << " " << size << ": " << config.to_text();
      }
    }
  }
}

TEST(Conv2dWinogradCpu, ManyThreadsShareTheChannelsOfASmallImage) {
  const auto instance = conv2d_winograd2x4_cpu().apply(layer(16, 7, 7, 512), cpu(512, 32, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Config first = (*instance)->space().at((*instance)->space().first_index());
  EXPECT_EQ(first.at("data_ahead"), 1);
  EXPECT_EQ(first.at("tile_rows"), 4);  // every weight is read once
  EXPECT_EQ(first.at("oc_share"), 16);
  const auto program = (*instance)->instantiate(first);
  ASSERT_TRUE(program.is_ok()) << program.message();
  EXPECT_THAT(to_text(*program),
              ::testing::ContainsRegex("parallel n.oc.outer.outer.oh.outer.outer.fused in 0..16"));
}

// apply() fails where the default is not valid.
TEST(Conv2dWinogradCpu, AnyImageAndAnyThreadsHaveAValidDefault) {
  for (const AnyTemplate* t : winograd_templates())
    for (const Target& target : {cpu(512, 32, 2), cpu(512, 32, 8), cpu(256, 16, 64), cpu(128, 32, 3)})
      for (const int64_t channels : {16, 32, 512})
        for (const auto& [height, width] :
             {std::pair(16, 2), std::pair(2, 16), std::pair(1, 1), std::pair(40, 3)}) {
          const Conv2dWorkload w = layer(16, height, width, channels);
          const auto instance = t->apply(w, target);
          EXPECT_TRUE(instance.is_ok())
              << instance.message() << "; " << Workload(w).key() << ", " << target.name();
        }
}

TEST(Conv2dWinogradCpu, PlainImagesOfAnySize) {
  uint64_t seed = 1;
  for (const AnyTemplate* t : winograd_templates())
    for (const auto& [height, width] : {std::pair(4, 4), std::pair(7, 5), std::pair(3, 9), std::pair(8, 13)})
      expect_configs_right(*t, layer(3, height, width, 5), cpu(512, 32), 2, seed++);
}

TEST(Conv2dWinogradCpu, BlockedImagesInAndOut) {
  uint64_t seed = 100;
  for (const AnyTemplate* t : winograd_templates())
    for (const auto& [in, out] :
         {std::pair("NCHW16c", "NCHW16c"), std::pair("NCHW", "NCHW16c"), std::pair("NCHW8c", "NCHW"),
          std::pair("NHWC", "NHWC"), std::pair("NHWC", "NCHW8c"), std::pair("NCHW", "NHWC")}) {
      Conv2dWorkload w = layer(32, 7, 6, 16);
      w.layout = in;
      w.out_layout = out;
      expect_configs_right(*t, w, cpu(512, 32), 2, seed++);
    }
}

TEST(Conv2dWinogradCpu, ChannelsInnermostThatFillNoBlock) {
  uint64_t seed = 150;
  for (const AnyTemplate* t : winograd_templates()) {
    Conv2dWorkload w = layer(5, 7, 6, 21);
    w.layout = w.out_layout = "NHWC";
    w.bias = w.residual = true;
    expect_configs_right(*t, w, cpu(512, 32), 2, seed++);
    expect_configs_right(*t, w, cpu(256, 16, 2), 2, seed++);
  }
}

TEST(Conv2dWinogradCpu, PaddingsBatchesAndEpilogues) {
  uint64_t seed = 200;
  for (const AnyTemplate* t : winograd_templates()) {
    Conv2dWorkload w = layer(5, 6, 7, 18, 0);
    w.bias = true;
    w.activation = Activation::kRelu;
    expect_configs_right(*t, w, cpu(256, 16), 2, seed++);
    w = layer(5, 6, 7, 18, 2);
    w.batch = 2;
    w.residual = true;
    expect_configs_right(*t, w, cpu(512, 32, 2), 2, seed++);
    w.padding = {0, 1, 2, 0};
    w.constant = {"bias", "weight"};
    w.bias = true;
    expect_configs_right(*t, w, cpu(128, 32), 2, seed++);
  }
}

TEST(Conv2dWinogradCpu, DataAhead) {
  uint64_t seed = 300;
  for (const AnyTemplate* t : winograd_templates())
    for (const auto& [in, out] :
         {std::pair("NCHW", "NCHW"), std::pair("NCHW16c", "NCHW8c"), std::pair("NHWC", "NHWC")}) {
      Conv2dWorkload w = layer(16, 6, 7, 32);
      w.batch = 2;
      w.layout = in;
      w.out_layout = out;
      expect_configs_right(*t, w, cpu(512, 32, 4), 2, seed++, "data_ahead");
    }
}

// An error arrives behind the activation times its slope, at most 1.5 of hard_swish.
TEST(Conv2dWinogradCpu, AnActivationWidensTheToleranceByItsSlope) {
  Conv2dWorkload w = layer(64, 28, 28, 64);
  for (const AnyTemplate* t : winograd_templates()) {
    w.activation = Activation::kNone;
    const Tolerance plain = t->tolerance(w);
    EXPECT_GT(plain.absolute, 0);
    for (const auto& [activation, slope] : {std::pair{Activation(Activation::kRelu), 1.0},
                                            {Activation(Activation::kSilu), 1.1},
                                            {Activation(Activation::kHardSwish), 1.5},
                                            {Activation(Activation::kSigmoid), 1.0}}) {
      w.activation = activation;
      EXPECT_DOUBLE_EQ(t->tolerance(w).absolute, slope * plain.absolute) << t->name();
      EXPECT_EQ(t->tolerance(w).relative, plain.relative);
    }
  }
}

}  // namespace
}  // namespace tuner
