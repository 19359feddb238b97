// depthwise_conv2d_npu: random configs on odd shapes, whose programs run on the simulator, against the
// oracle.
#include <gtest/gtest.h>

#include "tests/templates/npu_template_check.h"

namespace tuner {
namespace {

Conv2dWorkload depthwise(int64_t channels, int64_t side, int64_t kernel, int64_t stride) {
  return npu_convolution(channels, side, channels, kernel, stride, channels);
}

TEST(DepthwiseConv2dNpu, TwoHundredConfigsOnOddShapes) {
  std::vector<Conv2dWorkload> cases = {
      depthwise(16, 9, 3, 1), depthwise(20, 11, 3, 2), depthwise(37, 8, 5, 1),  depthwise(70, 13, 3, 1),
      depthwise(3, 17, 7, 2), depthwise(48, 7, 1, 1),  depthwise(33, 10, 3, 1), depthwise(50, 12, 2, 3),
      depthwise(18, 9, 3, 1), depthwise(24, 6, 3, 1)};
  cases[1].in_width = 15;
  cases[2].batch = 2;
  cases[3].activation = {ActivationKind::kRelu};
  cases[5].narrow_out = DType::kInt8;
  cases[6].padding = {0, 1, 2, 3};
  cases[7].bias = false;
  cases[8].dilation = {2, 1};
  cases[9].padding = {};
  int ran = 0;
  for (size_t n = 0; n < cases.size(); ++n) {
    ran += expect_configs_equal(depthwise_conv2d_npu(), cases[n], npu_target(), 20,
                                static_cast<uint32_t>(500 + n));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(ran, 200);
}

TEST(DepthwiseConv2dNpu, OtherMachines) {
  int ran = 0;
  for (const char* name :
       {"npu -array=32x32", "npu -array=16x32 -lanes=8", "npu -accumulators=8KiB -queue=2"})
    ran += expect_configs_equal(depthwise_conv2d_npu(), depthwise(41, 10, 3, 1), npu_target(name), 6, 7);
  EXPECT_EQ(ran, 18);
}

// 9 taps of 16 channels take 9 cycles of the vector unit: it is busy most of the time.
TEST(DepthwiseConv2dNpu, TheVectorUnitIsBusy) {
  const Target target = npu_target();
  const Workload w(depthwise(128, 28, 3, 1));
  const auto instance = depthwise_conv2d_npu().apply(w, target);
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  const Result<Program> program =
      (*instance)->instantiate((*instance)->space().at((*instance)->space().default_index()));
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine_of(target));
  ASSERT_TRUE(lowered.is_ok()) << lowered.message();
  std::vector<uint8_t> dram(lowered->kernel.dram_bytes);
  const npu::Simulated run = npu::simulate(machine_of(target), lowered->kernel.code, dram);
  const double busy = 28.0 * 28 * 128 / 16 * 9 / static_cast<double>(run.cycles);
  std::printf("%.3f of the vector unit's peak\n", busy);
  EXPECT_GE(busy, 0.5);
}

}  // namespace
}  // namespace tuner
