// elementwise_cuda: when it applies, its loops, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

TEST(ElementwiseCuda, DeclinesWithTheReason) {
  EXPECT_EQ(
      elementwise_cuda().supports(ElementwiseWorkload{7, 7}, *parse_target("llvm -mcpu=haswell")).reason,
      "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(elementwise_cuda().supports(MatmulWorkload{}, gpu()).reason, "serves elementwise, got matmul");
  EXPECT_TRUE(elementwise_cuda().supports(ElementwiseWorkload{7, 7}, gpu()).yes);
}

TEST(ElementwiseCuda, OddShapesAndRandomConfigs) {
  const std::pair<int64_t, int64_t> shapes[] = {{1, 1},  {5, 1},   {1, 13},  {33, 7},
                                                {7, 96}, {3, 131}, {13, 300}};
  uint64_t seed = 100;
  for (const auto& [rows, columns] : shapes)
    ASSERT_NO_FATAL_FAILURE(
        expect_gpu_configs_right(elementwise_cuda(), ElementwiseWorkload{rows, columns}, gpu(), 6, ++seed));
}
}  // namespace
}  // namespace tuner
