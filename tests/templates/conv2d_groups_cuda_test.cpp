// conv2d_groups_cuda: when it applies, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/cuda/cuda_templates.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

TEST(Conv2dGroupsCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = conv2d_groups_cuda();
  EXPECT_EQ(t.supports(Conv2dWorkload{}, gpu()).reason, "needs groups > 1, got 1");
  EXPECT_EQ(
      t.supports(Conv2dWorkload{.in_channels = 4, .out_channels = 4, .groups = 2, .layout = "NCHW4c"}, gpu())
          .reason,
      "needs layout NCHW, got NCHW4c");
  EXPECT_TRUE(t.supports(Conv2dWorkload{.in_channels = 4, .out_channels = 4, .groups = 2}, gpu()).yes);
}

std::vector<Workload> convolutions() {
  return {Workload(Conv2dWorkload{.in_channels = 6,
                                  .in_height = 7,
                                  .in_width = 5,
                                  .out_channels = 9,
                                  .kernel_height = 3,
                                  .kernel_width = 3,
                                  .padding = {1, 1, 1, 1},
                                  .groups = 3,
                                  .bias = true,
                                  .activation = Activation::kRelu,
                                  .constant = {"weight"}}),
          Workload(Conv2dWorkload{.batch = 2,
                                  .in_channels = 8,
                                  .in_height = 5,
                                  .in_width = 9,
                                  .out_channels = 4,
                                  .kernel_height = 1,
                                  .kernel_width = 3,
                                  .stride = {2, 1},
                                  .dilation = {1, 2},
                                  .groups = 2,
                                  .residual = true})};
}

TEST(Conv2dGroupsCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 970;
  for (const Workload& w : convolutions())
    ASSERT_NO_FATAL_FAILURE(expect_gpu_configs_right(conv2d_groups_cuda(), w, gpu("sm_80"), 8, ++seed));
}

TEST(Conv2dGroupsCuda, SchedulesReplay) {
  expect_gpu_schedules_replay(conv2d_groups_cuda(), convolutions().front(), gpu(), 5, 1);
}

}  // namespace
}  // namespace tuner
