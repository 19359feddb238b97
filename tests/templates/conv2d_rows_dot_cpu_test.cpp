// conv2d_rows_dot_cpu: when it applies, its loops, and random configs on odd shapes against the oracle,
// interpreted and compiled.
#include <gmock/gmock.h>

#include "templates/registry/registry.h"
#include "tests/templates/compiled_template_check.h"
#include "tests/templates/typed_conv2d.h"

namespace tuner {
namespace {

using testing::conv;
using testing::Types;

constexpr Types kBytes[] = {{DType::kInt8}, {DType::kInt8, DType::kUInt8}, {DType::kInt8, DType::kInt8}};

void expect_compiled_right(const Conv2dWorkload& w, int threads, int samples, uint32_t seed) {
  std::vector<Target> all = hosts(threads);
  // Masks, but neither dot products nor permutations of bytes.
  const Target wide = *parse_target(str("llvm -mcpu=x86-64-v4 -threads=", threads));
  if (runs_here(wide)) all.push_back(wide);
  for (const Target& t : all)
    if (conv2d_rows_dot_cpu().supports(w, t).yes)
      expect_code_right(conv2d_rows_dot_cpu(), w, t, samples, seed);
}

TEST(Conv2dRowsDotCpu, DeclinesWithTheReason) {
  const auto reason = [](const Conv2dWorkload& w) {
    return conv2d_rows_dot_cpu().supports(w, cpu(512, 32)).reason;
  };
  Conv2dWorkload w = conv({DType::kInt8}, 3, 20, 20, 16, 7, 2, 3);
  EXPECT_TRUE(conv2d_rows_dot_cpu().supports(w, cpu(512, 32)).yes);
  w.layout = "NCHW4c";
  EXPECT_EQ(reason(w), "needs layout NCHW, got NCHW4c");
  w.layout = "NCHW";
  w.out_layout = "NCHW8c";
  EXPECT_EQ(reason(w), "needs whole vectors of 16 channels, got out_layout NCHW8c");
  w = conv({DType::kBFloat16}, 3, 20, 20, 16, 7, 2, 3);
  EXPECT_EQ(reason(w), "needs int8, got bfloat16");
  w = conv({DType::kInt8}, 4, 20, 20, 16, 7);
  EXPECT_EQ(reason(w), "needs fewer dot products along a row than along channels, got 8 and 7");
  w.groups = 2;
  EXPECT_EQ(reason(w), "needs groups = 1, got 2");
  w = conv({DType::kInt8}, 3, 20, 20, 16, 7);
  w.dilation = {1, 2};
  EXPECT_EQ(reason(w), "needs taps side by side, got dilation 2");
}

// It is the default where it saves dot products; 3x3 windows of 3 channels take 9 either way.
TEST(Conv2dRowsDotCpu, IsTheDefaultWhereItSavesWork) {
  const auto first = [](int64_t kernel) {
    return (*templates_for(conv({DType::kInt8}, 3, 20, 20, 16, kernel), cpu(512, 32))).front()->name();
  };
  EXPECT_EQ(first(7), "conv2d_rows_dot_cpu");
  EXPECT_EQ(first(3), "conv2d_direct_cpu");
  EXPECT_TRUE(conv2d_rows_dot_cpu().supports(conv({DType::kInt8}, 3, 20, 20, 16, 3), cpu(512, 32)).as_second);
}

TEST(Conv2dRowsDotCpu, LoopsOfOneConfig) {
  const Conv2dWorkload w = conv({DType::kInt8}, 3, 14, 14, 32, 7, 2, 3);
  const auto instance = conv2d_rows_dot_cpu().apply(w, cpu(512, 32));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(*config_from_text("tile_oc=32 tile_ow=7"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const std::string text = to_text(*program);
  EXPECT_THAT(text, ::testing::HasSubstr(R"(
              reduce ic in 0..3
                reduce kh in 0..7
                  unrolled reduce kw.outer in 0..2
                    unrolled ow in 0..7
                      unrolled oc.outer_1 in 0..2
                        vectorized oc.inner in 0..16
                          dot reduce kw.inner in 0..4
                            acc[0, 0, ow, oc.outer_1*16 + oc.inner] += int32(padded[0, ic, oh*2 + kh, ow*2 + kw.outer*4 + kw.inner])*int32(filled_weight.packed[0, ic, kh, kw.outer, oc.outer_1*16 + oc.inner, kw.inner])
)"));
}

TEST(Conv2dRowsDotCpu, RandomConfigsOnOddShapes) {
  uint32_t seed = 0;
  for (const Types& types : kBytes)
    for (const Conv2dWorkload& w : {conv(types, 3, 17, 19, 5, 7, 2, 3), conv(types, 1, 1, 1, 1, 3, 1, 1),
                                    conv(types, 3, 9, 21, 33, 3, 1, 1), conv(types, 1, 11, 70, 40, 5, 1, 2),
                                    conv(types, 2, 12, 35, 16, 7, 3, 2), conv(types, 3, 18, 17, 64, 8, 1, 0),
                                    conv(types, 1, 6, 90, 20, 11, 4, 5)}) {
      const int threads = 1 + static_cast<int>(++seed % 2);
      for (const Target& t : {cpu(256, 16), cpu(512, 32, threads)})
        expect_configs_right(conv2d_rows_dot_cpu(), w, t, 2, seed);
      expect_compiled_right(w, threads, 2, seed);
    }
}

TEST(Conv2dRowsDotCpu, EveryForm) {
  for (const Types& types : kBytes)
    for (int form = 0; form < 64; ++form) {
      Conv2dWorkload w = conv(types, 1 + form % 3, 10, 9, 32, 7, 1 + form % 2);
      if ((form & 1) != 0) w.padding = {0, 2, 1, 0};  // one side each
      w.bias = (form & 2) != 0;
      w.residual = (form & 4) != 0;
      if ((form & 8) != 0) w.constant.clear();
      if (form % 5 == 0) w.constant = {"data", "weight"};
      if ((form & 16) != 0) w.activation = Activation::kRelu;
      if ((form & 32) != 0) w.out_layout = "NCHW16c";
      w.batch = 1 + form / 2 % 2;
      if (form % 7 == 0) w.kernel_height = 3, w.dilation = {2, 1};
      const auto seed = static_cast<uint32_t>(form);
      expect_configs_right(conv2d_rows_dot_cpu(), w, cpu(256, 16, 1 + form % 2), 1, seed);
      if (form % 3 == 0) expect_compiled_right(w, 1 + form / 4 % 2, 1, seed);
    }
}

}  // namespace
}  // namespace tuner
