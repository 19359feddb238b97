// CUDA kernels of users, from a job file to a bundle, by the commands that a person types. The driver and the
// NVRTC are those for tests: kernels are compiled for real and run on the host
// (tests/measure_server/fake_cuda/source_module.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/foreign/confined_program.h"
#include "tests/damaged_text.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

// y[i] = 2 * x[i] + 1, by blocks of BLOCK threads; what a test is about goes in by WHAT.
constexpr char kSource[] = R"(extern "C" __global__ void twice(const float* x, float* y, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  WHAT
  if (i < n) y[i] = 2 * x[i] + 1;
}
)";
constexpr char kPlain[] =
    "void plain(const float* x, float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 2 * x[i] + 1; }\n";
constexpr char kJob[] = R"({
  "op": "kernel", "language": "cuda", "source": "twice.cu", "function": "twice", "sizes": {"n": 500},
  "arguments": [{"name": "x", "type": "float32", "shape": ["n"]},
                {"name": "y", "type": "float32", "shape": ["n"], "role": "out"},
                {"name": "n", "type": "int32", "value": "n"}],
  "grid": "(n + BLOCK - 1) // BLOCK", "block": "BLOCK", "knobs": {"BLOCK": [32, 64, 128]},
  "reference": {"source": "plain.c", "function": "plain"}, "target": "cuda -arch=sm_90a", "trials": 3
})";

class OwnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
    // A driver that is killed leaves programs behind; whoever they run as must get there.
    std::filesystem::permissions(scratch_.path(), std::filesystem::perms(0755));
    std::filesystem::create_directories(scratch_.file("programs"));
    write("");
    shell_.write("plain.c", kPlain);
  }
  void write(const std::string& what, const std::string& change = "{}") {
    std::string source = kSource;
    source.replace(source.find("WHAT"), 4, what);
    shell_.write("twice.cu", source);
    json job = json::parse(kJob);
    job.merge_patch(json::parse(change));
    shell_.write("job.json", job.dump());
  }
  // On a host with the GPU for tests.
  CommandResult on_gpu(const std::string& script) {
    return shell_.run(str("export TUNER_LIBCUDA=" TUNER_FAKE_CUDA " TUNER_LIBNVML=" TUNER_FAKE_CUDA
                          " TUNER_NVRTC=" TUNER_FAKE_NVRTC
                          " TUNER_FAKE_CUDA_FAULTS=$PWD/faults TUNER_FAKE_CUDA_PROGRAMS=",
                          scratch_.file("programs"), " TMPDIR=", scratch_.path().string(), "\n", script));
  }
  std::string output_of(const std::string& script) {
    const CommandResult ran = on_gpu(script);
    EXPECT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
    return ran.out;
  }
  // The messages of trials by their outcome.
  std::map<std::string, std::set<std::string>> outcomes() {
    std::istringstream lines(output_of("tuner records export"));
    std::map<std::string, std::set<std::string>> found;
    for (std::string line; std::getline(lines, line);)
      if (const json row = json::parse(line); row.contains("outcome"))
        found[row["outcome"]].insert(row.value("message", std::string()));
    return found;
  }
  const TemporaryFolder scratch_;
  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(OwnCuda, ASourceIsTunedAnsweredAndShipped) {
  const std::string out = output_of("tuner submit job.json");
  EXPECT_THAT(out, HasSubstr("source_kernel_cuda BLOCK="));
  EXPECT_THAT(out, HasSubstr("3 trials (3 ok)"));
  const json answer = json::parse(output_of("tuner query job.json --json"));
  EXPECT_EQ(answer["answer"], "exact");
  EXPECT_EQ(answer["template"], "source_kernel_cuda");
  // 500 elements in blocks of 128 are as many waves as in smaller ones, so all take the same time here.
  output_of("tuner build job.json -o out");
  const auto files = shell_.tree("out");
  for (const char* file :
       {"cuda/twice.cubin", "cuda/twice.cu", "cuda/twice.c", "cuda/twice.h", "manifest.json"})
    EXPECT_TRUE(files.contains(file)) << file;
  EXPECT_THAT(files.at("cuda/twice.cu"), HasSubstr("#define BLOCK "));
  EXPECT_THAT(output_of("tuner show job.json --as cuda"), HasSubstr("#define BLOCK "));
  EXPECT_THAT(output_of("tuner show job.json --as resources"), HasSubstr("registers"));
  const CommandResult kernels = on_gpu("tuner show job.json --as kernels");
  EXPECT_EQ(kernels.exit_code, 2);
  EXPECT_THAT(kernels.err, HasSubstr("is a user's"));
}

// Loads the bundle's cubin, launches it by the bundle's launcher, and prints the first and the last element.
constexpr char kApplication[] = R"(#include <stdio.h>
#include "twice.h"
#define DO(call) do { CUresult r = call; if (r != CUDA_SUCCESS) { printf("%s: %d\n", #call, (int)r); return 1; } } while (0)
int main(int argc, char** argv) {
  static char image[1 << 20];
  static float x[500], y[500];
  CUcontext context;
  CUdeviceptr in, out;
  twice_kernel kernel;
  twice_operands operands;
  FILE* f = fopen(argv[argc - 1], "rb");
  if (f == NULL || fread(image, 1, sizeof image - 1, f) == 0) return 2;
  fclose(f);
  for (int i = 0; i < 500; ++i) x[i] = (float)i;
  DO(cuInit(0));
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  DO(twice_load(&kernel, image));
  DO(cuMemAlloc(&in, TWICE_X_BYTES));
  DO(cuMemAlloc(&out, TWICE_Y_BYTES));
  DO(cuMemcpyHtoD(in, x, TWICE_X_BYTES));
  DO(twice_bind(&operands, in, out, 0));
  DO(twice_launch(&kernel, &operands, NULL));
  DO(cuMemcpyDtoH(y, out, TWICE_Y_BYTES));
  printf("%.0f %.0f\n", y[0], y[499]);
  DO(twice_unload(&kernel));
  return 0;
}
)";

// An nvcc that makes what the GPU for tests runs: by the NVRTC for tests, from the entry that nvcc gets.
constexpr char kNvcc[] = R"sh(#!/bin/sh
if [ "$1" = --version ]; then
  echo 'nvcc: NVIDIA (R) Cuda compiler driver'
  echo 'Cuda compilation tools, release 13.0, V13.0.1'
  exit 0
fi
here=$(dirname "$0")
options=
for word; do
  case $word in
    --gpu-architecture=* | --ptxas-options=* | --std=* | -D*) options="$options $word" ;;
    -I. | -cubin | --keep | --keep-dir | . | -o | tuner_entry.cu | tuner_made.cubin) ;;
    *) echo "nvcc: unknown option $word" >&2; exit 1 ;;
  esac
done
source=$(sed -n 's/^#include "\(.*\)"$/\1/p' tuner_entry.cu)
kernel=$(sed -n 's/.* = &\(.*\);$/\1/p' tuner_entry.cu)
TUNER_NVRTC=$here/nvrtc.so "$here/cuda_compiler" "$source" "$kernel" $options -I. || exit 1
mv tuner_made.ptx tuner_entry.ptx
)sh";

TEST_F(OwnCuda, AnNvccOfTheOperatorsListCompilesASource) {
  write("", R"({"compiler": "nvcc"})");
  const CommandResult unlisted = on_gpu("tuner show job.json --as resources");
  EXPECT_EQ(unlisted.exit_code, 1);
  EXPECT_THAT(unlisted.err, HasSubstr("the compiler \"nvcc\" is not on this host's list (cc, c++)"));
  shell_.run("mkdir -p toolkit/bin && cp " TUNER_BIN_DIR "/cuda_compiler toolkit/bin && cp " TUNER_FAKE_NVRTC
             " toolkit/bin/nvrtc.so");
  shell_.write("toolkit/bin/nvcc", kNvcc);
  const std::string listed =
      "chmod +x toolkit/bin/nvcc; export TUNER_COMPILERS=cc,c++,nvcc=$PWD/toolkit/bin/nvcc\n";
  EXPECT_THAT(output_of(listed + "tuner submit job.json"), HasSubstr("3 trials (3 ok)"));
  const json answer = json::parse(output_of(listed + "tuner query job.json --json"));
  EXPECT_EQ(answer["answer"], "exact");
  EXPECT_EQ(answer["stale"], false);
  EXPECT_THAT(output_of("tuner records export"),
              HasSubstr(R"("toolchain":"source:nvcc Cuda compilation tools, release 13.0, V13.0.1")"));
  output_of(listed + "tuner build job.json -o out");
  EXPECT_TRUE(shell_.tree("out").contains("cuda/twice.cubin"));
  shell_.run("sed -i s/V13.0.1/V13.0.2/ toolkit/bin/nvcc");
  const json later = json::parse(output_of(listed + "tuner query job.json --json"));
  EXPECT_EQ(later["stale"], true);
  EXPECT_THAT(later["stale_reason"].get<std::string>(), HasSubstr("V13.0.2"));
}

TEST_F(OwnCuda, ABundlesLauncherPassesPointersAndNumbers) {
  if (std::string(TUNER_CUDA_HEADERS).empty()) GTEST_SKIP() << "no cuda.h here";
  output_of("tuner build job.json -o out");
  shell_.write("main.c", kApplication);
  EXPECT_EQ(output_of(TUNER_CC " -std=c99 -Wall -Wextra -Werror -isystem " TUNER_CUDA_HEADERS
                               " -Iout/cuda main.c out/cuda/twice.c " TUNER_FAKE_CUDA
                               " -Wl,-rpath,$(dirname " TUNER_FAKE_CUDA ") -o application\n"
                               "./application out/cuda/twice.cubin"),
            "1 999\n");
}

// The bundle's cubin as somebody else's: no source, no compiler.
TEST_F(OwnCuda, CubinsThatComeCompiledAreMeasured) {
  output_of("tuner build job.json -o out");
  shell_.run("cp out/cuda/twice.cubin a.cubin");
  json job = json::parse(kJob);
  for (const char* key : {"source", "knobs", "function", "grid", "block"}) job.erase(key);
  job["language"] = "cubin";
  job["configs"] = json::parse(R"([
    {"config": {"BLOCK": 32}, "file": "a.cubin", "function": "twice", "grid": "(n + 31) // 32", "block": 32},
    {"config": {"BLOCK": 31}, "file": "a.cubin", "function": "twice", "grid": 1, "block": 32}])");
  shell_.write("job.json", job.dump());
  const std::string out = output_of("tuner submit job.json");
  EXPECT_THAT(out, HasSubstr("source_kernel_cuda BLOCK=32"));
  const auto found = outcomes();
  EXPECT_EQ(found.at("ok").size(), 1u);
  ASSERT_TRUE(found.contains("wrong_answer")) << "one block does not reach the end";
  EXPECT_THAT(*found.at("wrong_answer").begin(), HasSubstr("y[32]"));
}

TEST_F(OwnCuda, WhatKernelsDoWrongHasItsOutcome) {
  const struct {
    const char *what, *outcome, *message;
  } cases[] = {
      {"if (BLOCK == 64 && i == 7) { y[i] = 0; return; }", "wrong_answer", "y[7] is 0"},
      {"if (BLOCK == 64) return;", "wrong_answer", "y[0]"},
      {"if (BLOCK == 64 && i == 0) y[-100000] = 1;", "crashed", "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {"if (BLOCK == 64 && i == 0) y[n] = 1;", "crashed", "wrote outside y"},
      {"if (BLOCK == 64 && i == 0) ((float*)x)[3] = 1;", "wrong_answer", "y[3]"},
      {"\n#if BLOCK == 64\n#error no\n#endif\n", "invalid_config", "twice.cu(5): "},
  };
  for (const auto& c : cases) {
    shell_.run("rm -rf .home/data .home/cache");
    write(c.what);
    output_of("tuner submit job.json");
    const auto found = outcomes();
    EXPECT_TRUE(found.contains("ok")) << c.what;
    ASSERT_TRUE(found.contains(c.outcome)) << c.what << "\n" << ::testing::PrintToString(found);
    EXPECT_THAT(*found.at(c.outcome).begin(), HasSubstr(c.message)) << c.what;
  }
}

// What a call adds to is as it was before the next one: in trials, in races, in the run after timing.
TEST_F(OwnCuda, ABufferThatIsInAndOutIsRestoredBetweenCalls) {
  shell_.write("twice.cu",
               "extern \"C\" __global__ void twice(const float* x, float* y, int n) {\n"
               "  const int i = blockIdx.x * BLOCK + threadIdx.x;\n"
               "  if (i < n) y[i] += 2 * x[i];\n}\n");
  shell_.write("plain.c",
               "void plain(const float* x, float* y, int n) {\n"
               "  for (int i = 0; i < n; ++i) y[i] += 2 * x[i];\n}\n");
  json job = json::parse(kJob);
  job["arguments"][1]["role"] = "inout";
  shell_.write("job.json", job.dump());
  EXPECT_THAT(output_of("tuner submit job.json"), HasSubstr("3 trials (3 ok)"));
  EXPECT_THAT(output_of("tuner verify job.json --on-host"), HasSubstr("0 wrong"));
  EXPECT_THAT(output_of("tuner kernel judge twice.cu --job job.json --on-host"),
              HasSubstr("right, not timed"));
  output_of("tuner build job.json -o out");
  EXPECT_THAT(shell_.tree("out").at("cuda/twice.h"), HasSubstr("TWICE_Y_BYTES"));
}

// What a GPU host runs that has nothing of ours but the runner and a pack.
TEST_F(OwnCuda, APackIsMeasuredAndItsResultsComeBack) {
  output_of("tuner pack job.json -o job.pack --candidates 3 --run-timeout 30");
  const std::string ran = output_of("runner run-pack job.pack -o out.jsonl --deadline 60 2>&1");
  EXPECT_THAT(output_of("tuner records import out.jsonl"), HasSubstr("3 new trials"));
  EXPECT_EQ(outcomes().at("ok").size(), 1u) << ran;
  EXPECT_EQ(json::parse(output_of("tuner query job.json --json"))["answer"], "exact");
  // A wrong candidate is told there, too.
  shell_.run("rm -rf .home/data .home/cache out.jsonl");
  write("if (BLOCK == 64 && i == 7) { y[i] = 0; return; }");
  output_of(
      "tuner pack job.json -o job.pack --candidates 3 --run-timeout 30 && runner run-pack job.pack -o "
      "out.jsonl "
      "--deadline 60 2>&1 && tuner records import out.jsonl");
  EXPECT_THAT(*outcomes().at("wrong_answer").begin(), HasSubstr("y[7] is 0"));
}

TEST_F(OwnCuda, WithoutAReferenceTheDefaultConfigOnTheHostIsRight) {
  write("", R"({"reference": "default"})");
  EXPECT_THAT(output_of("tuner submit job.json"), HasSubstr("right as the default config is"));
  // What is found in that run is told before anything is measured.
  write("y[i + BLOCK] = 0;", R"({"reference": "default"})");
  EXPECT_NE(on_gpu("tuner submit job.json").exit_code, 0);
  const auto found = outcomes();
  ASSERT_TRUE(found.contains("build_error"));
  EXPECT_THAT(*found.at("build_error").begin(), HasSubstr("twice, run on the host: "));
}

// What was tuned before targets named devices stands under the architecture, with the device in each record.
TEST_F(OwnCuda, EachClassOfDevicesHasAnswersOfItsOwn) {
  const auto on = [&](const std::string& device, const std::string& command) {
    return on_gpu(str("export TUNER_FAKE_CUDA_NAME='", device, "'\n", command));
  };
  const auto asked = [&](const std::string& device, const std::string& target) {
    const CommandResult ran = on(device, str("tuner query job.json --json --target '", target, "'"));
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    return json::accept(ran.out) ? json::parse(ran.out) : json::object();
  };
  ASSERT_EQ(on("NVIDIA H200", "tuner submit job.json --trials 2").exit_code, 0);
  const json open = asked("NVIDIA H200", "cuda -arch=sm_90a"),
             h200 = asked("NVIDIA H200", "cuda -arch=sm_90a -device=h200"),
             native = asked("NVIDIA H200", "cuda -arch=native -device=native"),
             any = asked("NVIDIA H200", "cuda -arch=native"),
             h100 = asked("NVIDIA H200", "cuda -arch=sm_90a -device=H100");
  EXPECT_EQ(open["answer"], "exact");
  EXPECT_EQ(h200["answer"], "exact");
  EXPECT_EQ(h200["config"], open["config"]);
  EXPECT_THAT(h200["note"].get<std::string>(), HasSubstr("on a device of the class h200"));
  EXPECT_EQ(native["target"], "cuda -arch=sm_90a -device=h200");
  EXPECT_EQ(native["answer"], "exact");
  EXPECT_EQ(any["target"], "cuda -arch=sm_90a") << "as before";
  EXPECT_EQ(h100["target"], "cuda -arch=sm_90a -device=h100");
  EXPECT_EQ(h100["answer"], "same-family");
  EXPECT_THAT(h100["note"].get<std::string>(), HasSubstr("measured on h200"));

  // What is locked for any device is locked for each, until a class has a choice of its own.
  output_of("tuner lock job.json -o answers.lock");
  EXPECT_THAT(output_of("tuner lock job.json -o answers.lock"), HasSubstr("0 added, 0 changed, 1 kept"));
  EXPECT_THAT(output_of("tuner lock job.json --check answers.lock"), HasSubstr("1 of 1 tasks"));
  const std::string locked = shell_.tree(".").at("answers.lock");
  EXPECT_EQ(on("NVIDIA H200", "tuner lock job.json -o answers.lock --target 'cuda -arch=sm_90a -device=h100'")
                .exit_code,
            0);
  EXPECT_EQ(shell_.tree(".").at("answers.lock"), locked);
  EXPECT_EQ(on("NVIDIA H200", "tuner lock job.json -o answers.lock --target 'cuda -arch=sm_90a -device=h200'")
                .exit_code,
            0);
  EXPECT_THAT(shell_.tree(".").at("answers.lock"), HasSubstr("cuda -arch=sm_90a -device=h200 |"));
  // A pack takes the database's fastest of the class, under whichever name.
  EXPECT_THAT(
      on("NVIDIA H200",
         "tuner pack job.json -o a.pack --candidates 2 --known 3 --db \"$XDG_DATA_HOME/tuner/tuner.db\" "
         "--target 'cuda -arch=sm_90a -device=h200'")
          .err,
      HasSubstr("1 known"));

  // Measured under its class; and not on a device of another one.
  ASSERT_EQ(
      on("NVIDIA H100 PCIe", "tuner submit job.json --trials 1 --target 'cuda -arch=native -device=native'")
          .exit_code,
      0);
  EXPECT_EQ(asked("NVIDIA H200", "cuda -arch=sm_90a -device=h100-pcie")["answer"], "exact");
  EXPECT_EQ(asked("NVIDIA H200", "cuda -arch=sm_90a -device=h100")["answer"], "same-family");
  EXPECT_EQ(asked("NVIDIA H200", "cuda -arch=sm_90a -device=h200")["config"], h200["config"]);
  EXPECT_THAT(output_of("tuner records export"), HasSubstr("cuda -arch=sm_90a -device=h100-pcie"));
  for (const char* command : {"submit job.json", "kernel judge twice.cu --job job.json"}) {
    const CommandResult other =
        on("NVIDIA H200", str("tuner ", command, " --target 'cuda -arch=sm_90a -device=h100'"));
    EXPECT_EQ(other.exit_code, 2) << command << other.out << other.err;
    EXPECT_EQ(std::ranges::count(other.err, '\n'), 1) << other.err;
    EXPECT_THAT(other.err, HasSubstr("h200")) << "what there is";
  }
}

TEST_F(OwnCuda, AHostWithoutAGpuSaysSoInOneLine) {
  for (const char* target : {"cuda -arch=sm_90a", "cuda -arch=native"}) {
    write("", json{{"target", target}}.dump());
    EXPECT_EQ(shell_.run("tuner show job.json --as space --target 'cuda -arch=sm_90a'").exit_code, 0);
    const CommandResult refused = shell_.run("TUNER_LIBCUDA=/none tuner submit job.json");
    EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("no GPU"));
  }
  write("", R"({"target": "cpu"})");
  for (const char* command :
       {"submit job.json", "query job.json", "show job.json", "verify job.json --on-host",
        "kernel judge twice.cu --job job.json", "pack job.json -o none.pack"}) {
    const CommandResult cpu = shell_.run(str("tuner ", command));
    EXPECT_EQ(cpu.exit_code, 2) << command;
    EXPECT_EQ(std::ranges::count(cpu.err, '\n'), 1) << cpu.err;
    EXPECT_THAT(cpu.err, HasSubstr("target: found \"llvm"));
    EXPECT_THAT(cpu.err, HasSubstr("expected one that runs such a kernel: \"cuda -arch=sm_90a\""));
  }
}

// The examples, at sizes that take a second on the host.
class OwnCudaExamples : public OwnCuda, public ::testing::WithParamInterface<const char*> {};

TEST_P(OwnCudaExamples, AreTunedRight) {
  shell_.run("cp " TUNER_SOURCE_DIR "/examples/own_kernels/*.cu " TUNER_SOURCE_DIR
             "/examples/own_kernels/cuda_plain.c .");
  json job = json::parse(shell_.read(str(TUNER_SOURCE_DIR "/examples/own_kernels/", GetParam())));
  job["trials"] = 6;
  for (auto& [name, size] : job["sizes"].items())
    size = name == "rows" ? 5 : 70 + static_cast<int>(name.size());
  shell_.write("job.json", job.dump());
  const std::string out = output_of("tuner submit job.json");
  EXPECT_THAT(out, HasSubstr("6 trials (6 ok)")) << shell_.read("faults");
  EXPECT_THAT(out, HasSubstr("times as fast as the default config"));
  output_of("tuner pack job.json -o job.pack --candidates 4");
}

INSTANTIATE_TEST_SUITE_P(All, OwnCudaExamples,
                         ::testing::Values("reduce_cuda.json", "transpose_cuda.json", "conv2d_cuda.json"));

// --- what is wrong is one line, exit code 2, and nothing is written ---

class OwnCudaRefused : public OwnCuda {
 protected:
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(shell_.folder()))
      if (entry.path().string().find("/.home/") == std::string::npos) names.insert(entry.path().string());
    return names;
  }
  std::string refused() {
    const std::set<std::string> before = files();
    const CommandResult r = on_gpu("tuner submit job.json --db made.db");
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(files(), before);
    const std::string why = r.err.substr(0, r.err.find('\n'));
    EXPECT_EQ(why.size() + 1, r.err.size()) << r.err;
    EXPECT_TRUE(testing::one_line(why)) << r.err;
    EXPECT_LT(why.size(), 600u) << why;
    return why;
  }
};

TEST_F(OwnCudaRefused, WhatAnEntrySays) {
  const struct {
    const char *at, *value, *message;
  } cases[] = {
      {"/grid", "null", "grid: expected an integer or an expression"},
      {"/grid", "[1, 2, 3, 4]", "grid: expected 1 to 3 expressions"},
      {"/grid", R"("n // BLOC")", "unknown name BLOC; known are n, BLOCK"},
      {"/grid", R"x("n // (BLOCK - 32)")x", "division by zero"},
      {"/grid", "0", "grid[0]: expected 1 to 2147483647, found 0"},
      {"/grid", R"([1, "n * 1000"])", "grid[1]: expected 1 to 65535, found 500000"},
      {"/block", "[]", "block: expected 1 to 3 expressions"},
      {"/block", "true", "block: expected an integer or an expression"},
      {"/block", R"(["BLOCK", 64])", "block: expected at most 1024 threads, found 2048"},
      {"/block", R"([1, 1, "BLOCK * 4"])", "block[2]: expected 1 to 64, found 128"},
      {"/block", R"("BLOCK - n")", "block[0]: expected 1 to 1024, found -468"},
      {"/shared_bytes", "232449", "shared_bytes: expected 0 to 232448"},
      {"/shared_bytes", R"("BLOCK *")", "shared_bytes: column"},
      {"/shraed_bytes", "4", "\"shraed_bytes\": unknown key; did you mean shared_bytes?"},
      {"/function", R"("")", "function: expected a name for C"},
      {"/function", R"("twice<<<1, 1>>>")", "function: expected a name for C"},
      {"/source", R"("none.cu")", "none.cu"},
      {"/source", R"("/etc/passwd")", "is an absolute path"},
      {"/flags", R"(["-O3"])", "those of NVRTC that optimise"},
      {"/flags", R"(["-I/usr/include"])", "is not allowed"},
      {"/flags", R"(["--maxrregcount={REGISTERS}"])", "there is no knob and no size {REGISTERS}"},
      {"/reference", R"({"source": "twice.cu", "function": "twice"})", "the reference runs on the host"},
      {"/reference", R"({"source": "plain.c", "function": "plain", "flags": ["-o/x"]})",
       "reference.flags[0]"},
      {"/reference", R"({"files": {"z": "z.npy"}})", "z.npy: cannot be read"},
      {"/configs", "[]", "\"configs\": unknown key"},
      {"/target", R"("cuda")", "cuda needs -arch=sm_NN"},
      {"/language", R"("ptx")", "configs"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(str(c.at, " ", c.value));
    json job = json::parse(kJob);
    job[json::json_pointer(c.at)] = json::parse(c.value);
    shell_.write("job.json", job.dump());
    EXPECT_THAT(refused(), HasSubstr(c.message));
  }
}

// What only a compiler can tell.
TEST_F(OwnCudaRefused, WhatDoesNotCompile) {
  write("", R"({"function": "thrice"})");
  EXPECT_THAT(refused(), HasSubstr("the default config: nvrtc refuses it"));
  write("return oops;");
  EXPECT_THAT(refused(), HasSubstr("twice.cu(3): error"));
  write("\n#include \"/etc/passwd\"\n");
  EXPECT_THAT(refused(), Not(HasSubstr("root")));
  write("", R"({"reference": {"source": "plain.c", "function": "plane"}})");
  EXPECT_THAT(refused(), HasSubstr("the reference: cc refuses it"));
  write("");
  json job = json::parse(kJob);
  job["arguments"][2]["type"] = "int64";
  shell_.write("job.json", job.dump());
  EXPECT_THAT(refused(), HasSubstr("has 3 parameters (8, 8, 4 bytes), \"arguments\" has 3 (8, 8, 8 bytes)"));
  job = json::parse(kJob);
  job["shared_bytes"] = 100000;
  shell_.write("twice.cu",
               "extern \"C\" __global__ void twice(const float* x, float* y, int n) {\n"
               "  __shared__ float s[35000];\n  s[threadIdx.x] = x[n]; y[0] = s[n];\n}\n");
  shell_.write("job.json", job.dump());
  EXPECT_THAT(refused(), HasSubstr("the default config: "));
}

}  // namespace
}  // namespace tuner
