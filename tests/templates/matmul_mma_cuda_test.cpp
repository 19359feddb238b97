// matmul_mma_cuda: when it applies, and random configs on odd shapes, emulated, against the oracle.
#include <gtest/gtest.h>

#include "templates/registry/registry.h"
#include "tests/templates/gpu_template_check.h"
#include "tests/templates/tensor_core_model.h"

namespace tuner {
namespace {

MatmulWorkload matmul(int64_t m, int64_t n, int64_t k, DType dtype = DType::kBFloat16) {
  MatmulWorkload w;
  w.m = m, w.n = n, w.k = k;
  w.dtype = dtype;
  return w;
}

TEST(MatmulMmaCuda, DeclinesWithTheReason) {
  const auto reason = [](const MatmulWorkload& w, const Target& t) {
    return matmul_mma_cuda().supports(w, t).reason;
  };
  const Target cpu = *parse_target("llvm -mcpu=haswell");
  EXPECT_EQ(reason(matmul(4, 4, 4), cpu), "needs a CUDA target, got " + cpu.name());
  EXPECT_EQ(reason(matmul(4, 4, 4, DType::kFloat32), gpu()), "needs bfloat16, float16 or int8, got float32");
  EXPECT_EQ(reason(matmul(4, 4, 4), gpu("sm_75")), "needs sm_80 or later, got sm_75");
  EXPECT_EQ(reason(matmul(1, 4, 4), gpu()), "needs m >= 2, got 1");
  EXPECT_EQ(reason(matmul(4, 1, 4), gpu()), "needs n >= 2, got 1");
  EXPECT_EQ(reason(matmul(4, 4, 1), gpu()), "needs k >= 2, got 1");
  EXPECT_TRUE(matmul_mma_cuda().supports(matmul(2, 2, 2), gpu("sm_80")).yes);
  MatmulWorkload bytes = matmul(4, 4, 4, DType::kInt8);
  EXPECT_EQ(reason(bytes, gpu()), "needs k along the rows of b (\"transpose_b\") for int8, or a constant");
  bytes.constant = {"b"};
  EXPECT_EQ(reason(bytes, gpu()), "");
  bytes.transpose_a = true;
  EXPECT_EQ(reason(bytes, gpu()), "needs k along the rows of a (no \"transpose_a\") for int8, or a constant");
}

TEST(MatmulMmaCuda, DefaultIsValidForAnyShape) {
  for (const char* arch : {"sm_80", "sm_86", "sm_90a"})
    for (const int64_t m : {2, 7, 127, 100000})
      for (const int64_t n : {2, 13, 255, 4096})
        for (const int64_t k : {2, 40, 65536}) {
          const auto instance = matmul_mma_cuda().apply(matmul(m, n, k), gpu(arch));
          ASSERT_TRUE(instance.is_ok()) << m << " " << n << " " << k << ": " << instance.message();
          const ConfigSpace& space = (*instance)->space();
          const auto program = (*instance)->instantiate(space.at(space.default_index()));
          ASSERT_TRUE(program.is_ok()) << m << " " << n << " " << k << ": " << program.message();
          const auto lowered = lower_gpu(*program);
          ASSERT_TRUE(lowered.is_ok()) << m << " " << n << " " << k << ": " << lowered.message();
        }
}

TEST(MatmulMmaCuda, RandomConfigsOnOddShapes) {
  for (const DType t : {DType::kBFloat16, DType::kFloat16})
    for (const auto& w :
         {matmul(2, 2, 2, t), matmul(7, 13, 29, t), matmul(16, 8, 16, t), matmul(133, 5, 48, t),
          matmul(3, 140, 9, t), matmul(120, 150, 40, t), matmul(65, 34, 100, t)}) {
      expect_gpu_configs_right(matmul_mma_cuda(), w, gpu(), 4, 1);
      MatmulWorkload packed = w;
      packed.constant = {"a", "b"};
      expect_gpu_configs_right(matmul_mma_cuda(), packed, gpu(), 4, 1);
    }
}

TEST(MatmulMmaCuda, Bytes) {
  for (const auto& shape : {matmul(2, 2, 2), matmul(7, 13, 29), matmul(16, 8, 32), matmul(133, 5, 48),
                            matmul(3, 140, 9), matmul(120, 150, 64), matmul(65, 34, 200)})
    for (int form = 0; form < 4; ++form) {
      MatmulWorkload w = shape;
      w.dtype = DType::kInt8;
      w.transpose_b = (form & 1) != 0;
      if (!w.transpose_b || form == 3) w.constant = {"b"};
      w.bias = form >= 2;
      if (form == 2) w.narrow_out = DType::kUInt8;
      if (form == 3) w.narrow_out = DType::kInt8, w.residual = true, w.activation = Activation::kRelu;
      expect_gpu_configs_right(matmul_mma_cuda(), w, gpu(form % 2 == 0 ? "sm_80" : "sm_90a"), 3,
                               static_cast<uint32_t>(form));
    }
}

TEST(MatmulMmaCuda, EveryOperandForm) {
  for (int form = 0; form < 64; form += 3) {
    MatmulWorkload w = matmul(form % 5 == 0 ? 37 : 40, form % 7 == 0 ? 51 : 72, form % 4 == 0 ? 45 : 96,
                              (form & 1) != 0 ? DType::kBFloat16 : DType::kFloat16);
    w.transpose_a = (form & 2) != 0;
    w.transpose_b = (form & 4) != 0;
    w.bias = (form & 8) != 0;
    w.activation = (form & 16) != 0 ? Activation::kRelu : Activation::kNone;
    if (form % 4 == 0) w.constant = {"b"};
    if ((form & 32) != 0) w.narrow_out = w.dtype;
    w.residual = form % 5 == 0;
    w.batch = form % 3 == 0 && form % 2 == 0 ? 3 : 1;
    expect_gpu_configs_right(matmul_mma_cuda(), w, gpu("sm_80"), 2, static_cast<uint32_t>(form));
  }
}

double worst_error(const TensorCore& core, int64_t k) {
  return worst_sum(core, tolerance_of(matmul(2, 2, k)), k, 200, static_cast<uint64_t>(k),
                   [](std::mt19937_64& rng) { return rounded_to_bfloat16(drawn_float(rng)); });
}

// Longer sums are split: what tensor cores cut off would be taken for a wrong answer.
TEST(MatmulMmaCuda, BlocksSumUpWhatTheToleranceHasRoomFor) {
  for (const TensorCore& core : kTensorCores) {
    EXPECT_LE(worst_error(core, 1024), 0.7);
    EXPECT_LE(worst_error(core, 4096), 0.7);
  }
  EXPECT_GT(worst_error(kTensorCores[1], 32768), 1) << "the limit has a reason";
  const auto instance = matmul_mma_cuda().apply(matmul(64, 64, 65536), gpu());
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  EXPECT_EQ(space.at(space.default_index()).values().at("split_k"), 16);
  EXPECT_EQ(matmul_mma_cuda().supports(Workload(matmul(64, 64, 65537)), gpu()).reason,
            "needs k <= 65536, got 65537");
  // Whatever the config, no block sums up more than 4096 terms, which was measured to be right.
  const auto several = matmul_mma_cuda().apply(matmul(64, 64, 20000), gpu());
  ASSERT_TRUE(several.is_ok()) << several.message();
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    const Config config = (*several)->space().at((*several)->space().sample(random));
    const int64_t block = config.at("block_k"), steps = (20000 + block - 1) / block,
                  parts = config.at("split_k");
    EXPECT_LE((steps + parts - 1) / parts * block, 4096) << config.to_text();
  }
  MatmulWorkload bytes = matmul(64, 64, 65536, DType::kInt8);
  bytes.transpose_b = true;
  const auto exact = matmul_mma_cuda().apply(bytes, gpu());
  ASSERT_TRUE(exact.is_ok()) << exact.message();
  EXPECT_TRUE((*exact)->space().index_of((*exact)->space().at((*exact)->space().default_index())).is_ok());
}

TEST(MatmulMmaCuda, SchedulesReplayFromTheirText) {
  MatmulWorkload w = matmul(70, 56, 200);
  w.transpose_b = w.bias = true;
  w.constant = {"b"};
  expect_gpu_schedules_replay(matmul_mma_cuda(), w, gpu(), 10, 1);
}

TEST(MatmulMmaCuda, LargeSpaceForALargeShape) {
  const auto instance = matmul_mma_cuda().apply(matmul(1024, 1024, 1024), gpu("sm_80"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_GE((*instance)->space().size(), 10'000u);
}

}  // namespace
}  // namespace tuner
