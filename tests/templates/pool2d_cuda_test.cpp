// pool2d_cuda: when it applies, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/cuda/cuda_templates.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

TEST(Pool2dCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = pool2d_cuda();
  EXPECT_EQ(t.supports(Pool2dWorkload{.layout = "NCHW16c"}, gpu()).reason,
            "needs layout NCHW or NHWC, got NCHW16c");
  EXPECT_EQ(t.supports(Pool2dWorkload{.dtype = DType::kFloat16}, gpu()).reason, "needs float32, got float16");
  EXPECT_FALSE(t.supports(Pool2dWorkload{}, *parse_target("llvm -mcpu=haswell")).yes);
  EXPECT_TRUE(t.supports(Pool2dWorkload{}, gpu()).yes);
}

std::vector<Workload> pools() {
  return {Workload(Pool2dWorkload{.batch = 2,
                                  .channels = 5,
                                  .in_height = 9,
                                  .in_width = 7,
                                  .kernel_height = 3,
                                  .kernel_width = 2,
                                  .stride = {2, 1},
                                  .padding = {1, 1, 0, 0}}),
          Workload(Pool2dWorkload{.channels = 7,
                                  .in_height = 8,
                                  .in_width = 8,
                                  .kernel_height = 3,
                                  .kernel_width = 3,
                                  .stride = {2, 2},
                                  .padding = {1, 1, 1, 1},
                                  .pooling = Pooling::kAverage}),
          Workload(Pool2dWorkload{.batch = 2,
                                  .channels = 37,
                                  .in_height = 6,
                                  .in_width = 7,
                                  .kernel_height = 3,
                                  .kernel_width = 2,
                                  .stride = {2, 1},
                                  .padding = {1, 0, 1, 1},
                                  .layout = "NHWC"}),
          Workload(Pool2dWorkload{.channels = 20,
                                  .in_height = 7,
                                  .in_width = 7,
                                  .kernel_height = 7,
                                  .kernel_width = 7,
                                  .pooling = Pooling::kAverage,
                                  .layout = "NHWC"}),
          Workload(Pool2dWorkload{.channels = 3,
                                  .in_height = 15,
                                  .in_width = 13,
                                  .kernel_height = 15,
                                  .kernel_width = 13,
                                  .pooling = Pooling::kAverage}),
          Workload(Pool2dWorkload{.channels = 3,
                                  .in_height = 5,
                                  .in_width = 6,
                                  .kernel_height = 2,
                                  .kernel_width = 2,
                                  .padding = {1, 1, 1, 1},
                                  .pooling = Pooling::kAverage,
                                  .count_include_pad = true})};
}

TEST(Pool2dCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 900;
  for (const Workload& w : pools())
    ASSERT_NO_FATAL_FAILURE(expect_gpu_configs_right(pool2d_cuda(), w, gpu("sm_80"), 8, ++seed));
}

TEST(Pool2dCuda, SchedulesReplay) {
  expect_gpu_schedules_replay(pool2d_cuda(), pools().front(), gpu(), 5, 1);
}

}  // namespace
}  // namespace tuner
