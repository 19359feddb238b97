// Convolutions of bfloat16 and int8 (conv2d_direct_cpu, conv2d_1x1_channels_cpu, depthwise_conv2d_cpu): what
// they decline, their loops, and random configs on odd shapes, interpreted and compiled.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/compiled_template_check.h"
#include "tests/templates/typed_conv2d.h"

namespace tuner {
namespace {

using testing::conv;
using testing::kTypes;
using testing::Types;

TEST(Conv2dDotCpu, DeclinesWithTheReason) {
  Conv2dWorkload w = conv({DType::kInt8}, 12, 5, 5, 12, 3);
  const auto reason = [&] { return conv2d_direct_cpu().supports(w, cpu(256, 16)).reason; };
  w.groups = 6;
  EXPECT_EQ(reason(), "needs a multiple of 4 int8 channels in a group, got 2");
  w.dtype = DType::kBFloat16;
  EXPECT_EQ(reason(), "");
  w.dtype = DType::kFloat16;
  EXPECT_EQ(reason(), "needs float32, bfloat16 or int8, got float16");
  w = conv({DType::kFloat16}, 4, 5, 5, 4, 1);
  EXPECT_EQ(conv2d_1x1_channels_cpu().supports(w, cpu(256, 16)).reason,
            "needs float32, bfloat16 or int8, got float16");
  w.dtype = DType::kInt8;
  EXPECT_EQ(conv2d_1x1_pixels_cpu().supports(w, cpu(256, 16)).reason, "needs float32 or bfloat16, got int8");
}

const AnyTemplate* const kTemplates[] = {&conv2d_direct_cpu(), &conv2d_1x1_channels_cpu(),
                                         &depthwise_conv2d_cpu()};

// The default and `samples` random configs of every template that serves it.
void expect_all_right(const Conv2dWorkload& w, const Target& target, int samples, uint32_t seed) {
  bool served = false;
  for (const AnyTemplate* t : kTemplates) {
    if (!t->supports(w, target).yes) continue;
    served = true;
    expect_configs_right(*t, w, target, samples, seed);
  }
  EXPECT_TRUE(served) << Workload(w).key();
}
void expect_all_code_right(const Conv2dWorkload& w, const Target& target, int samples, uint32_t seed) {
  for (const AnyTemplate* t : kTemplates)
    if (t->supports(w, target).yes) expect_code_right(*t, w, target, samples, seed);
}

std::vector<Conv2dWorkload> odd_shapes(const Types& types) {
  return {conv(types, 3, 17, 9, 5, 2, 3, 2), conv(types, 1, 1, 1, 1, 1),
          conv(types, 6, 7, 7, 33, 3, 1, 1), conv(types, 9, 5, 8, 20, 1),
          conv(types, 10, 6, 5, 17, 1, 2),   conv(types, 3, 10, 18, 16, 7, 2, 3),
          conv(types, 8, 3, 29, 40, 1),      conv(types, 13, 9, 8, 3, 3, 2, 1)};
}

TEST(Conv2dDotCpu, RandomConfigsOnOddShapes) {
  for (const Types& types : kTypes)
    for (const Conv2dWorkload& w : odd_shapes(types)) {
      expect_all_right(w, cpu(256, 16), 3, 1);
      expect_all_right(w, cpu(512, 32), 3, 2);
      expect_all_right(w, cpu(512, 32, /*threads=*/2), 3, 3);
    }
}

TEST(Conv2dDotCpu, EveryLayoutInAndOut) {
  uint32_t seed = 0;
  for (const Types& types : kTypes)
    for (const char* in : {"NCHW", "NHWC", "NCHW4c", "NCHW16c"})
      for (const char* out : {"NCHW", "NHWC", "NCHW8c", "NCHW16c"})
        for (const int64_t kernel : {1, 3}) {
          Conv2dWorkload w = conv(types, 32, 5, 7, 48, kernel, 1 + seed % 2, kernel / 2);
          w.layout = in;
          w.out_layout = out;
          w.bias = true;
          w.residual = true;
          w.activation = Activation::kRelu;
          expect_all_right(w, cpu(256, 16), 1, ++seed);
          const std::vector<Target> all = hosts(1);
          expect_all_code_right(w, all[seed % all.size()], 1, seed);
        }
}

// Strips of 16 pixels across rows: three of 48, of long and of short rows; 196 and 49 pixels leave a rest.
TEST(Conv2dDotCpu, PixelsAreWovenAcrossRows) {
  uint32_t seed = 40;
  for (const Types& types : kTypes)
    for (const auto& [channels, height, width, kernel] : {std::array<int64_t, 4>{16, 2, 24, 1},
                                                          {16, 2, 24, 3},
                                                          {8, 4, 12, 1},
                                                          {7, 14, 14, 3},
                                                          {9, 7, 7, 1}}) {
      const Conv2dWorkload w = conv(types, channels, height, width, 24, kernel, 1, kernel / 2);
      expect_all_right(w, cpu(512, 32), 1, ++seed);
      for (const int threads : {1, 2})
        for (const Target& t : hosts(threads)) expect_all_code_right(w, t, 1, seed);
    }
}

// Groups of channels that are not whole: of 3, of 5 and of 17 channels.
TEST(Conv2dDotCpu, ChannelsInnermostAreFilledUp) {
  uint32_t seed = 70;
  for (const Types& types : kTypes)
    for (const int64_t channels : {3, 5, 17})
      for (const auto& [in, out] : {std::pair("NHWC", "NHWC"), std::pair("NHWC", "NCHW")}) {
        Conv2dWorkload w = conv(types, channels, 6, 7, 19, 3, 1 + seed % 2, 1);
        w.layout = in;
        w.out_layout = out;
        ++seed;
        expect_all_right(w, cpu(512, 32, 1 + seed % 2), 2, seed);
        const std::vector<Target> all = hosts(1);
        expect_all_code_right(w, all[seed % all.size()], 2, seed);
      }
}

TEST(Conv2dDotCpu, GroupsOfChannels) {
  for (const Types& types : kTypes)
    for (const char* layout : {"NCHW", "NHWC", "NCHW16c"}) {
      Conv2dWorkload w = conv(types, 32, 5, 7, 48, 3, 1, 1);
      w.groups = 4;
      w.layout = w.out_layout = layout;
      expect_all_right(w, cpu(512, 32), 3, 7);
      expect_all_code_right(w, host_target(2), 2, 8);
    }
}

TEST(Conv2dDotCpu, EachChannelByItself) {
  uint32_t seed = 0;
  for (const Types& types : kTypes)
    for (const char* layout : {"NCHW", "NHWC", "NCHW8c", "NCHW16c"})
      for (const int64_t stride : {1, 2}) {
        Conv2dWorkload w = conv(types, 32, 7, 19, 32, 3, stride, 1);
        w.groups = 32;
        w.layout = w.out_layout = layout;
        w.bias = true;
        w.residual = true;
        expect_all_right(w, cpu(512, 32, 1 + stride % 2), 2, ++seed);
        const std::vector<Target> all = hosts(1);
        expect_all_code_right(w, all[seed % all.size()], 2, seed);
      }
}

TEST(Conv2dDotCpu, EveryForm) {
  for (const Types& types : kTypes)
    for (int form = 0; form < 32; ++form) {
      Conv2dWorkload w = conv(types, 5, 6, 7, 11, 1 + form % 3, 1, form % 2);
      w.batch = 1 + form % 2;
      w.dilation = {1 + form / 2 % 2, 1};
      w.constant.clear();
      if ((form & 4) != 0) w.constant.emplace_back("data");
      if ((form & 8) != 0) w.constant.emplace_back("weight");
      w.bias = (form & 16) != 0;
      w.residual = w.bias;
      expect_all_right(w, cpu(256, 16, 1 + form / 2 % 2), 1, static_cast<uint32_t>(form));
    }
}

TEST(Conv2dDotCpu, CompiledConfigsOnOddShapes) {
  for (const Types& types : kTypes)
    for (const Conv2dWorkload& w : odd_shapes(types))
      for (const Target& t : hosts(1 + w.in_channels % 2)) expect_all_code_right(w, t, 3, 5);
}

// An infinite pixel is in the sums of its windows and in no other; pixels below the normal range are as small
// as 0.
TEST(Conv2dDotCpu, DenormalsAndInfinities) {
  for (const int64_t kernel : {1, 3}) {
    const Conv2dWorkload w = conv({DType::kBFloat16}, 6, 7, 9, 37, kernel);
    const Program math = Workload(w).compute();
    auto expected = testing::random_args(math, 3);
    for (size_t i = 0; i < expected[0].size(); i += 4) expected[0][i] = i % 8 == 0 ? 0x1p-130 : -0x1p-133;
    expected[0][2 * 63 + 4 * 9 + 5] = -INFINITY;
    ASSERT_TRUE(interpret(math, expected).is_ok());
    const auto infinite = std::ranges::count_if(expected.back(), [](double x) { return std::isinf(x); });
    EXPECT_EQ(infinite, 37 * kernel * kernel);
    for (const AnyTemplate* each : {&conv2d_direct_cpu(), &conv2d_1x1_channels_cpu()})
      for (const Target& t : hosts(1)) {
        if (!each->supports(w, t).yes) continue;
        const auto instance = each->apply(w, t);
        ASSERT_TRUE(instance.is_ok()) << instance.message();
        const ConfigSpace& space = (*instance)->space();
        const auto program = (*instance)->instantiate(space.at(space.first_index()));
        ASSERT_TRUE(program.is_ok()) << program.message();
        auto found = expected;
        found.back().clear();
        ASSERT_TRUE(testing::run_compiled(*program, found, t, 1).is_ok());
        for (size_t e = 0; e < expected.back().size(); ++e)
          if (std::isinf(expected.back()[e]))
            ASSERT_EQ(found.back()[e], expected.back()[e])
                << each->name() << " out[" << e << "] on " << t.name();
          else
            ASSERT_NEAR(found.back()[e], expected.back()[e], tolerance_of(w).absolute)
                << each->name() << " out[" << e << "] on " << t.name();
      }
  }
}

TEST(Conv2dDotCpu, DefaultIsValidForAnyShape) {
  for (const Types& types : kTypes)
    for (const Target& t : {cpu(128, 16), cpu(256, 16), cpu(512, 32)})
      for (const int64_t size : {1, 7, 56})
        for (const int64_t oc : {1, 16, 100})
          for (const int64_t ic : {1, 3, 64, 2048})
            for (const int64_t kernel : {1, 3}) {
              const Conv2dWorkload w = conv(types, ic, size, size, oc, kernel, 1, kernel / 2);
              for (const AnyTemplate* each : {&conv2d_direct_cpu(), &conv2d_1x1_channels_cpu()})
                if (each->supports(w, t).yes) {
                  const auto instance = each->apply(w, t);
                  ASSERT_TRUE(instance.is_ok()) << instance.message();
                }
            }
}

}  // namespace
}  // namespace tuner
