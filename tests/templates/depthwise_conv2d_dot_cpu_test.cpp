// depthwise_conv2d_dot_cpu: when it applies, its loops, and random configs on odd shapes against the oracle,
// interpreted and compiled.
#include <gmock/gmock.h>

#include "templates/registry/registry.h"
#include "tests/templates/compiled_template_check.h"

namespace tuner {
namespace {

struct Types {
  DType dtype;
  std::optional<DType> out;
};
constexpr Types kTypes[] = {{DType::kBFloat16, {}},
                            {DType::kBFloat16, DType::kBFloat16},
                            {DType::kInt8, {}},
                            {DType::kInt8, DType::kUInt8},
                            {DType::kInt8, DType::kInt8}};

Conv2dWorkload depthwise(const Types& types, int64_t channels, int64_t height, int64_t width, int64_t kernel,
                         int64_t stride, int64_t padding, int64_t dilation = 1) {
  Conv2dWorkload w;
  w.dtype = types.dtype;
  w.narrow_out = types.out;
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

void expect_compiled_right(const Conv2dWorkload& w, int threads, int samples, uint32_t seed) {
  std::vector<Target> all = hosts(threads);
  // Masks, but neither dot products nor permutations of bytes.
  const Target wide = *parse_target(str("llvm -mcpu=x86-64-v4 -threads=", threads));
  if (runs_here(wide)) all.push_back(wide);
  for (const Target& t : all) expect_code_right(depthwise_conv2d_dot_cpu(), w, t, samples, seed);
}

TEST(DepthwiseConv2dDotCpu, DeclinesWithTheReason) {
  const auto reason = [](const Workload& w) {
    return depthwise_conv2d_dot_cpu().supports(w, cpu(256, 16)).reason;
  };
  Conv2dWorkload w = depthwise({DType::kInt8, {}}, 16, 5, 5, 3, 1, 1);
  EXPECT_TRUE(depthwise_conv2d_dot_cpu().supports(w, cpu(256, 16)).yes);
  w.accumulate = true;
  EXPECT_EQ(reason(w), "has no accumulate; depthwise_conv2d_cpu serves it");
  w.accumulate = false;
  w.layout = "NCHW16c";
  EXPECT_EQ(reason(w), "needs NCHW in and out, got NCHW16c and NCHW");
  w = depthwise({DType::kFloat32, {}}, 16, 5, 5, 3, 1, 1);
  EXPECT_EQ(reason(w), "needs bfloat16 or int8, got float32");
  w = depthwise({DType::kInt8, {}}, 16, 5, 5, 3, 1, 1);
  w.out_channels = 32;
  EXPECT_EQ(reason(w), "needs 1 output channel in a group, got 2");
  w.groups = 4;
  EXPECT_EQ(reason(w), "needs groups = 16 channels, got 4");
  EXPECT_EQ(reason(depthwise({DType::kInt8, {}}, 1, 3, 300, 3, 1, 1)),
            "needs at most 256 columns of out, got 300");
}

// 7 x 7 pixels are four vectors, not seven rows.
TEST(DepthwiseConv2dDotCpu, LoopsOfOneConfig) {
  const Conv2dWorkload w = depthwise({DType::kInt8, {}}, 3, 7, 7, 3, 1, 1);
  const auto instance = depthwise_conv2d_dot_cpu().apply(w, cpu(512, 32));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  EXPECT_EQ(space.at(space.first_index()).to_text(), "block_rows=7 tile_p=64");
  const auto program = (*instance)->instantiate(space.at(space.first_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const std::string text = to_text(*program);
  EXPECT_THAT(text, ::testing::HasSubstr("packed filled_weight int8[3, 1, 3, 4]"));
  EXPECT_THAT(text, ::testing::HasSubstr("vectorized q.inner.tap.fused.inner in 0..28"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"(
              unrolled reduce kh in 0..3
                unrolled reduce kw.outer in 0..1
                  unrolled p.outer_1 in 0..4
                    vectorized p.inner in 0..16
                      dot reduce kw.inner in 0..4
                        acc[0, 0, p.outer_1*16 + p.inner] += int32(woven[0, 0, 0, 0, p.outer_1*16 + p.inner + kh*7, kw.inner])*int32(filled_weight[c, 0, kh, kw.inner])
)"));
}

TEST(DepthwiseConv2dDotCpu, RandomConfigsOnOddShapes) {
  uint32_t seed = 0;
  for (const Types& types : kTypes)
    for (const Conv2dWorkload& w :
         {depthwise(types, 3, 7, 7, 3, 1, 1), depthwise(types, 2, 9, 21, 3, 2, 1),
          depthwise(types, 1, 1, 1, 1, 1, 0), depthwise(types, 2, 11, 40, 5, 1, 2),
          depthwise(types, 2, 8, 9, 2, 3, 1), depthwise(types, 2, 12, 35, 3, 1, 2, 2),
          depthwise(types, 3, 18, 17, 7, 2, 3), depthwise(types, 2, 14, 14, 3, 1, 1),
          depthwise(types, 1, 13, 14, 3, 2, 1, 3)}) {
      expect_configs_right(depthwise_conv2d_dot_cpu(), w, cpu(256, 16), 2, ++seed);
      expect_configs_right(depthwise_conv2d_dot_cpu(), w, cpu(512, 32, 1 + static_cast<int>(seed % 2)), 2,
                           seed);
      expect_compiled_right(w, 1 + static_cast<int>(seed % 2), 2, seed);
    }
}

TEST(DepthwiseConv2dDotCpu, EveryForm) {
  for (const Types& types : kTypes)
    for (int form = 0; form < 32; ++form) {
      Conv2dWorkload w = depthwise(types, 5, 6, 7, 3, 1 + form % 2, 0);
      if ((form & 1) != 0) w.padding = {0, 2, 1, 0};  // one side each
      w.bias = (form & 2) != 0;
      w.residual = (form & 4) != 0;
      if ((form & 8) != 0) w.constant.clear();
      if (form % 5 == 0) w.constant = {"data", "weight"};
      if ((form & 16) != 0) w.activation = Activation::kRelu;
      w.batch = 1 + form / 2 % 2;
      w.kernel_width = 3 + form % 3;
      if (w.in_width + w.padding[1] + w.padding[3] < w.kernel_width) continue;
      expect_configs_right(depthwise_conv2d_dot_cpu(), w, cpu(256, 16, 1 + form % 2), 1,
                           static_cast<uint32_t>(form));
      if (form % 4 == 0) expect_compiled_right(w, 1 + form / 4 % 2, 1, static_cast<uint32_t>(form));
    }
}

// A pixel that is not finite is in the sums of its windows and in no other.
TEST(DepthwiseConv2dDotCpu, InfinitiesStayInTheirWindows) {
  const Conv2dWorkload w = depthwise({DType::kBFloat16, {}}, 2, 9, 14, 3, 1, 1);
  const Program math = Workload(w).compute();
  auto expected = testing::random_args(math, 3);
  expected[0][5 * 14 + 6] = expected[0][9 * 14 + 3] = -INFINITY;
  ASSERT_TRUE(interpret(math, expected).is_ok());
  EXPECT_EQ(std::ranges::count_if(expected.back(), [](double x) { return std::isinf(x); }), 9 + 6);
  const auto instance = depthwise_conv2d_dot_cpu().apply(w, host_target(1));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const auto program = (*instance)->instantiate((*instance)->space().at((*instance)->space().first_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  auto found = expected;
  found.back().clear();
  const Status status = testing::run_compiled(*program, found, host_target(1), 1);
  ASSERT_TRUE(status.is_ok()) << status.message();
  for (size_t i = 0; i < found.back().size(); ++i)
    if (std::isinf(expected.back()[i]))
      EXPECT_EQ(found.back()[i], expected.back()[i]) << i;
    else
      EXPECT_NEAR(found.back()[i], expected.back()[i], 1e-5) << i;
}

}  // namespace
}  // namespace tuner
