// reduce_cuda: when it applies, its loops, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

TEST(ReduceCuda, DeclinesWithTheReason) {
  EXPECT_EQ(reduce_cuda().supports(ReduceWorkload{7, 7}, *parse_target("llvm -mcpu=haswell")).reason,
            "needs a CUDA target, got llvm -mcpu=haswell -threads=1");
  EXPECT_EQ(reduce_cuda().supports(MatmulWorkload{}, gpu()).reason, "serves reduce, got matmul");
  EXPECT_TRUE(reduce_cuda().supports(ReduceWorkload{7, 7}, gpu()).yes);
}

TEST(ReduceCuda, OddShapesAndRandomConfigs) {
  const std::pair<int64_t, int64_t> shapes[] = {{1, 1},  {5, 1},   {1, 13},  {33, 7},
                                                {7, 96}, {3, 131}, {13, 300}};
  uint64_t seed = 100;
  for (const auto& [rows, columns] : shapes)
    ASSERT_NO_FATAL_FAILURE(
        expect_gpu_configs_right(reduce_cuda(), ReduceWorkload{rows, columns}, gpu(), 6, ++seed));
}
}  // namespace
}  // namespace tuner
