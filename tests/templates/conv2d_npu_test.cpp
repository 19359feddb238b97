// conv2d_npu: random configs on odd shapes, whose programs run on the simulator, against the oracle; and how
// busy the array is.
#include <gtest/gtest.h>

#include "tests/templates/npu_template_check.h"

namespace tuner {
namespace {

constexpr auto convolution = [](auto... numbers) { return npu_convolution(numbers...); };

TEST(Conv2dNpu, TwoHundredConfigsOnOddShapes) {
  std::vector<Conv2dWorkload> cases = {convolution(3, 17, 20, 7, 2),  convolution(16, 9, 16, 3, 1),
                                       convolution(37, 8, 23, 3, 1),  convolution(20, 11, 50, 1, 1),
                                       convolution(33, 10, 17, 1, 2), convolution(48, 7, 70, 3, 2),
                                       convolution(8, 13, 33, 5, 1),  convolution(64, 6, 31, 3, 1),
                                       convolution(5, 20, 9, 2, 3),   convolution(18, 9, 40, 3, 1)};
  cases[1].padding = {0, 1, 2, 3};
  cases[2].in_width = 15;
  cases[2].batch = 2;
  cases[3].activation = {ActivationKind::kRelu};
  cases[5].narrow_out = DType::kInt8;
  cases[5].bias = false;
  cases[6].stride = {2, 1};
  cases[7].activation = {ActivationKind::kClip, -3, 6};
  cases[8].padding = {};
  cases[9].dilation = {2, 1};
  cases[9].padding = {2, 1, 2, 1};
  int ran = 0;
  for (size_t n = 0; n < cases.size(); ++n) {
    ran += expect_configs_equal(conv2d_npu(), cases[n], npu_target(), 20, static_cast<uint32_t>(300 + n));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(ran, 200);
}

TEST(Conv2dNpu, OtherMachines) {
  int ran = 0;
  for (const char* name :
       {"npu -array=32x32", "npu -array=16x32 -banks=2", "npu -array=8x8 -bank_bytes=8 -scratchpad=64KiB",
        "npu -accumulators=8KiB -queue=2"})
    ran += expect_configs_equal(conv2d_npu(), convolution(19, 10, 37, 3, 1), npu_target(name), 6, 7);
  EXPECT_EQ(ran, 24);
}

// Some of ResNet-50's: the default configs.
TEST(Conv2dNpu, TheArrayIsBusy) {
  const Target target = npu_target();
  for (const Conv2dWorkload& w : {convolution(64, 56, 64, 3, 1), convolution(256, 14, 256, 3, 1),
                                  convolution(256, 56, 64, 1, 1), convolution(512, 28, 256, 1, 2)}) {
    const auto instance = conv2d_npu().apply(Workload(w), target);
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const Config first = space.at(space.default_index());
    const double found = utilization(**instance, first, target);
    std::printf("%s: %s: %.3f of the peak\n", Workload(w).key().c_str(), first.to_text().c_str(), found);
    EXPECT_GE(found, 0.7);
  }
}

}  // namespace
}  // namespace tuner
