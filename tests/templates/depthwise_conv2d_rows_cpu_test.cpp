// depthwise_conv2d_rows_cpu: when it applies, its loops, and random configs on odd shapes against the oracle.
#include <gtest/gtest.h>

#include <regex>

#include "templates/registry/registry.h"
#include "tests/templates/template_check.h"

namespace tuner {
namespace {

Conv2dWorkload depthwise(int64_t channels, int64_t height, int64_t width, int64_t kernel, int64_t stride,
                         int64_t padding, int64_t dilation = 1) {
  Conv2dWorkload w;
  w.in_channels = w.out_channels = w.groups = channels;
  w.in_height = height;
  w.in_width = width;
  w.kernel_height = w.kernel_width = kernel;
  w.stride = {stride, stride};
  w.padding = {padding, padding, padding, padding};
  w.dilation = {dilation, dilation};
  w.constant = {"weight"};
  return w;
}

TEST(DepthwiseConv2dRowsCpu, DeclinesWithTheReason) {
  const auto reason = [](const Conv2dWorkload& w) {
    return depthwise_conv2d_rows_cpu().supports(w, cpu(256, 16)).reason;
  };
  const Conv2dWorkload served = depthwise(4, 5, 5, 3, 1, 1);
  const Support support = depthwise_conv2d_rows_cpu().supports(served, cpu(256, 16));
  EXPECT_TRUE(support.yes && support.as_second);
  const Support large = depthwise_conv2d_rows_cpu().supports(depthwise(4, 9, 9, 5, 1, 2), cpu(256, 16));
  EXPECT_TRUE(large.yes && !large.as_second);
  Conv2dWorkload w = served;
  w.groups = 2;
  EXPECT_EQ(reason(w), "needs one channel in and out of each group, got 4 and 4 in 2 groups");
  w = served;
  w.layout = "NCHW4c";
  EXPECT_EQ(reason(w), "needs layout NCHW, got NCHW4c");
  w = served;
  w.out_layout = "NHWC";
  EXPECT_EQ(reason(w), "does not serve out_layout NHWC yet");
  w = served;
  w.dtype = DType::kFloat16;
  EXPECT_EQ(reason(w), "needs float32, bfloat16 or int8, got float16");
  EXPECT_EQ(reason(depthwise(4, 9, 9, 2, 2, 0)),
            "needs windows that share rows, got 2 rows each and a stride of 2 in an output of 4");
  EXPECT_EQ(reason(depthwise(4, 3, 9, 3, 1, 0)),
            "needs windows that share rows, got 3 rows each and a stride of 1 in an output of 1");
  EXPECT_EQ(reason(depthwise(1, 40, 40, 17, 1, 0)), "needs windows of at most 16 rows, got 17");
}

// Row 1 of the image serves both rows of the tile, and is read once.
TEST(DepthwiseConv2dRowsCpu, LoopsOfOneConfig) {
  const auto instance = depthwise_conv2d_rows_cpu().apply(depthwise(2, 3, 10, 2, 1, 0), cpu(256, 16));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(*config_from_text("copy=0 tile_oh=2 tile_ow=12 unroll_kw=0"));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const Result<Program> lowered = lower(*program, 1000);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  EXPECT_EQ("\n" + to_text(lowered->body), R"(
for n in 0..1
  for oc in 0..2
    for oh.outer in 0..1
      for ow.outer in 0..1
        allocate acc float32[1, 2, 9, 1] register
        for n_1 in 0..1
          for oc.init in 0..1
            vectorized ow.init in 0..9
              acc[0, 0, ow.init, 0] = 0
          for oc.init in 0..1
            vectorized ow.init in 0..9
              acc[0, 1, ow.init, 0] = 0
          reduce ic in 0..1
            reduce kw in 0..2
              for oc_1 in 0..1
                vectorized ow in 0..9
                  acc[0, 0, ow, 0] = acc[0, 0, ow, 0] + data[0, oc, 0, ow + kw] * weight[oc, 0, 0, kw]
              for oc_1 in 0..1
                vectorized ow in 0..9
                  acc[0, 0, ow, 0] = acc[0, 0, ow, 0] + data[0, oc, 1, ow + kw] * weight[oc, 0, 1, kw]
              for oc_1 in 0..1
                vectorized ow in 0..9
                  acc[0, 1, ow, 0] = acc[0, 1, ow, 0] + data[0, oc, 1, ow + kw] * weight[oc, 0, 0, kw]
              for oc_1 in 0..1
                vectorized ow in 0..9
                  acc[0, 1, ow, 0] = acc[0, 1, ow, 0] + data[0, oc, 2, ow + kw] * weight[oc, 0, 1, kw]
        vectorized ow.inner in 0..12
          if ow.inner < 9
            out[0, oc, 0, ow.inner] = acc[0, 0, ow.inner, 0]
        vectorized ow.inner in 0..12
          if ow.inner < 9
            out[0, oc, 1, ow.inner] = acc[0, 1, ow.inner, 0]
)");
}

std::string lowered_text(const Conv2dWorkload& w, const char* config) {
  const auto instance = depthwise_conv2d_rows_cpu().apply(w, cpu(256, 16));
  EXPECT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate(*config_from_text(config));
  EXPECT_TRUE(program.is_ok()) << program.message();
  const Result<Program> lowered = lower(*program, 1000);
  EXPECT_TRUE(lowered.is_ok()) << lowered.message();
  return to_text(lowered->body);
}

// Everything that reads a row stands together, also where taps are two rows apart and columns are not.
TEST(DepthwiseConv2dRowsCpu, RowsAreReadOneAfterTheOther) {
  Conv2dWorkload w = depthwise(1, 12, 10, 3, 1, 0);
  w.dilation = {2, 1};
  const std::string text = lowered_text(w, "copy=0 tile_oh=4 tile_ow=8 unroll_kw=0");
  std::vector<int> rows;
  constexpr std::string_view kRead = " + data[0, 0, oh.outer*4";
  for (size_t at = text.find(kRead); at != std::string::npos; at = text.find(kRead, at + 1))
    rows.push_back(text[at + kRead.size()] == ',' ? 0 : std::stoi(text.substr(at + kRead.size() + 3)));
  EXPECT_GE(rows.size(), 12) << text;
  EXPECT_TRUE(std::ranges::is_sorted(rows.begin(), rows.begin() + 12)) << text;
  EXPECT_EQ(rows[11], 7) << text;
}

// A copy is wide enough for whole tiles: 21 outputs in two tiles of 12, which read 26 columns.
TEST(DepthwiseConv2dRowsCpu, ACopyNeedsNoMasks) {
  const std::string text =
      lowered_text(depthwise(1, 8, 21, 3, 1, 1), "copy=1 tile_oh=4 tile_ow=12 unroll_kw=0");
  EXPECT_NE(text.find("padded"), std::string::npos) << text;
  EXPECT_FALSE(std::regex_search(text, std::regex("if [^\n]*\n *acc\\["))) << text;
}

TEST(DepthwiseConv2dRowsCpu, RandomConfigsOnOddShapes) {
  Conv2dWorkload uneven = depthwise(2, 13, 23, 3, 1, 1);
  uneven.kernel_height = 5;
  uneven.stride = {2, 3};
  uneven.dilation = {2, 1};
  uneven.padding = {0, 2, 3, 1};
  const Conv2dWorkload shapes[] = {
      depthwise(3, 7, 7, 3, 1, 1),   depthwise(2, 9, 21, 3, 2, 1),
      depthwise(2, 11, 40, 5, 1, 2), depthwise(2, 12, 35, 3, 1, 2, 2),
      depthwise(3, 18, 17, 7, 2, 3), depthwise(1, 15, 19, 11, 1, 5),
      depthwise(2, 9, 17, 2, 1, 0),  uneven,
  };
  for (const auto& w : shapes) {
    expect_configs_right(depthwise_conv2d_rows_cpu(), w, cpu(256, 16), 8, 1);
    expect_configs_right(depthwise_conv2d_rows_cpu(), w, cpu(512, 32), 8, 2);
    expect_configs_right(depthwise_conv2d_rows_cpu(), w, cpu(128, 32, /*threads=*/2), 8, 3);
  }
}

TEST(DepthwiseConv2dRowsCpu, EveryForm) {
  for (int form = 0; form < 64; ++form) {
    Conv2dWorkload w = depthwise(5, 8, 19, 3 + form % 2 * 2, 1 + form / 32, form % 2);
    if ((form & 1) != 0) w.padding = {0, 2, 1, 0};  // one side each
    w.bias = (form & 2) != 0;
    w.residual = (form & 4) != 0;
    if ((form & 8) != 0) w.constant = {};
    if ((form & 16) != 0) w.constant.insert(w.constant.begin(), "data");
    w.batch = 1 + form % 2;
    expect_configs_right(depthwise_conv2d_rows_cpu(), w, cpu(256, 16, 1 + form % 2), 3,
                         static_cast<uint32_t>(form));
  }
}

TEST(DepthwiseConv2dRowsCpu, SmallTypes) {
  uint32_t seed = 90;
  for (const DType dtype : {DType::kBFloat16, DType::kInt8})
    for (const int64_t stride : {1, 2}) {
      Conv2dWorkload w = depthwise(3, 9, 20, 5, stride, 2);
      w.dtype = dtype;
      w.bias = true;
      expect_configs_right(depthwise_conv2d_rows_cpu(), w, cpu(512, 32), 6, ++seed);
    }
}

TEST(DepthwiseConv2dRowsCpu, DefaultIsValidForAnyShape) {
  for (const Target& t : {cpu(128, 16), cpu(128, 32), cpu(256, 16), cpu(512, 32)})
    for (const int64_t kernel : {2, 3, 5, 7, 9, 16})
      for (const int64_t side : {17, 28, 57, 112})
        for (const int64_t stride : {1, 2}) {
          const Conv2dWorkload w = depthwise(3, side, side, kernel, stride, kernel / 2);
          if (!depthwise_conv2d_rows_cpu().supports(w, t).yes) continue;
          const auto instance = depthwise_conv2d_rows_cpu().apply(w, t);
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          const ConfigSpace& space = (*instance)->space();
          EXPECT_TRUE((*instance)->instantiate(space.at(space.first_index())).is_ok());
        }
}

// Sums, and what is read.
TEST(DepthwiseConv2dRowsCpu, EveryTileFitsTheRegisters) {
  for (const auto& [bits, registers] : {std::pair{512, 32}, {256, 16}}) {
    const auto instance =
        depthwise_conv2d_rows_cpu().apply(depthwise(4, 57, 112, 3, 1, 1), cpu(bits, registers));
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    int64_t most = 0;
    for (uint64_t i = 0; i < space.size(); ++i) {
      const Config c = space.at(i);
      const int64_t lanes = bits / 32;
      most = std::max(most, c.at("tile_oh") * ((c.at("tile_ow") + lanes - 1) / lanes) + 3);
    }
    EXPECT_LE(most, registers);
    EXPECT_GE(most, registers - 2);
  }
}

}  // namespace
}  // namespace tuner
