// An ONNX network becomes CUDA and runs: compiled by NVRTC, checked in the emulator, and run whole on the
// driver for tests, step by step against the reference.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "tests/models/networks.h"
#include "tests/models/onnx_model.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/gpu_model/fake_gpu.h"
#include "tuner/model/model_run.h"

namespace tuner {
namespace {

using testing::compile;
using testing::FakeSetting;
using testing::gpu_request;
using ::testing::HasSubstr;
using testing::network;

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
int64_t count(const std::string& text, const std::string& line) {
  int64_t n = 0;
  for (size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) ++n;
  return n;
}

class GpuModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::use_fake_gpu(); }
  void SetUp() override {
    if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
  }
  static std::string mlp() { return *network("mlp", {.image = 12, .narrower = 4}); }

  // Compiled for the GPU that the driver for tests has, and run there.
  void expect_right(const std::string& bytes) {
    const TemporaryFolder folder;
    const auto report = compile(gpu_request(folder, bytes));
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_THAT(report->device, HasSubstr("Fake GPU"));
    EXPECT_GT(report->checked_steps, 0u);
    ASSERT_TRUE(report->error.has_value());
    EXPECT_LT(*report->error, 1e-3);
    EXPECT_EQ(report->emulated.checked, report->kernels);
    EXPECT_EQ(report->emulated.skipped, 0u);
  }
};

TEST_F(GpuModel, AnMlpIsRightInTheEmulatorAndOnTheDriver) { expect_right(mlp()); }

TEST_F(GpuModel, ASmallImageNetworkOfDepthwiseConvolutionsIsRight) {
  expect_right(*network("mobilenetv2", {.image = 32, .narrower = 8}));
}

// A step of several launches, which hand on what they made in memory of the context.
TEST_F(GpuModel, AStepOfSeveralLaunchesHasWorkspace) {
  OnnxModel model;
  model.input("x", DType::kFloat32, {3, 5, 70});
  model.node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{1}}});
  model.output("y", DType::kFloat32, {3, 5, 70});
  const TemporaryFolder folder;
  const CompileRequest request = gpu_request(folder, model.bytes());
  const auto report = compile(request);
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_LT(*report->error, 1e-5);
  const auto compiled = CompiledModel::open(request.output);
  ASSERT_TRUE(compiled.is_ok());
  EXPECT_GT(compiled->plan().workspace_bytes, 256) << "two workspaces or more";
}

TEST_F(GpuModel, TwoArchitecturesInOneLibraryEachServeTheirOwn) {
  const TemporaryFolder folder;
  CompileRequest request = gpu_request(folder, mlp(), "cuda -arch=sm_80");
  request.more_targets = {*parse_target("cuda -arch=sm_90a")};
  const auto report = compile(request);
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_EQ(report->emulated.checked, 2 * report->kernels);
  EXPECT_THAT(text_of(request.output + "/include/net.h"), HasSubstr("cuda -arch=sm_80, cuda -arch=sm_90a"));
  std::string outputs[2];
  for (const char* arch : {"80", "90"}) {
    const FakeSetting device("TUNER_FAKE_CUDA_ARCH", arch);
    auto run = ModelRun::open(request.output, {});
    ASSERT_TRUE(run.is_ok()) << arch << ": " << run.message();
    ASSERT_TRUE(run->run().is_ok());
    outputs[arch[0] == '9'].assign(run->output(0).as<char>(), static_cast<size_t>(run->output(0).bytes()));
  }
  EXPECT_EQ(outputs[0].size(), outputs[1].size());
  // sm_90a is code for that architecture alone, and sm_80 for newer ones of its family.
  {
    const FakeSetting newer("TUNER_FAKE_CUDA_ARCH", "91");
    EXPECT_FALSE(ModelRun::open(request.output, {}).is_ok());
  }
  {
    const FakeSetting newer("TUNER_FAKE_CUDA_ARCH", "86");
    EXPECT_TRUE(ModelRun::open(request.output, {}).is_ok());
  }
  // A GPU that neither is for.
  const FakeSetting device("TUNER_FAKE_CUDA_ARCH", "100");
  const auto refused = ModelRun::open(request.output, {});
  ASSERT_FALSE(refused.is_ok());
  EXPECT_THAT(refused.message(), HasSubstr("is compiled for sm_80, sm_90a, and GPU 0 here is"));
  EXPECT_EQ(count(refused.message(), "\n"), 0);
}

TEST_F(GpuModel, ProductsTakeTf32WhereItIsAllowed) {
  const TemporaryFolder folder;
  // Tensor cores take two rows or more.
  CompileRequest request = gpu_request(folder, *network("mlp", {.image = 12, .batch = 4, .narrower = 4}));
  request.allow_tf32 = true;
  const auto report = compile(request);
  ASSERT_TRUE(report.is_ok()) << report.message();
  EXPECT_THAT(text_of(request.output + "/plan.json"), HasSubstr("matmul_tf32_cuda"));
  EXPECT_LT(*report->error, 4e-3);
  request.target = *resolve_target("cpu");
  EXPECT_THAT(compile(request).message(), HasSubstr("--allow-tf32: \"llvm"));
}

// One launch per run from the second on; the pointers are the context's own.
TEST_F(GpuModel, RunsBecomeOneGraphLaunch) {
  const TemporaryFolder folder;
  const CompileRequest request = gpu_request(folder, mlp());
  ASSERT_TRUE(compile(request).is_ok());
  auto run = ModelRun::open(request.output, {});
  ASSERT_TRUE(run.is_ok()) << run.message();
  const FakeSetting queued("TUNER_FAKE_CUDA_QUEUED", folder.file("queued"));
  std::vector<std::string> outputs;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(run->run().is_ok());
    outputs.emplace_back(run->output(0).as<char>(), static_cast<size_t>(run->output(0).bytes()));
  }
  const std::string log = text_of(folder.file("queued"));
  EXPECT_EQ(count(log, "graph"), 3) << log;
  EXPECT_GE(count(log, "kernel"), run->model().table().num_steps);
  for (const std::string& out : outputs) EXPECT_EQ(out, outputs[0]);
}

TEST_F(GpuModel, ADriverThatRecordsNothingRunsTheLaunches) {
  const TemporaryFolder folder;
  const CompileRequest request = gpu_request(folder, mlp());
  ASSERT_TRUE(compile(request).is_ok());
  const FakeSetting none("TUNER_FAKE_CUDA_NO_GRAPHS", "1");
  auto run = ModelRun::open(request.output, {});
  ASSERT_TRUE(run.is_ok()) << run.message();
  ASSERT_TRUE(run->run().is_ok());
  const std::string first(run->output(0).as<char>(), static_cast<size_t>(run->output(0).bytes()));
  const FakeSetting queued("TUNER_FAKE_CUDA_QUEUED", folder.file("queued"));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(run->run().is_ok());
  EXPECT_EQ(count(text_of(folder.file("queued")), "graph"), 0);
  EXPECT_EQ(first, std::string(run->output(0).as<char>(), first.size()));
}

TEST_F(GpuModel, ContextsShareOneCopyOfTheWeights) {
  const TemporaryFolder folder;
  const CompileRequest request = gpu_request(folder, mlp());
  ASSERT_TRUE(compile(request).is_ok());
  const FakeSetting copies("TUNER_FAKE_CUDA_COPIES", folder.file("copies"));
  const auto model = CompiledModel::open(request.output);
  ASSERT_TRUE(model.is_ok()) << model.message();
  auto one = model->context(), other = model->context();
  ASSERT_TRUE(one.is_ok() && other.is_ok()) << one.message() << other.message();
  const auto weights = str(std::filesystem::file_size(request.output + "/net.weights"), " to device");
  EXPECT_EQ(count(text_of(folder.file("copies")), weights), 1);
  const tuner_model& table = model->table();
  AlignedBuffer in(table.inputs[0].bytes), out_one(table.outputs[0].bytes), out_other(table.outputs[0].bytes);
  for (int64_t i = 0; i < in.bytes() / 4; ++i) in.as<float>()[i] = static_cast<float>(i % 7) / 7;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(one->run({in.data()}, {out_one.data()}).is_ok());
    ASSERT_TRUE(other->run({in.data()}, {out_other.data()}).is_ok());
    EXPECT_EQ(std::memcmp(out_one.data(), out_other.data(), static_cast<size_t>(out_one.bytes())), 0);
  }
}

// --- what goes wrong, in one line each ---
void expect_line(const Status& status, const std::string& says) {
  ASSERT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr(says));
  EXPECT_EQ(count(status.message(), "\n"), 0) << status.message();
}

TEST_F(GpuModel, WhatGoesWrongIsOneLine) {
  const TemporaryFolder folder;
  const CompileRequest request = gpu_request(folder, mlp());
  ASSERT_TRUE(compile(request).is_ok());
  {
    const FakeSetting device("TUNER_FAKE_CUDA_ARCH", "80");
    expect_line(CompiledModel::open(request.output).status(), "is compiled for sm_90a, and GPU 0 here is");
  }
  {
    const FakeSetting driver("TUNER_FAKE_CUDA_DRIVER", "12040");
    expect_line(CompiledModel::open(request.output).status(), "update the driver");
  }
  {
    const FakeSetting memory("TUNER_FAKE_CUDA_MEMORY", "1000");
    expect_line(CompiledModel::open(request.output).status(), "the GPU is out of memory");
  }
  {
    const FakeSetting library("TUNER_LIBCUDA", "/none/libcuda.so");
    expect_line(CompiledModel::open(request.output).status(), "libcuda.so.1 cannot be loaded");
  }
  testing::use_fake_gpu();
  std::ofstream(request.output + "/net.weights", std::ios::binary | std::ios::app) << "more";
  expect_line(CompiledModel::open(request.output).status(), "net.weights: has another length");
}

TEST_F(GpuModel, WhatAModelForGpusCannotHaveIsRefused) {
  const TemporaryFolder folder;
  CompileRequest request = gpu_request(folder, mlp());
  request.uses = {"node1=lib.so:f"};
  expect_line(compile(request).status(), "--use node1=lib.so:f: a step of a model for GPUs");
  request.uses.clear();
  request.blocks = true;
  expect_line(compile(request).status(), "--blocks: images of models for GPUs are plain");
  request.blocks = false;
  request.more_targets = {*resolve_target("cpu")};
  expect_line(compile(request).status(), "a library is for one CPU, or for several GPUs");
  request.more_targets = {*parse_target("cuda -arch=sm_80")};
  request.tune = true;
  expect_line(compile(request).status(), "several --target: kernels are tuned on the GPU that is here");
}

// As docs/models.md shows: a program with host pointers, and one with device pointers on a stream of its own.
TEST_F(GpuModel, AProgramInCRunsIt) {
  const testing::CommandLine shell{TUNER_BIN_DIR};
  const TemporaryFolder folder;
  CompileRequest request = gpu_request(folder, mlp());
  request.output = (shell.folder() / "net").string();
  ASSERT_TRUE(compile(request).is_ok());
  const auto model = CompiledModel::open(request.output);
  ASSERT_TRUE(model.is_ok()) << model.message();
  const std::string in = model->table().inputs[0].name, out = model->table().outputs[0].name;
  shell.write("program.c", R"(#include <stdio.h>
#include "net.h"

static float in[NET_X_BYTES / 4], out[NET_Y_BYTES / 4], again[NET_Y_BYTES / 4];

static int fail(int32_t code) {
  fprintf(stderr, "%s\n", tuner_gpu_error(code));
  return 1;
}

int main(void) {
  tuner_gpu_context *context, *other;
  tuner_gpu_pointer x, y, z;
  void* stream;
  size_t i;
  int32_t code = net_create("net/net.weights", NULL, &context);
  if (code != 0) return fail(code);
  for (i = 0; i < NET_X_BYTES / 4; ++i) in[i] = (float)(i % 7) / 7;
  if ((code = net_run(context, in, out)) != 0) return fail(code);
  if ((code = net_share(context, NULL, &other)) != 0) return fail(code);
  { /* device pointers, on a stream of the program's own */
    const tuner_gpu_driver* const driver = &other->shared->driver;
    int round;
    if (driver->allocate(&x, NET_X_BYTES) || driver->allocate(&y, NET_Y_BYTES) ||
        driver->allocate(&z, NET_Y_BYTES) || driver->stream_create(&stream, 0))
      return 2;
    driver->to_device(x, in, NET_X_BYTES);
    for (round = 0; round < 3; ++round)
      if ((code = net_run_on(other, stream, (const float*)(size_t)x, (float*)(size_t)y)) != 0) return fail(code);
    driver->stream_wait(stream);
    driver->to_host(again, y, NET_Y_BYTES);
    if (memcmp(out, again, NET_Y_BYTES) != 0) return 3;
    /* other pointers, then the first ones again */
    for (round = 0; round < 3; ++round) {
      driver->fill(y, 0, NET_Y_BYTES, stream);
      driver->fill(z, 0, NET_Y_BYTES, stream);
      code = net_run_on(other, stream, (const float*)(size_t)x, (float*)(size_t)(round == 2 ? y : z));
      if (code != 0) return fail(code);
      driver->stream_wait(stream);
      driver->to_host(again, round == 2 ? y : z, NET_Y_BYTES);
      if (memcmp(out, again, NET_Y_BYTES) != 0) return 5;
    }
    code = net_run_on(other, stream, (const float*)(size_t)(x + 4), (float*)(size_t)y);
    if (code != TUNER_MODEL_UNALIGNED) return 4;
  }
  net_destroy(other);
  net_destroy(context);
  for (i = 0; i < NET_Y_BYTES / 4; ++i) printf("%.9g\n", (double)out[i]);
  return 0;
}
)");
  std::string text = shell.read("program.c");
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, from.size(), to);
  };
  const std::string header = shell.read("net/include/net.h");
  const auto macro_of = [&](size_t nth) {
    size_t at = 0;
    for (size_t n = 0; n <= nth; ++n) at = header.find("#define NET_", at) + 1;
    return header.substr(at + 7, header.find(' ', at + 8) - at - 7);
  };
  ASSERT_THAT(macro_of(1), HasSubstr("_BYTES")) << header;
  replace("NET_X_BYTES", macro_of(1));
  replace("NET_Y_BYTES", macro_of(2));
  shell.write("program.c", text);
  std::string printed;
  for (const char* compiler : {"cc -std=c11 -O2 -Wall -Wextra -Werror -pedantic program.c",
                               "c++ -std=c++17 -O2 -Wall -Wextra -Werror -x c++ program.c -x none"}) {
    const auto ran = shell.run(
        str(compiler, " -Inet/include -Lnet/lib -lnet -Wl,-rpath,$PWD/net/lib -o program\n./program"));
    ASSERT_EQ(ran.exit_code, 0) << ran.err << header;
    printed = ran.out;
  }
  auto context = model->context();
  ASSERT_TRUE(context.is_ok());
  AlignedBuffer x(model->table().inputs[0].bytes), y(model->table().outputs[0].bytes);
  for (int64_t i = 0; i < x.bytes() / 4; ++i) x.as<float>()[i] = static_cast<float>(i % 7) / 7;
  ASSERT_TRUE(context->run({x.data()}, {y.data()}).is_ok());
  std::string expected;
  for (int64_t i = 0; i < y.bytes() / 4; ++i) {
    char line[32];
    std::snprintf(line, sizeof line, "%.9g\n", static_cast<double>(y.as<float>()[i]));
    expected += line;
  }
  EXPECT_EQ(printed, expected);
  EXPECT_EQ(shell.run("nm -D --defined-only net/lib/libnet.so | sed 's/.* //'").out, "tuner_net_model\n");
  EXPECT_EQ(shell.run("readelf -d net/lib/libnet.so | grep -c NEEDED || true").out, "0\n");
}

TEST_F(GpuModel, TimesAreTheDevices) {
  const TemporaryFolder folder;
  const CompileRequest request = gpu_request(folder, mlp());
  ASSERT_TRUE(compile(request).is_ok());
  auto run = ModelRun::open(request.output, {});
  ASSERT_TRUE(run.is_ok()) << run.message();
  const auto times = time_models({&*run}, 2);
  ASSERT_TRUE(times.is_ok()) << times.message();
  // The driver for tests counts 2 us per launch, and 0.5 us per round of blocks.
  for (const double ns : times->front().step_ns) {
    EXPECT_GE(ns, 2000);
    EXPECT_LT(ns, 1e6);
  }
}

// The last of this process: a lost device stays lost.
TEST_F(GpuModel, ALostDeviceIsOneLine) {
  const TemporaryFolder folder;
  const CompileRequest request = gpu_request(folder, mlp());
  ASSERT_TRUE(compile(request).is_ok());
  auto run = ModelRun::open(request.output, {});
  ASSERT_TRUE(run.is_ok()) << run.message();
  ASSERT_TRUE(run->run().is_ok());
  std::ofstream(folder.file("lost")) << "";
  const FakeSetting lost("TUNER_FAKE_CUDA_LOST", folder.file("lost"));
  expect_line(run->run(), "the GPU is lost");
}

}  // namespace
}  // namespace tuner
