// Networks that people run, narrower and smaller than published, and random ones, as models for GPUs: in the
// emulator kernel by kernel, and whole on the driver for tests.
#include <gmock/gmock.h>

#include "tests/models/networks.h"
#include "tests/models/recurrent_networks.h"
#include "tests/random_seed.h"
#include "tests/tuner/compile/random_model.h"
#include "tests/tuner/gpu_model/fake_gpu.h"
#include "tests/tuner/gpu_model/small_bert.h"

namespace tuner {
namespace {

using testing::compile;
using testing::gpu_request;

class GpuNetworks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::use_fake_gpu(); }
  void SetUp() override {
    if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  }
  static void expect_right(const std::string& bytes, double error) {
    const TemporaryFolder folder;
    const auto report = compile(gpu_request(folder, bytes));
    ASSERT_TRUE(report.is_ok()) << report.message();
    ASSERT_TRUE(report->error.has_value()) << report->not_run;
    EXPECT_LT(*report->error, error);
    EXPECT_EQ(report->emulated.checked, report->kernels);
  }
};

TEST_F(GpuNetworks, ResNet50) {
  expect_right(*testing::network("resnet50", {.image = 32, .narrower = 16}), 1e-3);
}
TEST_F(GpuNetworks, UNet) { expect_right(*testing::network("unet", {.image = 32, .narrower = 16}), 1e-3); }

TEST_F(GpuNetworks, Bert) { expect_right(testing::SmallBert({}).bytes(), 1e-3); }

TEST_F(GpuNetworks, RecurrentLayersAreRefusedWithTheirStep) {
  const std::string& name = testing::recurrent_network_names().front();
  const TemporaryFolder folder;
  const auto report = compile(gpu_request(folder, *testing::recurrent_network(name)));
  ASSERT_FALSE(report.is_ok());
  EXPECT_THAT(report.message(), ::testing::HasSubstr("net.onnx: step "));
  EXPECT_THAT(report.message(), ::testing::HasSubstr("program_cuda: has no recurrent layers"));
  EXPECT_EQ(std::ranges::count(report.message(), '\n'), 0) << report.message();
}

TEST_F(GpuNetworks, RandomOnes) {
  for (const uint32_t seed : Seeds(700, 4)) {
    SCOPED_TRACE(seed);
    const TemporaryFolder folder;
    const auto report = compile(gpu_request(folder, testing::RandomModel(seed).bytes()));
    EXPECT_TRUE(report.is_ok()) << report.message();
    if (report) {
      EXPECT_TRUE(report->error.has_value()) << report->not_run;
      EXPECT_EQ(report->emulated.checked, report->kernels);
    }
  }
}

}  // namespace
}  // namespace tuner
