// The example applications: configured, built and linked as an application would, from a clean folder, by
// CMake, by pkg-config, and with the thread sanitizer; every answer held against the interpreter's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler_core/base/elements.h"
#include "compiler_core/oracle/oracle.h"
#include "templates/schedule_template.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr char kRight[] =
    "right: conv and dense, 50 calls each from 8 threads at once, dense on a pool of 2\n";

// Every operator and type, odd sizes, on one thread and on several.
constexpr char kOperators[] = R"([
  {"name": "conv", "op": "conv2d", "data": [1, 5, 9, 11], "weight": [7, 5, 3, 2], "stride": [2, 1], "padding": [1, 0],
   "bias": true, "activation": "relu", "constant": ["weight"], "target": "cpu -threads=3"},
  {"name": "depthwise", "op": "conv2d", "data": [1, 16, 8, 8], "weight": [16, 1, 3, 3], "padding": 1, "groups": 16},
  {"name": "dense", "op": "matmul", "a": [13, 37], "b": [37, 29], "bias": true, "residual": true, "constant": ["b"],
   "target": "cpu -threads=2"},
  {"name": "dense_raw", "op": "matmul", "a": [13, 37], "b": [37, 29], "transpose_a": false},
  {"name": "dense_bf16", "op": "matmul", "a": [13, 36], "b": [36, 32], "dtype": "bfloat16", "constant": ["b"]},
  {"name": "dense_int8", "op": "matmul", "a": [13, 36], "b": [36, 32], "dtype": "int8", "constant": ["b"], "bias": true},
  {"name": "dense_brain", "op": "matmul", "a": [13, 36], "b": [36, 32], "dtype": "bfloat16", "out_dtype": "bfloat16"},
  {"name": "dense_f16", "op": "matmul", "a": [13, 36], "b": [36, 32], "dtype": "float16", "constant": ["b"]},
  {"name": "dense_u8", "op": "matmul", "a": [13, 36], "b": [36, 32], "dtype": "int8", "out_dtype": "uint8", "constant": ["b"]},
  {"name": "conv_bf16", "op": "conv2d", "data": [1, 5, 9, 11], "weight": [7, 5, 3, 2], "stride": [2, 1],
   "dtype": "bfloat16", "constant": ["weight"], "target": "cpu -threads=2"},
  {"name": "conv_u8", "op": "conv2d", "data": [1, 8, 9, 11], "weight": [16, 8, 1, 1], "dtype": "int8", "out_dtype": "uint8",
   "layout": "NCHW8c", "bias": true},
  {"name": "pool", "op": "pool2d", "data": [1, 8, 9, 11], "kernel": [3, 2], "pooling": "average"},
  {"name": "soft", "op": "softmax", "rows": 7, "columns": 19, "target": "cpu -threads=2"},
  {"name": "norm", "op": "layer_norm", "rows": 7, "columns": 19},
  {"name": "mean", "op": "reduce", "rows": 7, "columns": 19, "reduction": "mean"},
  {"name": "turn", "op": "transpose", "rows": 7, "columns": 19},
  {"name": "add", "op": "elementwise", "rows": 7, "columns": 19, "bias": true, "activation": "relu"}
])";

class ExamplesTest : public ::testing::Test {
 protected:
  ExamplesTest() {
    fs::create_symlink(fs::path(TUNER_SOURCE_DIR) / "examples", shell_.folder() / "examples");
  }
  void expect_success(const std::string& script) {
    const CommandResult ran = shell_.run(script);
    EXPECT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
  }
  std::string output_of(const std::string& script) {
    const CommandResult ran = shell_.run(script);
    EXPECT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
    return ran.out;
  }
  bool compiler_has_tsan() {
    shell_.write("probe.c", "int main(void) { return 0; }\n");
    return shell_.run("cc -fsanitize=thread probe.c -o probe && ./probe").exit_code == 0;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(ExamplesTest, TheCProgramLinksTheLibraryByCMakeSharedAndStatic) {
  expect_success("tuner build examples/app_c/kernels.json -o kernels --name app_kernels");
  expect_success("cmake -S examples/app_c -B app -DCMAKE_PREFIX_PATH=$PWD/kernels && cmake --build app");
  EXPECT_EQ(output_of("app/app_c"), kRight);
  EXPECT_EQ(output_of("app/app_c_static"), kRight);
  EXPECT_THAT(output_of("ldd app/app_c"), HasSubstr("libapp_kernels.so => " + shell_.folder().string()));
  EXPECT_THAT(output_of("ldd app/app_c_static"), Not(HasSubstr("libapp_kernels")));
  // The package goes where the folder goes.
  expect_success("mv kernels moved && rm -r app");
  expect_success(
      "cmake -S examples/app_c -B app -DCMAKE_PREFIX_PATH=$PWD/moved && cmake --build app && app/app_c");
}

TEST_F(ExamplesTest, TheCProgramLinksTheLibraryByPkgConfig) {
  if (shell_.run("pkg-config --version").exit_code != 0) GTEST_SKIP() << "no pkg-config here";
  expect_success("tuner build examples/app_c/kernels.json -o kernels --name app_kernels");
  EXPECT_EQ(
      output_of("export PKG_CONFIG_PATH=$PWD/kernels/lib/pkgconfig\n"
                "cc -std=c11 -O2 -Wall -Wextra -Werror -pedantic examples/app_c/main.c "
                "$(pkg-config --cflags --libs app_kernels) -lm -Wl,-rpath,$PWD/kernels/lib -o app\n./app"),
      kRight);
}

TEST_F(ExamplesTest, TheCProgramRunsFromEightThreadsUnderTheThreadSanitizer) {
  if (!compiler_has_tsan()) GTEST_SKIP() << "no thread sanitizer here";
  expect_success("tuner build examples/app_c/kernels.json -o kernels --name app_kernels");
  expect_success(
      "cmake -S examples/app_c -B app -DCMAKE_PREFIX_PATH=$PWD/kernels -DCMAKE_BUILD_TYPE=RelWithDebInfo "
      "-DCMAKE_C_FLAGS='-fsanitize=thread -Wall -Wextra -Werror' && cmake --build app");
  // Both ways to sleep: after a spin, and at once.
  EXPECT_EQ(output_of("TSAN_OPTIONS=halt_on_error=1 app/app_c"), kRight);
  expect_success(
      "cc -std=c11 -g -O1 -fsanitize=thread -DTUNER_POOL_SPINS=0 -Ikernels/include examples/app_c/main.c "
      "kernels/lib/libapp_kernels.a -lm -pthread -o sleepy");
  EXPECT_EQ(output_of("TSAN_OPTIONS=halt_on_error=1 ./sleepy"), kRight);
}

TEST_F(ExamplesTest, APackageForAnotherProcessorIsRefused) {
  expect_success(
      "tuner build examples/app_c/kernels.json -o kernels --name app_kernels "
      "--target 'llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu'");
  const CommandResult refused = shell_.run("cmake -S examples/app_c -B app -DCMAKE_PREFIX_PATH=$PWD/kernels");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("app_kernels is built for aarch64, not for"));
}

// The elements an argument of a kernel had, as app_cpp wrote them.
std::vector<double> elements(const std::string& bytes, const Buffer& buffer) {
  EXPECT_EQ(static_cast<int64_t>(bytes.size()), buffer->bytes()) << buffer->name;
  if (static_cast<int64_t>(bytes.size()) != buffer->bytes()) return {};
  return load_elements(bytes.data(), buffer->elements(), buffer->dtype);
}

TEST_F(ExamplesTest, EveryKernelOfALibraryAgreesWithTheInterpreter) {
  shell_.write("operators.json", kOperators);
  expect_success("tuner build operators.json -o kernels --name app_kernels");
  const std::string sanitize =
      compiler_has_tsan() ? "-DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS=-fsanitize=thread" : "";
  expect_success(str("cmake -S examples/app_cpp -B app -DCMAKE_PREFIX_PATH=$PWD/kernels ", sanitize,
                     " && cmake --build app"));
  const std::string said = output_of("mkdir data && TSAN_OPTIONS=halt_on_error=1 app/app_cpp data");
  const json manifest = json::parse(shell_.read("kernels/manifest.json"));
  ASSERT_EQ(manifest.at("kernels").size(), 17u);
  for (const json& kernel : manifest.at("kernels")) {
    const auto function = kernel.at("function").get<std::string>();
    EXPECT_THAT(said, HasSubstr("the same from 8 threads: " + kernel.at("workload").get<std::string>()));
    const auto workload = workload_from_key(kernel.at("workload").get<std::string>());
    ASSERT_TRUE(workload.is_ok()) << workload.message();
    const Program program = workload->compute();
    const std::vector<Buffer> buffers = unpacked_args(program);
    std::vector<std::vector<double>> args;
    std::vector<double> shipped;
    for (const Buffer& b : buffers) {
      const std::vector<double> values = elements(shell_.read("data/" + function + "." + b->name), b);
      ASSERT_FALSE(values.empty()) << function << "." << b->name;
      const bool is_output = b->role == BufferRole::kOutput;
      if (is_output) shipped = values;
      args.push_back(is_output ? std::vector<double>() : values);
    }
    const Status interpreted = interpret(program, args);
    ASSERT_TRUE(interpreted.is_ok()) << function << ": " << interpreted.message();
    const std::vector<double>& right = args.back();
    ASSERT_EQ(right.size(), shipped.size()) << function;
    const AnyTemplate* t = find_template(kernel.at("template").get<std::string>());
    ASSERT_NE(t, nullptr);
    const Tolerance tolerance = t->tolerance(*workload);
    for (size_t i = 0; i < right.size(); ++i)
      ASSERT_LE(std::abs(shipped[i] - right[i]), tolerance.absolute + tolerance.relative * std::abs(right[i]))
          << function << " element " << i << " is " << shipped[i] << ", the interpreter has " << right[i];
  }
}

TEST_F(ExamplesTest, TheNetworkRunsBeforeAndAfterItsFirstLayerIsTuned) {
  const std::string before = output_of(
      "cmake -S examples/two_layer_network -B network >&2 && cmake --build network >&2 && "
      "network/two_layer_network");
  EXPECT_THAT(before, HasSubstr("no tuned first layer is linked yet"));
  expect_success("tuner build examples/two_layer_network/first_layer.json -o first_layer");
  const std::string after = output_of(
      "cmake -S examples/two_layer_network -B network -DCMAKE_PREFIX_PATH=$PWD/first_layer >&2 && "
      "cmake --build network >&2 && network/two_layer_network");
  EXPECT_THAT(after, ::testing::ContainsRegex("before [0-9.]+ us, after [0-9.]+ us"));
  EXPECT_THAT(after, HasSubstr("results equal: largest difference"));
}

}  // namespace
}  // namespace tuner
