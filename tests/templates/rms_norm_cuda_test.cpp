// rms_norm_cuda: when it applies, and random configs on odd shapes in the emulator.
#include <gtest/gtest.h>

#include "templates/cuda/cuda_templates.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

TEST(RmsNormCuda, DeclinesWithTheReason) {
  const AnyTemplate& t = rms_norm_cuda();
  EXPECT_EQ(t.supports(RmsNormWorkload{.dtype = DType::kFloat16}, gpu()).reason,
            "needs float32, got float16");
  EXPECT_FALSE(t.supports(RmsNormWorkload{}, *parse_target("llvm -mcpu=haswell")).yes);
  EXPECT_TRUE(t.supports(RmsNormWorkload{}, gpu()).yes);
}

TEST(RmsNormCuda, OddShapesAndRandomConfigs) {
  uint64_t seed = 950;
  for (const Workload& w : {Workload(RmsNormWorkload{5, 301}), Workload(RmsNormWorkload{1, 1}),
                            Workload(RmsNormWorkload{33, 7}), Workload(RmsNormWorkload{3, 1030})})
    ASSERT_NO_FATAL_FAILURE(expect_gpu_configs_right(rms_norm_cuda(), w, gpu("sm_80"), 8, ++seed));
}

TEST(RmsNormCuda, SchedulesReplay) {
  const Workload all[] = {Workload(RmsNormWorkload{5, 301}), Workload(RmsNormWorkload{1, 1}),
                          Workload(RmsNormWorkload{33, 7}), Workload(RmsNormWorkload{3, 1030})};
  expect_gpu_schedules_replay(rms_norm_cuda(), all[0], gpu(), 5, 1);
}

}  // namespace
}  // namespace tuner
