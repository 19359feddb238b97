// matmul_npu: its loops, and random configs on odd shapes, whose programs run on the simulator, against the
// oracle.
#include <gtest/gtest.h>

#include <array>

#include "tests/templates/npu_template_check.h"

namespace tuner {
namespace {

MatmulWorkload product(int64_t m, int64_t n, int64_t k) {
  MatmulWorkload w{.m = m, .n = n, .k = k, .bias = true, .dtype = DType::kInt8};
  w.narrow_out = DType::kUInt8;
  return w;
}

TEST(MatmulNpu, TwoHundredConfigsOnOddShapes) {
  const std::vector<std::array<int64_t, 3>> shapes = {
      {37, 23, 29}, {1, 16, 16}, {64, 64, 64},   {5, 100, 33},  {130, 17, 65},
      {33, 2, 70},  {77, 50, 2}, {16, 129, 200}, {51, 66, 128}, {200, 31, 47}};
  int ran = 0;
  for (size_t n = 0; n < shapes.size(); ++n) {
    MatmulWorkload w = product(shapes[n][0], shapes[n][1], shapes[n][2]);
    w.transpose_a = n % 3 == 2;
    w.bias = n % 4 != 1;
    w.narrow_out = n % 2 == 0 ? DType::kUInt8 : DType::kInt8;
    if (n % 3 == 0) w.activation = {ActivationKind::kRelu};
    if (n % 3 == 1) w.constant = {"b"};
    w.transpose_b = n % 6 == 4;
    if (n == 4) w.activation = {ActivationKind::kClip, -3.5, 20};
    ran += expect_configs_equal(matmul_npu(), w, npu_target(), 20, static_cast<uint32_t>(100 + n));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(ran, 200);
}

TEST(MatmulNpu, OtherMachines) {
  int ran = 0;
  for (const char* name :
       {"npu -array=32x32", "npu -array=16x32 -banks=2", "npu -array=8x8 -bank_bytes=8 -scratchpad=32KiB",
        "npu -accumulators=16KiB -lanes=4 -queue=2",
        "npu -array=4x16 -bank_bytes=4 -burst=16 -dram_bytes=4"}) {
    MatmulWorkload w = product(45, 70, 39);
    ran += expect_configs_equal(matmul_npu(), w, npu_target(name), 6, 7);
    w.transpose_a = true;
    ran += expect_configs_equal(matmul_npu(), w, npu_target(name), 6, 8);
  }
  EXPECT_EQ(ran, 60);
}

TEST(MatmulNpu, TheArrayIsBusy) {
  const Target target = npu_target();
  const auto instance = matmul_npu().apply(Workload(product(512, 512, 512)), target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Config first = space.at(space.default_index());
  const double of_default = utilization(**instance, first, target);
  std::printf("512^3: %s: %.3f of the peak\n", first.to_text().c_str(), of_default);
  EXPECT_GE(of_default, 0.5);
  std::mt19937_64 rng(1);
  double best = of_default;
  for (int i = 0; i < 12; ++i) {
    const Config config = space.at(space.sample(rng));
    const double found = utilization(**instance, config, target);
    std::printf("%s: %.3f\n", config.to_text().c_str(), found);
    best = std::max(best, found);
  }
  EXPECT_GE(best, 0.85);
}

}  // namespace
}  // namespace tuner
