// What a model is compiled for, from the words of --target.
#include "tuner/compile/compile_targets.h"

#include <gtest/gtest.h>

#include "compiler_core/backend.h"

namespace tuner {
namespace {

TEST(CompileTargets, NoWordIsThisCpu) {
  CompileRequest request;
  ASSERT_TRUE(choose_targets({}, 1, request).is_ok());
  EXPECT_EQ(request.target.name(), resolve_target("cpu")->name());
  EXPECT_TRUE(request.more_targets.empty());
  EXPECT_FALSE(request.accelerator.has_value());
}

TEST(CompileTargets, ThreadsAreThoseOfEachTarget) {
  CompileRequest request;
  ASSERT_TRUE(choose_targets({"llvm -mcpu=haswell"}, 3, request).is_ok());
  EXPECT_EQ(request.target.name(), "llvm -mcpu=haswell -threads=3");
}

TEST(CompileTargets, SeveralArchitecturesStandInTheirOrder) {
  CompileRequest request;
  ASSERT_TRUE(
      choose_targets({"cuda -arch=sm_80", "cuda -arch=sm_90a", "cuda -arch=sm_86"}, 1, request).is_ok());
  EXPECT_EQ(request.target.name(), "cuda -arch=sm_80");
  ASSERT_EQ(request.more_targets.size(), 2U);
  EXPECT_EQ(request.more_targets[0].name(), "cuda -arch=sm_90a");
  EXPECT_EQ(request.more_targets[1].name(), "cuda -arch=sm_86");
}

// At run time the architecture alone is known, so the second would never be chosen.
TEST(CompileTargets, OneArchitectureIsTakenOnce) {
  const std::string h100 = "cuda -arch=sm_90a -device=h100", h200 = "cuda -arch=sm_90a -device=h200";
  for (const auto& [first, second] :
       {std::pair(h100, h200), {h100, std::string("cuda -arch=sm_90a")}, {h200, h200}}) {
    CompileRequest request;
    EXPECT_EQ(choose_targets({"cuda -arch=sm_80", first, second}, 1, request).message(),
              str("several --target: \"", second, "\" and \"", first,
                  "\" are one architecture, by which a library chooses its kernels; leave one out"));
  }
  CompileRequest request;
  EXPECT_TRUE(
      choose_targets({h100, "cuda -arch=sm_90", "cuda -arch=sm_80 -device=a100"}, 1, request).is_ok());
}

TEST(CompileTargets, AnAcceleratorStandsBesideThisCpu) {
  CompileRequest request;
  ASSERT_TRUE(choose_targets({"npu"}, 2, request).is_ok());
  ASSERT_TRUE(request.accelerator.has_value());
  EXPECT_EQ(request.accelerator->name(), "npu");
  EXPECT_EQ(request.target.name(), resolve_target("cpu -threads=2")->name());
}

TEST(CompileTargets, AnAcceleratorIsTheOnlyOne) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"npu", "cuda -arch=sm_80"}, {"cpu", "npu"}}) {
    CompileRequest request;
    EXPECT_EQ(choose_targets(words, 1, request).message(),
              "several --target: \"npu\" runs steps of a library for this CPU; leave the others out");
  }
  CompileRequest blocked;
  blocked.blocks = true;
  EXPECT_EQ(choose_targets({"npu"}, 1, blocked).message(),
            "--blocks: images lie in NHWC where \"npu\" takes steps; leave one of the two out");
}

TEST(CompileTargets, AWordThatIsNoTargetIsNamed) {
  CompileRequest request;
  EXPECT_NE(choose_targets({"tpu"}, 1, request).message().find("tpu"), std::string::npos);
}

}  // namespace
}  // namespace tuner
