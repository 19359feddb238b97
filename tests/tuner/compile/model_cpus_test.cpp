// A model as one library for several CPUs (`tuner compile --for`): a program, compiled once, runs the steps
// of the CPU on which it runs. Other CPUs than this one are qemu's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "compiler_core/backend.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/model/network_model.h"
#include "tuner/answers/built_answers.h"
#include "tuner/bundle/cpu_variants.h"
#include "tuner/compile/compile_targets.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/plan_file.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::NetworkModel;

// The U-Net has convolutions, pools, and values that lie inside of others.
constexpr char kName[] = "unet";
constexpr int64_t kNarrower = 8, kImage = 32;

// Runs the model once: input from a file, output into one. Prints which CPU's steps ran.
constexpr char kProgram[] = R"(
#include <stdio.h>
#include <stdlib.h>
#include "net.h"
int main(void) {
  tuner_context *context, *other;
  const tuner_model* const head = &tuner_net_model;
  float* in = (float*)aligned_alloc(64, (IN_BYTES + 63) / 64 * 64);
  float* out = (float*)aligned_alloc(64, (OUT_BYTES + 63) / 64 * 64);
  FILE* file = fopen("in.bin", "rb");
  int32_t code;
  if (!in || !out || !file || fread(in, 1, IN_BYTES, file) != IN_BYTES) return 2;
  fclose(file);
  code = net_create("out/net.weights", NULL, &context);
  if ((code == 0) != net_runs_here()) return 3;
  if (code != 0) {
    printf("none: %s\n", tuner_model_error(code));
    return 0;
  }
  if (net_share(context, NULL, &other) != 0 || other->model != context->model) return 4;
  net_destroy(context);
  if (net_run(other, in, out) != 0) return 5;
  file = fopen("out.bin", "wb");
  if (!file || fwrite(out, 1, OUT_BYTES, file) != OUT_BYTES || fclose(file) != 0) return 6;
  printf("%s, %d inputs, %d\n", other->model->target, head->num_inputs, head->version);
  net_destroy(other);
  return 0;
}
)";

class ModelCpus : public ::testing::Test {
 protected:
  ModelCpus() {
    const auto bytes =
        testing::network(kName, {.image = kImage, .batch = 1, .narrower = kNarrower, .seed = first_seed(11)});
    CHECK(bytes.is_ok()) << bytes.message();
    shell_.write("net.onnx", *bytes);
    shell_.write("program.c", kProgram);
    const std::vector<float>& in = network_.input();
    shell_.write("in.bin", {reinterpret_cast<const char*>(in.data()), 4 * in.size()});
  }

  CommandResult compile(const std::string& words, const std::string& to = "out") {
    return shell_.run(
        str("TUNER_RACE_LIMIT_S=0.5 tuner compile net.onnx -o ", to, " --name net --db own.db ", words));
  }
  void build_program() {
    const CommandResult made = shell_.run(str(
        "cc -std=c11 -Wall -Wextra -Werror -pedantic -DIN_BYTES=", 4 * network_.input().size(),
        " -DOUT_BYTES=", 4 * network_.outputs(), " program.c -Iout/include out/lib/libnet.a -lm -o program"));
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // What the program says; what it computed is held against the reference.
  std::string run_on(const std::string& cpu) {
    shell_.write("out.bin", "");
    const CommandResult ran =
        shell_.run(cpu.empty() ? "./program" : "qemu-x86_64 -cpu " + cpu + " ./program");
    EXPECT_EQ(ran.exit_code, 0) << cpu << ": " << ran.out << ran.err;
    if (ran.out.starts_with("none")) return ran.out;
    const std::string bytes = shell_.read("out.bin");
    EXPECT_EQ(bytes.size(), 4 * network_.outputs());
    if (bytes.size() != 4 * network_.outputs()) return "no output";
    std::vector<float> found(network_.outputs());
    std::memcpy(found.data(), bytes.data(), bytes.size());
    network_.expect_right(found.data());
    return ran.out;
  }
  std::string at(const std::string& name) const { return (shell_.folder() / name).string(); }
  int64_t bytes_of(const std::string& name) const {
    return static_cast<int64_t>(std::filesystem::file_size(shell_.folder() / name));
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
  const NetworkModel network_{kName, kNarrower, kImage};
};

// Of the words' CPUs, those that this machine is, asked of the back end.
std::vector<bool> here(const std::string& words) {
  std::vector<bool> runs;
  const auto cpus = parse_cpus(words);
  CHECK(cpus.is_ok()) << cpus.message();
  for (const CpuVariant& cpu : *cpus) {
    const Target target = *parse_target("llvm -mcpu=" + cpu.mcpu);
    runs.push_back(backend_of(target).runs_here(target).is_ok());
  }
  return runs;
}

TEST_F(ModelCpus, AProgramTakesTheBestThatItsCpuRuns) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the library is of x86-64";
#endif
  const std::string words = "nehalem,avx512,avx2", names[] = {"x86-64-v4", "x86-64-v3", "nehalem"};
  const CommandResult made = compile("--no-tune --for " + words);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::vector<bool> runs = here(words);
  for (size_t c = 0; c < runs.size(); ++c)
    EXPECT_THAT(made.out, ::testing::ContainsRegex(str("\"llvm -mcpu=", names[c],
                                                       " -threads=1\": [0-9]+ kernels, 0 tuned; ",
                                                       runs[c] ? "checked" : "not checked: ")));
  build_program();
  const auto best = static_cast<size_t>(std::ranges::find(runs, true) - runs.begin());
  ASSERT_LT(best, runs.size());
  EXPECT_EQ(run_on(""), str("llvm -mcpu=", names[best], " -threads=1, 1 inputs, 3\n"));
  if (shell_.run("qemu-x86_64 --version").exit_code != 0)
    GTEST_SKIP() << "other CPUs: no qemu-x86_64 (deploy/install.sh --emulator)";
  EXPECT_EQ(run_on("Haswell"), "llvm -mcpu=x86-64-v3 -threads=1, 1 inputs, 3\n");
  EXPECT_EQ(run_on("Nehalem"), "llvm -mcpu=nehalem -threads=1, 1 inputs, 3\n");
  EXPECT_EQ(run_on("qemu64"), "none: this CPU lacks instructions that the model is compiled for\n");
}

TEST_F(ModelCpus, EachCpuOfThisMachineComputesTheModel) {
  const std::string words = "x86-64,avx2,avx512";
  const CommandResult made = compile("--no-tune --for " + words);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::vector<bool> runs = here(words);
  for (size_t c = 0; c < runs.size(); ++c) {
    const auto model = CompiledModel::open(at("out"), c);
    if (!runs[c]) {
      EXPECT_THAT(std::string(model.message()),
                  AllOf(HasSubstr("this CPU lacks instructions"), HasSubstr("x86-64-v4")));
      continue;
    }
    ASSERT_TRUE(model.is_ok()) << model.message();
    EXPECT_EQ(model->plan().target, model->table().target);
    EXPECT_GT(model->plan().whole_ns, 0);  // each was timed
    auto context = model->context();
    ASSERT_TRUE(context.is_ok()) << context.message();
    const AlignedBuffer in(static_cast<int64_t>(4 * network_.input().size())),
        out(static_cast<int64_t>(4 * network_.outputs()));
    std::ranges::copy(network_.input(), in.as<float>());
    ASSERT_TRUE(context->run({in.data()}, {out.data()}));
    network_.expect_right(out.as<float>());
  }
  EXPECT_THAT(CompiledModel::open(at("out"), 3).message(), HasSubstr("expected more than 3 CPUs"));
  // Who names none gets the first that is here.
  const auto chosen = CompiledModel::open(at("out"));
  ASSERT_TRUE(chosen.is_ok()) << chosen.message();
  const auto first = static_cast<size_t>(std::ranges::find(runs, true) - runs.begin());
  EXPECT_EQ(chosen->plan().target, read_plan(at("out"), first)->target);
  const CommandResult run = shell_.run("tuner run out && tuner show out");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(str(chosen->plan().target, "\nalso for ")));
}

// Blocks have the lanes of each CPU's vectors, so steps differ between them.
TEST_F(ModelCpus, ImagesInBlocksFollowEachCpu) {
  const CommandResult made = compile("--no-tune --blocks --for avx2,avx512");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto wide = read_plan(at("out"), 0), narrow = read_plan(at("out"), 1);
  ASSERT_TRUE(wide.is_ok() && narrow.is_ok()) << wide.message() << narrow.message();
  const auto in_blocks = [](const CompiledPlan& plan, const char* layout) {
    return std::ranges::any_of(
        plan.steps, [&](const PlanStep& s) { return s.workload.find(layout) != std::string::npos; });
  };
  EXPECT_TRUE(in_blocks(*wide, "NCHW16c"));
  EXPECT_FALSE(in_blocks(*wide, "NCHW8c"));
  EXPECT_TRUE(in_blocks(*narrow, "NCHW8c"));
  EXPECT_FALSE(in_blocks(*narrow, "NCHW16c"));
}

// What two CPUs read alike stands once. Nothing says how much that is but the files of one CPU each.
TEST_F(ModelCpus, WeightsThatAreNotPackedAnewAreShared) {
  int64_t alone = 0;
  for (const char* mcpu : {"x86-64-v3", "x86-64"}) {
    const CommandResult made =
        compile(str("--no-tune --target \"llvm -mcpu=", mcpu, "\""), str("alone_", mcpu));
    ASSERT_EQ(made.exit_code, 0) << made.err;
    alone += bytes_of(str("alone_", mcpu, "/net.weights"));
  }
  ASSERT_EQ(compile("--no-tune --for avx2,x86-64").exit_code, 0);
  const int64_t both = bytes_of("out/net.weights");
  EXPECT_LT(both, alone);
  EXPECT_GE(both, bytes_of("alone_x86-64-v3/net.weights"));
  // The same CPU under two names: nothing is packed anew.
  ASSERT_EQ(compile("--no-tune --for haswell,avx2", "twins").exit_code, 0);
  EXPECT_EQ(bytes_of("twins/net.weights"), bytes_of("alone_x86-64-v3/net.weights"));
}

TEST_F(ModelCpus, KernelsOfEachCpuOfThisMachineAreTuned) {
  if (const std::vector<bool> runs = here("avx2,x86-64"); runs[1] == false) GTEST_SKIP() << "no x86-64 CPU";
  const std::string words = here("avx2")[0] ? "avx2,x86-64" : "nehalem,x86-64";
  const auto bytes = testing::network("mlp", {.narrower = 8, .seed = 3});
  ASSERT_TRUE(bytes.is_ok());
  shell_.write("net.onnx", *bytes);
  const CommandResult made = compile("--for " + words + ",sapphirerapids --trials 2 --time-limit 60");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto kernels = built_kernels(at("out"));
  ASSERT_TRUE(kernels.is_ok()) << kernels.message();
  std::map<std::string, int> tuned, all;
  for (const BuiltKernel& k : *kernels) {
    ++all[k.task.target_name];
    tuned[k.task.target_name] += k.answer.kind == AnswerKind::kExact ? 1 : 0;
  }
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(tuned["llvm -mcpu=x86-64 -threads=1"], all["llvm -mcpu=x86-64 -threads=1"])
      << made.out << made.err;
  EXPECT_GT(tuned["llvm -mcpu=x86-64 -threads=1"], 0);
  if (!here("sapphirerapids")[0]) {
    EXPECT_EQ(tuned["llvm -mcpu=sapphirerapids -threads=1"], 0);
  }
}

TEST_F(ModelCpus, WhatCannotBeIsRefusedInALine) {
  const auto expect_refused = [&](const std::string& words, const std::string& says) {
    const CommandResult made = compile(words);
    EXPECT_EQ(made.exit_code, 2) << words;
    EXPECT_THAT(made.err, HasSubstr(says));
    EXPECT_EQ(std::ranges::count(made.err, '\n'), 1) << made.err;
  };
  expect_refused("--for avx2,avx3", "--for: expected avx2, avx512, amx, or LLVM's name");
  expect_refused("--for avx2 --target cpu", "expected one of --target and --for, found both");
  expect_refused("--for avx2,avx512 --use conv=libours.so:ours", "leave --use or --for out");
  expect_refused("--target \"llvm -mcpu=haswell\" --target \"llvm -mcpu=nehalem\"", "several CPUs by --for");
  if (!here("sapphirerapids")[0] && !here("avx512")[0])
    expect_refused("--for avx512,amx", "--for: this machine has none of the CPUs");
}

// A program that was compiled with tuner_model.h of before knows no such table, and says so.
TEST_F(ModelCpus, AHeaderThatDoesNotKnowTheTableRefusesIt) {
  tuner_model later{};
  later.version = TUNER_MODEL_CPUS_VERSION + 1;
  later.instruction_sets = "";
  tuner_context* context = nullptr;
  tuner_weights* weights = nullptr;
  EXPECT_EQ(tuner_model_create(&later, "none", nullptr, &context), TUNER_MODEL_OTHER_ABI);
  EXPECT_EQ(tuner_weights_open(&later, "none", &weights), TUNER_MODEL_OTHER_ABI);
  EXPECT_NE(TUNER_MODEL_CPUS_VERSION, TUNER_MODEL_VERSION);
}

TEST(ChooseCpus, OneWordIsALibraryForOneCpu) {
  CompileRequest request;
  ASSERT_TRUE(choose_cpus("avx2", 2, request));
  EXPECT_EQ(request.target.name(), "llvm -mcpu=x86-64-v3 -threads=2");
  EXPECT_FALSE(request.several_cpus);
  ASSERT_TRUE(choose_cpus("avx2,amx", 2, request));
  EXPECT_EQ(request.target.name(), "llvm -mcpu=sapphirerapids -threads=2");
  ASSERT_EQ(request.more_targets.size(), 1U);
  EXPECT_TRUE(request.several_cpus);
}

}  // namespace
}  // namespace tuner
