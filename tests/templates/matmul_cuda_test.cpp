// matmul_cuda: when it applies, its loops, and random configs on odd shapes, emulated, against the oracle.
#include <gtest/gtest.h>

#include "templates/registry.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  return w;
}

TEST(MatmulCuda, DeclinesWithTheReason) {
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(matmul_cuda().supports(matmul(4, 4, 4), cpu).reason, "needs a CUDA target, got " + cpu.name());
  EXPECT_EQ(matmul_cuda().supports(Conv2dWorkload{}, gpu()).reason, "serves matmul, got conv2d");
  EXPECT_TRUE(matmul_cuda().supports(matmul(4, 4, 4), gpu()).yes);
}

TEST(MatmulCuda, SchedulesReplayFromTheirText) {
  MatmulWorkload w = matmul(70, 52, 100);
  w.transpose_b = w.bias = true;
  w.constant = {"b"};
  expect_gpu_schedules_replay(matmul_cuda(), w, gpu(), 10, 1);
}

TEST(MatmulCuda, DefaultIsValidForAnyShape) {
  for (const char* arch : {"sm_75", "sm_90a"})
    for (const int64_t m : {1, 7, 127, 100000})
      for (const int64_t n : {1, 13, 255, 4096})
        for (const int64_t k : {1, 65536}) {
          const auto instance = matmul_cuda().apply(matmul(m, n, k), gpu(arch));
          ASSERT_TRUE(instance.is_ok()) << instance.message();
          const ConfigSpace& space = (*instance)->space();
          const auto program = (*instance)->instantiate(space.at(space.default_index()));
          ASSERT_TRUE(program.is_ok()) << m << " " << n << " " << k << ": " << program.message();
          const auto lowered = lower_gpu(*program);
          ASSERT_TRUE(lowered.is_ok()) << m << " " << n << " " << k << ": " << lowered.message();
        }
}

TEST(MatmulCuda, LargeSpaceForALargeShape) {
  const auto instance = matmul_cuda().apply(matmul(1024, 1024, 1024), gpu("sm_80"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

TEST(MatmulCuda, RandomConfigsOnOddShapes) {
  for (const auto& w : {matmul(1, 1, 1), matmul(7, 13, 29), matmul(1, 140, 9), matmul(133, 1, 5),
                        matmul(2, 3, 20), matmul(120, 150, 40), matmul(65, 33, 100)})
    expect_gpu_configs_right(matmul_cuda(), w, gpu(), 6, 1);
}

TEST(MatmulCuda, EveryOperandForm) {
  for (int form = 0; form < 32; form += 3) {
    MatmulWorkload w = matmul(36, 68, 44);
    w.transpose_a = (form & 1) != 0;
    w.transpose_b = (form & 2) != 0;
    w.bias = (form & 4) != 0;
    w.activation = (form & 8) != 0 ? Activation::kRelu : Activation::kNone;
    if (form % 3 == 0) w.constant = {"b"};
    w.batch = (form & 16) != 0 ? 3 : 1;
    expect_gpu_configs_right(matmul_cuda(), w, gpu("sm_80"), 1, static_cast<uint64_t>(form));
  }
}

}  // namespace
}  // namespace tuner
