// pool2d_npu: random configs on odd shapes, whose programs run on the simulator, against the oracle.
#include <gtest/gtest.h>

#include "tests/templates/npu_template_check.h"

namespace tuner {
namespace {

Pool2dWorkload maxima(int64_t channels, int64_t side, int64_t kernel, int64_t stride,
                      DType dtype = DType::kUInt8) {
  Pool2dWorkload w{.channels = channels,
                   .in_height = side,
                   .in_width = side,
                   .kernel_height = kernel,
                   .kernel_width = kernel,
                   .stride = {stride, stride}};
  const int64_t pad = dtype == DType::kUInt8 ? kernel / 2 : 0;
  w.padding = {pad, pad, pad, pad};
  w.dtype = dtype;
  w.layout = "NHWC";
  return w;
}

TEST(Pool2dNpu, TwoHundredConfigsOnOddShapes) {
  std::vector<Pool2dWorkload> cases = {maxima(16, 9, 3, 2),
                                       maxima(20, 11, 2, 2),
                                       maxima(37, 8, 5, 1),
                                       maxima(70, 13, 3, 1),
                                       maxima(3, 17, 7, 3),
                                       maxima(64, 12, 3, 2),
                                       maxima(33, 10, 3, 2),
                                       maxima(50, 12, 2, 2, DType::kInt8),
                                       maxima(18, 9, 3, 1),
                                       maxima(24, 7, 3, 2, DType::kInt8),
                                       maxima(50, 12, 2, 2, DType::kInt8)};
  cases[1].in_width = 15;
  cases[2].batch = 2;
  cases[6].padding = {0, 1, 2, 1};
  // Channels fill words, and the border is -128.
  cases[7].channels = 48, cases[7].padding = {1, 1, 1, 1};
  cases[9].channels = 32, cases[9].padding = {0, 1, 1, 2};
  cases[8].kernel_width = 2;
  cases[8].padding = {1, 0, 1, 1};
  int ran = 0;
  for (size_t n = 0; n < cases.size(); ++n) {
    ran += expect_configs_equal(pool2d_npu(), cases[n], npu_target(), 20, static_cast<uint32_t>(700 + n));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(ran, 220);
}

// A border of int8 is -128, and what fills up a last tile is 0: there is none of both.
TEST(Pool2dNpu, ABorderOfInt8WantsWholeWords) {
  Pool2dWorkload w = maxima(40, 9, 3, 2, DType::kInt8);
  EXPECT_TRUE(pool2d_npu().supports(Workload(w), npu_target()).yes);
  w.padding = {1, 1, 1, 1};
  EXPECT_EQ(pool2d_npu().supports(Workload(w), npu_target()).reason,
            "needs padding 0 with int8, or a multiple of 16 channels, got 40");
  w.channels = 48;
  EXPECT_TRUE(pool2d_npu().supports(Workload(w), npu_target()).yes);
}

TEST(Pool2dNpu, OtherMachines) {
  int ran = 0;
  for (const char* name : {"npu -array=32x32 -bank_bytes=32", "npu -lanes=4 -banks=2",
                           "npu -bank_bytes=8 -scratchpad=32KiB -queue=2"})
    ran += expect_configs_equal(pool2d_npu(), maxima(41, 10, 3, 2), npu_target(name), 6, 7);
  EXPECT_EQ(ran, 18);
}

// A step reads one tap of 16 channels: 9 of them give one word.
TEST(Pool2dNpu, TheVectorUnitIsBusy) {
  const Target target = npu_target();
  const Workload w(maxima(64, 112, 3, 2));
  const auto instance = pool2d_npu().apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const Result<Program> program = (*instance)->instantiate(space.at(space.default_index()));
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine_of(target));
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  std::vector<uint8_t> dram(lowered->kernel.dram_bytes);
  const npu::Simulated run = npu::simulate(machine_of(target), lowered->kernel.code, dram);
  ASSERT_FALSE(run.fault) << run.fault->message;
  const double busy = 56.0 * 56 * 64 / 16 * 9 / static_cast<double>(run.cycles);
  std::printf("%.3f of the vector unit's peak\n", busy);
  EXPECT_GE(busy, 0.8);
}

}  // namespace
}  // namespace tuner
