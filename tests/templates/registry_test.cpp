// The list of templates: those of this repository, then those that a program registers.
#include <gtest/gtest.h>

#include <algorithm>

#include "templates/cpu/conv2d_cpu_tile.h"
#include "templates/registry/registry.h"

namespace tuner {
namespace {

// A template that a program outside the repository might have: it serves one shape of softmax.
class Mine final : public AnyTemplate {
 public:
  std::string_view name() const override { return "mine"; }
  int version() const override { return 7; }
  std::string_view algorithm() const override { return "my_algorithm"; }
  Support supports(const Workload& workload, const Target& target) const override {
    const auto* w = workload.get_if<SoftmaxWorkload>();
    return w != nullptr && w->rows == 3 ? supported() : softmax_cpu().supports(workload, target);
  }
  Result<std::unique_ptr<TemplateInstance>> apply(const Workload& w, const Target& t) const override {
    return softmax_cpu().apply(w, t);
  }
};
const Mine mine;
const RegisterTemplate registered(mine);

TEST(Registry, ARegisteredTemplateComesAfterThoseOfTheRepository) {
  EXPECT_EQ(all_templates().back(), &mine);
  EXPECT_EQ(find_template("mine"), &mine);
  const auto serving = templates_for(SoftmaxWorkload{3, 64}, *parse_target("llvm -mcpu=haswell"));
  ASSERT_TRUE(serving.is_ok()) << serving.message();
  ASSERT_EQ(serving->size(), 2u);
  EXPECT_EQ((*serving)[0], find_template("softmax_cpu")) << "the default stays that of the repository";
  EXPECT_EQ((*serving)[1], &mine);
}

TEST(Registry, ItsAlgorithmMayBeNamed) {
  EXPECT_EQ(*canonical_algorithms({"my_algorithm"}), "my_algorithm");
  EXPECT_EQ(templates_of("my_algorithm"), std::vector<std::string>{"mine"});
  EXPECT_EQ(templates_of("my_algorithm,winograd").size(), 6u) << "all of the list, not the first";
  EXPECT_EQ(templates_of("direct,my_algorithm").back(), "mine");
  EXPECT_TRUE(templates_of("").empty()) << "any algorithm is no list";
  EXPECT_EQ(*canonical_algorithms({"my_algorithm", "winograd", "tf32x3", "tf32", "direct", "direct"}), "")
      << "all of them is any";
  EXPECT_EQ(*canonical_algorithms({"my_algorithm", "direct"}), "direct,my_algorithm");
}

TEST(RegistryDeathTest, ATemplateRegisteredTooLateEndsTheProgram) {
  ASSERT_FALSE(all_templates().empty());
  EXPECT_DEATH(RegisterTemplate again(mine), "template mine is registered after the list");
}

std::vector<std::string> names_for(const Workload& w, const std::string& target) {
  const auto serving = templates_in_order(w, *parse_target(target));
  EXPECT_TRUE(serving.is_ok()) << serving.message();
  std::vector<std::string> names;
  if (serving)
    for (const AnyTemplate* t : *serving) names.emplace_back(t->name());
  return names;
}

// matmul_cpu stands first in the list; where there are dot products of bfloat16 it widens numbers for
// nothing.
TEST(Registry, WhoServesAsSecondComesLast) {
  MatmulWorkload w{.m = 64, .n = 64, .k = 64, .dtype = DType::kBFloat16};
  EXPECT_EQ(names_for(w, "llvm -mcpu=znver4"), (std::vector<std::string>{"matmul_dot_cpu", "matmul_cpu"}));
  EXPECT_EQ(names_for(w, "llvm -mcpu=haswell").front(), "matmul_cpu");
  w.dtype = DType::kFloat32;
  EXPECT_EQ(names_for(w, "llvm -mcpu=znver4"), std::vector<std::string>{"matmul_cpu"});
  w.dtype = DType::kInt8;
  w.transpose_b = true;
  EXPECT_EQ(names_for(w, "cuda -arch=sm_80"),
            (std::vector<std::string>{"matmul_mma_cuda", "matmul_dp4a_cuda"}));
}

// What answers where no measured shape is near: direct sums, which round as the operator is defined.
TEST(Registry, TheFirstTemplateIsTheDirectOne) {
  Conv2dWorkload w{
      .in_channels = 64, .in_height = 14, .in_width = 14, .out_channels = 64, .constant = {"weight"}};
  EXPECT_EQ(names_for(w, "llvm -mcpu=haswell").front(), "conv2d_direct_cpu");
  w.kernel_height = w.kernel_width = 3;
  const std::vector<std::string> square = names_for(w, "llvm -mcpu=haswell");
  EXPECT_EQ(square.front(), "conv2d_direct_cpu");
  EXPECT_TRUE(
      std::ranges::any_of(square, [](const std::string& n) { return n.starts_with("conv2d_winograd"); }));
  w.groups = 4;
  EXPECT_EQ(names_for(w, "llvm -mcpu=haswell"), std::vector<std::string>{"conv2d_direct_cpu"});
  w.groups = 64;
  EXPECT_EQ(names_for(w, "cuda -arch=sm_80"), std::vector<std::string>{"depthwise_conv2d_nchw_cuda"});
}

TEST(Registry, ReasonsOfThisKindOfDeviceStandAlone) {
  const auto why = [](const Workload& w, const char* target) {
    return templates_for(w, *parse_target(target)).message();
  };
  Conv2dWorkload w{
      .in_channels = 8, .in_height = 9, .in_width = 9, .out_channels = 8, .dtype = DType::kFloat16};
  EXPECT_NE(why(w, "llvm -mcpu=haswell").find("needs float32, bfloat16 or int8, got float16"),
            std::string::npos);
  EXPECT_EQ(why(w, "llvm -mcpu=haswell").find("needs a CUDA"), std::string::npos)
      << why(w, "llvm -mcpu=haswell");
  // Of an operator that no template of the device has, those of others say why.
  const Workload rows = TransposeWorkload{.rows = 32, .columns = 48};
  EXPECT_NE(why(rows, "npu").find("transpose_cpu: needs a CPU target, got npu"), std::string::npos)
      << why(rows, "npu");
}

TEST(Registry, ChannelsInnermostAreDeclinedForThoseThatDoNotKnowThem) {
  for (const bool of_out : {false, true}) {
    Conv2dWorkload w{.in_channels = 16, .in_height = 9, .in_width = 9, .out_channels = 16};
    w.dtype = DType::kInt8;
    (of_out ? w.out_layout : w.layout) = "NHWC";
    const std::string why = conv2d_rows_dot_cpu().supports(w, *parse_target("llvm -mcpu=haswell")).reason;
    EXPECT_NE(why.find(of_out ? "does not serve out_layout NHWC yet" : "does not serve layout NHWC yet"),
              std::string::npos)
        << why;
  }
}

// The names of those that serve each workload, a line each; each changes fields of a usual one.
template <class W>
std::string served(const char* target, const W& usual,
                   const std::vector<std::pair<const char*, void (*)(W&)>>& cases) {
  std::string text = "\n";
  for (const auto& [what, change] : cases) {
    W w = usual;
    change(w);
    EXPECT_EQ(validate(w).message(), "") << what;
    text += std::string(what) + ":";
    if (const auto serving = templates_in_order(w, *parse_target(target)))
      for (const AnyTemplate* t : *serving) text += " " + std::string(t->name());
    text += "\n";
  }
  return text;
}

// What the heads of the templates' files say that they serve and decline.
TEST(Registry, ConvolutionsAreServedByWhoKnowsAllTheirFields) {
  using W = Conv2dWorkload;
  const W usual{.in_channels = 64,
                .in_height = 14,
                .in_width = 14,
                .out_channels = 64,
                .kernel_height = 3,
                .kernel_width = 3,
                .padding = {1, 1, 1, 1},
                .constant = {"weight"}};
  const std::vector<std::pair<const char*, void (*)(W&)>> cases{
      {"3 x 3", [](W&) {}},
      {"1 x 1", [](W& w) { w.kernel_height = w.kernel_width = 1, w.padding = {}; }},
      {"1 x 1 padded",
       [](W& w) {
         w.kernel_height = w.kernel_width = 1, w.padding = {0, 0, 0, 1};
       }},
      {"1 x 3", [](W& w) { w.kernel_height = 1; }},
      {"3 x 1", [](W& w) { w.kernel_width = 1; }},
      {"stride right",
       [](W& w) {
         w.stride = {1, 2};
       }},
      {"dilation down",
       [](W& w) {
         w.dilation = {2, 1};
       }},
      {"weights given", [](W& w) { w.constant = {}; }},
      {"two groups", [](W& w) { w.groups = 2; }},
      {"depthwise", [](W& w) { w.groups = 64; }},
      {"depthwise twice", [](W& w) { w.groups = 64, w.out_channels = 128; }},
      {"accumulate", [](W& w) { w.accumulate = true; }},
      {"bfloat16", [](W& w) { w.dtype = DType::kBFloat16; }},
      {"bfloat16 1 x 1",
       [](W& w) { w.dtype = DType::kBFloat16, w.kernel_height = w.kernel_width = 1, w.padding = {}; }},
      {"bfloat16 depthwise", [](W& w) { w.dtype = DType::kBFloat16, w.groups = 64; }},
      {"bfloat16 depthwise accumulate",
       [](W& w) { w.dtype = DType::kBFloat16, w.groups = 64, w.accumulate = true; }},
      {"int8", [](W& w) { w.dtype = DType::kInt8; }},
      {"int8 of 3",
       [](W& w) { w.dtype = DType::kInt8, w.in_channels = 3, w.kernel_height = w.kernel_width = 7; }},
      {"int8 of 3 dilated",
       [](W& w) {
         w.dtype = DType::kInt8, w.in_channels = 3, w.kernel_height = w.kernel_width = 7, w.dilation = {1, 2},
         w.padding = {6, 6, 6, 6};
       }},
      {"tf32", [](W& w) { w.allow_tf32 = true; }},
      {"NCHW8c in", [](W& w) { w.layout = "NCHW8c"; }},
      {"NCHW8c out", [](W& w) { w.out_layout = "NCHW8c"; }},
      {"NCHW8c depthwise", [](W& w) { w.layout = w.out_layout = "NCHW8c", w.groups = 64; }},
      {"NHWC in", [](W& w) { w.layout = "NHWC"; }},
      {"NHWC out", [](W& w) { w.out_layout = "NHWC"; }},
      {"NHWC", [](W& w) { w.layout = w.out_layout = "NHWC"; }},
      {"NHWC depthwise", [](W& w) { w.layout = w.out_layout = "NHWC", w.groups = 64; }},
      {"NHWC bfloat16", [](W& w) { w.layout = w.out_layout = "NHWC", w.dtype = DType::kBFloat16; }},
      {"NHWC tf32", [](W& w) { w.layout = w.out_layout = "NHWC", w.allow_tf32 = true; }},
      {"NHWC accumulate", [](W& w) { w.layout = w.out_layout = "NHWC", w.accumulate = true; }},
      {"three channels", [](W& w) { w.in_channels = 3; }},
  };
  EXPECT_EQ(served("llvm -mcpu=haswell", usual, cases), R"(
3 x 3: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
1 x 1: conv2d_direct_cpu conv2d_1x1_pixels_cpu conv2d_1x1_channels_cpu
1 x 1 padded: conv2d_direct_cpu
1 x 3: conv2d_direct_cpu
3 x 1: conv2d_direct_cpu
stride right: conv2d_direct_cpu
dilation down: conv2d_direct_cpu
weights given: conv2d_direct_cpu
two groups: conv2d_direct_cpu
depthwise: depthwise_conv2d_cpu depthwise_conv2d_rows_cpu
depthwise twice: conv2d_direct_cpu
accumulate: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
bfloat16: conv2d_direct_cpu
bfloat16 1 x 1: conv2d_direct_cpu conv2d_1x1_pixels_cpu conv2d_1x1_channels_cpu
bfloat16 depthwise: depthwise_conv2d_dot_cpu depthwise_conv2d_cpu depthwise_conv2d_rows_cpu
bfloat16 depthwise accumulate: depthwise_conv2d_cpu depthwise_conv2d_rows_cpu
int8: conv2d_direct_cpu
int8 of 3: conv2d_rows_dot_cpu conv2d_direct_cpu
int8 of 3 dilated: conv2d_direct_cpu
tf32: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NCHW8c in: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NCHW8c out: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NCHW8c depthwise: depthwise_conv2d_cpu
NHWC in: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC out: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC depthwise: depthwise_conv2d_cpu
NHWC bfloat16: conv2d_direct_cpu
NHWC tf32: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC accumulate: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
three channels: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
)");
  EXPECT_EQ(served("llvm -mcpu=sapphirerapids", usual, cases), R"(
3 x 3: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
1 x 1: conv2d_direct_cpu conv2d_1x1_pixels_cpu conv2d_1x1_channels_cpu
1 x 1 padded: conv2d_direct_cpu
1 x 3: conv2d_direct_cpu
3 x 1: conv2d_direct_cpu
stride right: conv2d_direct_cpu
dilation down: conv2d_direct_cpu
weights given: conv2d_direct_cpu
two groups: conv2d_direct_cpu
depthwise: depthwise_conv2d_cpu depthwise_conv2d_rows_cpu
depthwise twice: conv2d_direct_cpu
accumulate: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
bfloat16: conv2d_tile_cpu conv2d_direct_cpu
bfloat16 1 x 1: conv2d_tile_cpu conv2d_direct_cpu conv2d_1x1_pixels_cpu conv2d_1x1_channels_cpu
bfloat16 depthwise: depthwise_conv2d_dot_cpu depthwise_conv2d_cpu depthwise_conv2d_rows_cpu
bfloat16 depthwise accumulate: depthwise_conv2d_cpu depthwise_conv2d_rows_cpu
int8: conv2d_tile_cpu conv2d_direct_cpu
int8 of 3: conv2d_tile_cpu conv2d_rows_dot_cpu conv2d_direct_cpu
int8 of 3 dilated: conv2d_tile_cpu conv2d_direct_cpu
tf32: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NCHW8c in: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NCHW8c out: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NCHW8c depthwise: depthwise_conv2d_cpu
NHWC in: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC out: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC depthwise: depthwise_conv2d_cpu
NHWC bfloat16: conv2d_tile_cpu conv2d_direct_cpu
NHWC tf32: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
NHWC accumulate: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
three channels: conv2d_direct_cpu conv2d_winograd2_cpu conv2d_winograd2x4_cpu conv2d_winograd4_cpu conv2d_winograd5_cpu conv2d_winograd6_cpu
)");
  EXPECT_EQ(served("cuda -arch=sm_80", usual, cases), R"(
3 x 3: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
1 x 1: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
1 x 1 padded: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
1 x 3: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
3 x 1: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
stride right: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
dilation down: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
weights given: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
two groups: conv2d_groups_cuda
depthwise: depthwise_conv2d_nchw_cuda
depthwise twice: depthwise_conv2d_nchw_cuda
accumulate:
bfloat16:
bfloat16 1 x 1:
bfloat16 depthwise:
bfloat16 depthwise accumulate:
int8:
int8 of 3:
int8 of 3 dilated:
tf32: conv2d_nchw_cuda conv2d_implicit_gemm_cuda
NCHW8c in:
NCHW8c out:
NCHW8c depthwise:
NHWC in:
NHWC out:
NHWC: conv2d_nhwc_tf32x3_cuda
NHWC depthwise: depthwise_conv2d_nhwc_cuda
NHWC bfloat16: conv2d_nhwc_mma_cuda
NHWC tf32: conv2d_nhwc_tf32_cuda
NHWC accumulate:
three channels: conv2d_nchw_cuda
)");
}

TEST(Registry, ProductsAreServedByWhoKnowsAllTheirFields) {
  using W = MatmulWorkload;
  const W usual{.m = 512, .n = 512, .k = 512};
  const std::vector<std::pair<const char*, void (*)(W&)>> cases{
      {"float32", [](W&) {}},
      {"tf32", [](W& w) { w.allow_tf32 = true; }},
      {"batch", [](W& w) { w.batch = 3; }},
      {"vector", [](W& w) { w.m = 1; }},
      {"one column", [](W& w) { w.n = 1; }},
      {"one term", [](W& w) { w.k = 1; }},
      {"transposed a", [](W& w) { w.transpose_a = true; }},
      {"accumulate", [](W& w) { w.accumulate = true; }},
      {"bfloat16", [](W& w) { w.dtype = DType::kBFloat16; }},
      {"bfloat16 transposed a", [](W& w) { w.dtype = DType::kBFloat16, w.transpose_a = true; }},
      {"bfloat16 accumulate", [](W& w) { w.dtype = DType::kBFloat16, w.accumulate = true; }},
      {"bfloat16 of 3 columns", [](W& w) { w.dtype = DType::kBFloat16, w.n = 3; }},
      {"int8", [](W& w) { w.dtype = DType::kInt8; }},
      {"int8 transposed b", [](W& w) { w.dtype = DType::kInt8, w.transpose_b = true; }},
      {"int8 transposed both", [](W& w) { w.dtype = DType::kInt8, w.transpose_a = w.transpose_b = true; }},
      {"int8 constant b", [](W& w) { w.dtype = DType::kInt8, w.constant = {"b"}; }},
  };
  EXPECT_EQ(served("llvm -mcpu=haswell", usual, cases), R"(
float32: matmul_cpu
tf32: matmul_cpu
batch: matmul_cpu
vector: matmul_cpu
one column: matmul_cpu
one term: matmul_cpu
transposed a: matmul_cpu
accumulate: matmul_cpu
bfloat16: matmul_cpu matmul_dot_cpu
bfloat16 transposed a: matmul_cpu matmul_dot_cpu
bfloat16 accumulate: matmul_cpu matmul_dot_cpu
bfloat16 of 3 columns: matmul_cpu matmul_dot_cpu
int8: matmul_dot_cpu
int8 transposed b: matmul_dot_cpu
int8 transposed both: matmul_dot_cpu
int8 constant b: matmul_dot_cpu
)");
  EXPECT_EQ(served("llvm -mcpu=sapphirerapids", usual, cases), R"(
float32: matmul_cpu
tf32: matmul_cpu
batch: matmul_cpu
vector: matmul_cpu
one column: matmul_cpu
one term: matmul_cpu
transposed a: matmul_cpu
accumulate: matmul_cpu
bfloat16: matmul_tile_cpu matmul_dot_cpu matmul_cpu
bfloat16 transposed a: matmul_tile_cpu matmul_dot_cpu matmul_cpu
bfloat16 accumulate: matmul_tile_cpu matmul_dot_cpu matmul_cpu
bfloat16 of 3 columns: matmul_tile_cpu matmul_dot_cpu matmul_cpu
int8: matmul_tile_cpu matmul_dot_cpu
int8 transposed b: matmul_tile_cpu matmul_dot_cpu
int8 transposed both: matmul_tile_cpu matmul_dot_cpu
int8 constant b: matmul_tile_cpu matmul_dot_cpu
)");
  EXPECT_EQ(served("cuda -arch=sm_75", usual, cases), R"(
float32: matmul_cuda
tf32: matmul_cuda
batch: matmul_cuda
vector: matmul_cuda
one column: matmul_cuda
one term: matmul_cuda
transposed a: matmul_cuda
accumulate:
bfloat16: matmul_cuda
bfloat16 transposed a: matmul_cuda
bfloat16 accumulate:
bfloat16 of 3 columns: matmul_cuda
int8: matmul_dp4a_cuda
int8 transposed b: matmul_dp4a_cuda
int8 transposed both: matmul_dp4a_cuda
int8 constant b: matmul_dp4a_cuda
)");
  EXPECT_EQ(served("cuda -arch=sm_80", usual, cases), R"(
float32: matmul_cuda matmul_tf32x3_cuda
tf32: matmul_tf32_cuda matmul_cuda
batch: matmul_cuda matmul_tf32x3_cuda
vector: matmul_cuda
one column: matmul_cuda
one term: matmul_cuda
transposed a: matmul_cuda matmul_tf32x3_cuda
accumulate:
bfloat16: matmul_mma_cuda
bfloat16 transposed a: matmul_mma_cuda
bfloat16 accumulate:
bfloat16 of 3 columns: matmul_mma_cuda
int8: matmul_dp4a_cuda
int8 transposed b: matmul_mma_cuda matmul_dp4a_cuda
int8 transposed both: matmul_dp4a_cuda
int8 constant b: matmul_mma_cuda matmul_dp4a_cuda
)");
  EXPECT_EQ(served("cuda -arch=sm_90a", usual, cases), R"(
float32: matmul_cuda matmul_tf32x3_cuda
tf32: matmul_tf32_cuda matmul_cuda
batch: matmul_cuda matmul_tf32x3_cuda
vector: matmul_cuda
one column: matmul_cuda
one term: matmul_cuda
transposed a: matmul_cuda matmul_tf32x3_cuda
accumulate:
bfloat16: matmul_wgmma_cuda matmul_mma_cuda
bfloat16 transposed a: matmul_wgmma_cuda matmul_mma_cuda
bfloat16 accumulate:
bfloat16 of 3 columns: matmul_mma_cuda
int8: matmul_dp4a_cuda
int8 transposed b: matmul_mma_cuda matmul_dp4a_cuda
int8 transposed both: matmul_dp4a_cuda
int8 constant b: matmul_mma_cuda matmul_dp4a_cuda
)");
}

// How far the last window's last tap lies beyond the image: 10 + 2 - 2 of rows 0 to 8, 6 + 4 - 2 of columns,
// or 8 + 4 - 2.
TEST(Conv2dCpuTile, RowsAndColumnsHaveBordersOfTheirOwn) {
  Conv2dWorkload w{
      .in_height = 9, .in_width = 9, .kernel_height = 3, .kernel_width = 3, .padding = {2, 2, 2, 2}};
  w.dilation = {1, 2};
  w.stride = {1, 3};
  EXPECT_EQ(conv2d_cpu::rows_border(w).high, 2);
  EXPECT_EQ(conv2d_cpu::columns_border(w).high, 0);
  w.stride = {1, 1};
  w.padding = {0, 2, 0, 2};
  EXPECT_EQ(conv2d_cpu::rows_border(w).low, 0);
  EXPECT_EQ(conv2d_cpu::rows_border(w).high, 0);
  EXPECT_EQ(conv2d_cpu::columns_border(w).low, 2);
  EXPECT_EQ(conv2d_cpu::columns_border(w).high, 2);
}

}  // namespace
}  // namespace tuner
