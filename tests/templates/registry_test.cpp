// The list of templates: those of this repository, then those that a program registers.
#include <gtest/gtest.h>

#include <algorithm>

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
  const auto serving = templates_for(w, *parse_target(target));
  EXPECT_TRUE(serving.is_ok()) << serving.message();
  std::vector<std::string> names;
  if (serving)
    for (const AnyTemplate* t : *serving) names.emplace_back(t->name());
  return names;
}

// matmul_cpu stands first in the list; where there are dot products of bfloat16 it widens numbers for nothing.
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

// What answers before any tuning: direct sums, which round as the operator is defined.
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
  Conv2dWorkload w{.in_channels = 8, .in_height = 9, .in_width = 9, .out_channels = 8, .dtype = DType::kInt8};
  w.layout = w.out_layout = "NHWC";
  EXPECT_NE(why(w, "llvm -mcpu=haswell").find("does not serve layout NHWC yet"), std::string::npos);
  EXPECT_EQ(why(w, "llvm -mcpu=haswell").find("needs a CUDA"), std::string::npos)
      << why(w, "llvm -mcpu=haswell");
  // Of an operator that no template of GPUs has, those of CPUs say why.
  const Workload fragment = *program_from_text("in=float32[2,24,20],float32[24,1] Mul(0,1) Tanh(2)");
  EXPECT_NE(why(fragment, "cuda -arch=sm_80").find("program_cpu: needs a CPU target, got cuda -arch=sm_80"),
            std::string::npos)
      << why(fragment, "cuda -arch=sm_80");
}

TEST(Registry, ChannelsInnermostAreDeclinedForThoseThatDoNotKnowThem) {
  for (const bool of_out : {false, true}) {
    Conv2dWorkload w{.in_channels = 16, .in_height = 9, .in_width = 9, .out_channels = 16};
    (of_out ? w.out_layout : w.layout) = "NHWC";
    const std::string why = templates_for(w, *parse_target("llvm -mcpu=haswell")).message();
    EXPECT_NE(why.find(of_out ? "does not serve out_layout NHWC yet" : "does not serve layout NHWC yet"),
              std::string::npos)
        << why;
  }
}

}  // namespace
}  // namespace tuner
