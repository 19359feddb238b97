// matmul_tf32_cuda: when it applies, random configs on odd shapes, emulated, against the oracle, and how far
// its answers are.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"
#include "tests/templates/tensor_core_model.h"

namespace tuner {
namespace {

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m, w.n = n, w.k = k;
  w.allow_tf32 = true;
  return w;
}

TEST(MatmulTf32Cuda, ServesWhatAllowsIt) {
  const auto names = [](const MatmulWorkload& w, const char* arch) {
    std::string all;
    const auto serving = templates_for(w, gpu(arch));
    EXPECT_TRUE(serving.is_ok()) << serving.message();
    for (const AnyTemplate* t : *serving) all += str(t->name(), " ");
    return all;
  };
  MatmulWorkload w = matmul(64, 64, 64);
  EXPECT_EQ(names(w, "sm_80"), "matmul_tf32_cuda matmul_cuda ");
  EXPECT_EQ(names(w, "sm_75"), "matmul_cuda ");
  EXPECT_EQ(matmul_tf32_cuda().supports(w, gpu("sm_75")).reason, "needs sm_80 or later, got sm_75");
  w.allow_tf32 = false;
  EXPECT_EQ(matmul_tf32_cuda().supports(w, gpu()).reason,
            "needs \"allow_tf32\": it takes 11 bits of each number");
  w.dtype = DType::kBFloat16;
  EXPECT_EQ(matmul_tf32_cuda().supports(w, gpu()).reason, "needs float32, got bfloat16");
}

TEST(MatmulTf32Cuda, RandomConfigsOnOddShapes) {
  for (const auto& w : {matmul(2, 2, 2), matmul(7, 13, 29), matmul(16, 8, 16), matmul(133, 5, 48),
                        matmul(3, 140, 9), matmul(120, 150, 40), matmul(65, 34, 100)}) {
    expect_gpu_configs_right(matmul_tf32_cuda(), w, gpu(), 4, 1);
    MatmulWorkload packed = w;
    packed.constant = {"a", "b"};
    expect_gpu_configs_right(matmul_tf32_cuda(), packed, gpu("sm_80"), 4, 1);
  }
}

TEST(MatmulTf32Cuda, EveryOperandForm) {
  for (int form = 0; form < 32; ++form) {
    MatmulWorkload w = matmul(form % 5 == 0 ? 37 : 40, form % 7 == 0 ? 51 : 72, form % 3 == 0 ? 45 : 96);
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.residual = (form & 8) != 0;
    w.batch = (form & 16) != 0 ? 2 : 1;
    if (form % 3 == 1) w.constant = {"b"};
    expect_gpu_configs_right(matmul_tf32_cuda(), w, gpu("sm_80"), 2, static_cast<uint32_t>(form));
  }
}

// Further away than float32 may be, and within what the task allows: the tolerance is neither idle nor tight.
TEST(MatmulTf32Cuda, AnswersLieWithinTheToleranceOfTheTask) {
  const MatmulWorkload w = matmul(64, 64, 2000);
  MatmulWorkload exact = w;
  exact.allow_tf32 = false;
  const auto instance = matmul_tf32_cuda().apply(w, gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const auto program = (*instance)->instantiate(space.at(space.default_index()));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const auto lowered = lower_gpu(*program);
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  const GpuTaskData data = gpu_task_data(Workload(w).compute(), 1);
  const auto run = run_emulated(*lowered, data.inputs);
  ASSERT_TRUE(run.is_ok()) << run.message();
  const Tolerance allowed = tolerance_of(w), of_float32 = tolerance_of(exact);
  double worst = 0, worst_of_float32 = 0;
  for (size_t i = 0; i < data.outputs[0].size(); ++i) {
    const double right = data.outputs[0][i], error = std::abs(run->outputs[0][i] - right);
    worst = std::max(worst, error / (allowed.absolute + allowed.relative * std::abs(right)));
    worst_of_float32 =
        std::max(worst_of_float32, error / (of_float32.absolute + of_float32.relative * std::abs(right)));
  }
  EXPECT_LT(worst, 0.9);
  EXPECT_GT(worst, 0.1);
  EXPECT_GT(worst_of_float32, 1);
}

// Sums grow in the tensor cores, which cut off: within a block there may be as many terms as leave room for
// what operands lose.
TEST(MatmulTf32Cuda, BlocksSumUpWhatTheToleranceHasRoomFor) {
  constexpr int64_t kTerms = 65536;
  for (const TensorCore& core : kTensorCores)
    EXPECT_LE(worst_sum(core, tolerance_of(matmul(2, 2, kTerms)), kTerms, 20, 1, drawn_float), 0.9);
  EXPECT_EQ(matmul_tf32_cuda().supports(Workload(matmul(64, 64, 16 * kTerms + 1)), gpu()).reason,
            "needs k <= 1048576, got 1048577");
  const auto instance = matmul_tf32_cuda().apply(matmul(64, 64, 2 * kTerms), gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  EXPECT_GE(space.at(space.default_index()).values().at("split_k"), 2);
}

TEST(MatmulTf32Cuda, SchedulesReplayFromTheirText) {
  MatmulWorkload w = matmul(70, 56, 200);
  w.transpose_b = w.bias = true;
  expect_gpu_schedules_replay(matmul_tf32_cuda(), w, gpu(), 8, 1);
}

}  // namespace
}  // namespace tuner
