// Commands on a model for GPUs: with the driver for tests, without one, and what is refused.
#include <gmock/gmock.h>

#include "tests/models/networks.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/gpu_model/fake_gpu.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuCli : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::use_fake_gpu(); }
  void SetUp() override {
    if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
    shell_.write("mlp.onnx", *testing::network("mlp", {.image = 12, .narrower = 4}));
  }
  CommandResult compile(const std::string& options) const {
    return shell_.run("tuner compile mlp.onnx -o net --name net --no-tune --db none.db " + options);
  }
  // One line on stderr that says this, and nothing written.
  void expect_refused(const CommandResult& result, const std::string& says) const {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(GpuCli, CompilesRunsAndShows) {
  const CommandResult compiled = compile("--target 'cuda -arch=sm_80' --target 'cuda -arch=sm_90a'");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("checked in the emulator: "));
  EXPECT_THAT(compiled.out, HasSubstr("run on Fake GPU"));
  EXPECT_THAT(compiled.out, HasSubstr("checked: largest error"));
  const CommandResult ran = shell_.run("tuner run net --profile");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("matmul"));
  EXPECT_THAT(ran.out, HasSubstr("of the sum"));
  for (const char* form : {"graph", "plan", "memory", "layers"}) {
    const CommandResult shown = shell_.run(str("tuner show net --as ", form));
    EXPECT_EQ(shown.exit_code, 0) << form << ": " << shown.err;
    EXPECT_FALSE(shown.out.empty()) << form;
  }
  const CommandResult same = shell_.run("tuner run net --before net");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("before/now"));
}

// The layers go to a GPU host as candidates; what is measured there is what the library is built of.
TEST_F(GpuCli, APackOfItsLayersTunesIt) {
  const CommandResult packed = shell_.run(
      "tuner extract mlp.onnx -o tasks.json --target 'cuda -arch=sm_90a'\n"
      "tuner pack tasks.json -o net.pack --candidates 3 --db gpu.db");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const CommandResult measured = shell_.run(str("export TUNER_LIBNVML=", TUNER_FAKE_CUDA,
                                                "\nrunner run-pack net.pack -o results.jsonl --deadline 120\n"
                                                "tuner records import results.jsonl --db gpu.db"));
  ASSERT_EQ(measured.exit_code, 0) << measured.out << measured.err;
  const CommandResult compiled = shell_.run(
      "tuner compile mlp.onnx -o net --name net --no-tune --db gpu.db --target 'cuda -arch=sm_90a'");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("checked: largest error"));
  EXPECT_THAT(compiled.err, Not(HasSubstr("are not tuned for just their shape"))) << compiled.err;
  EXPECT_THAT(shell_.read("net/plan.json"), HasSubstr("\"time_ns\""));
}

// The kernels are checked; the whole is not run, and the output says so.
TEST_F(GpuCli, CompilesWithoutAGpu) {
  const CommandResult compiled = shell_.run(
      "export TUNER_LIBCUDA=/none\ntuner compile mlp.onnx -o net --name net --no-tune --db none.db "
      "--target 'cuda -arch=sm_90a'");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("checked in the emulator: "));
  EXPECT_THAT(compiled.out, Not(HasSubstr("checked: largest error")));
  EXPECT_THAT(compiled.err, HasSubstr("not run, and not measured: cuda -arch=sm_90a is not this machine"));
  expect_refused(shell_.run("TUNER_LIBCUDA=/none tuner run net"),
                 "no GPU: the driver library cannot be loaded");
}

TEST_F(GpuCli, RefusesInOneLine) {
  expect_refused(compile("--target 'cuda -arch=sm_90a' --use node1=lib.so:f"),
                 "--use node1=lib.so:f: a step of a model");
  expect_refused(compile("--target 'cuda -arch=sm_90a' --blocks"),
                 "--blocks: images of models for GPUs are plain");
  expect_refused(compile("--target 'cuda -arch=sm_90a -emulated'"), "leave -emulated out");
  expect_refused(compile("--allow-tf32"), "has no TF32");
  EXPECT_TRUE(shell_.tree("net").empty());
}

}  // namespace
}  // namespace tuner
