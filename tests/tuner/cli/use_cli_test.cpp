// `tuner compile --use`: a function of a C library takes the place of a step. Who is taken, what is told,
// what is refused.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/models/networks.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

// The first layer of the MLP, 784 -> 16 with relu, and functions that are not it.
constexpr char kFunctions[] = R"(
#include <fcntl.h>
#include <stdlib.h>
#include "tuner_kernel.h"

static float layer(void* const* args, int j) {
  const float* a = (const float*)args[0];
  const float* b = (const float*)args[1]; /* as the model has it: [16, 784] */
  float sum = ((const float*)args[2])[j];
  int k;
  for (k = 0; k < 784; ++k) sum += a[k] * b[j * 784 + k];
  return sum > 0 ? sum : 0;
}
int32_t my_layer(void* const* args, const tuner_runtime* rt) {
  int j;
  for (j = 0; j < 16; ++j) ((float*)args[3])[j] = layer(args, j);
  return rt->abi_version == TUNER_ABI_VERSION ? 0 : -1;
}
int32_t wrong_layer(void* const* args, const tuner_runtime* rt) {
  my_layer(args, rt);
  ((float*)args[3])[5] += 0.5f;
  return 0;
}
int32_t nothing(void* const* args, const tuner_runtime* rt) { (void)args, (void)rt; return 0; }
int32_t refuses(void* const* args, const tuner_runtime* rt) { (void)args, (void)rt; return 7; }
int32_t leaves(void* const* args, const tuner_runtime* rt) { (void)args, (void)rt; exit(3); }
int32_t crashes(void* const* args, const tuner_runtime* rt) { (void)args, (void)rt; abort(); }
int32_t writes_behind(void* const* args, const tuner_runtime* rt) {
  ((float*)args[3])[16] = 1;
  return my_layer(args, rt);
}
int32_t writes_input(void* const* args, const tuner_runtime* rt) {
  ((float*)args[0])[0] = 1;
  return my_layer(args, rt);
}
int32_t hangs(void* const* args, const tuner_runtime* rt) {
  volatile int forever = 1;
  (void)args, (void)rt;
  creat(FOLDER "/hangs", 0600);
  while (forever) {
  }
  return 0;
}
int32_t hangs_later(void* const* args, const tuner_runtime* rt) { /* not before it is timed */
  static int calls = 0;
  return ++calls > 1 ? hangs(args, rt) : my_layer(args, rt);
}
int32_t right_once(void* const* args, const tuner_runtime* rt) {
  static int calls = 0;
  return ++calls > 1 ? wrong_layer(args, rt) : my_layer(args, rt);
}
__attribute__((weak)) int32_t weak_wrong(void* const* args, const tuner_runtime* rt) {
  return wrong_layer(args, rt);
}
int variable = 1;
)";

class UseCommand : public ::testing::Test {
 protected:
  UseCommand() {
    shell_.write("mlp.onnx", *testing::network("mlp", {.narrower = 8}));
    shell_.write("ours.c", kFunctions);
    const CommandResult made =
        shell_.run("cc -O1 -shared -fPIC -DFOLDER=\"\\\"$PWD\\\"\" -I" TUNER_SOURCE_DIR
                   "/compiler_core/runtime -Wl,-soname,libother.so ours.c -o libours.so");
    CHECK(made.exit_code == 0) << made.err;
  }
  CommandResult tuner(const std::string& words) const { return shell_.run("tuner " + words); }
  CommandResult compile(const std::string& more, const std::string& out = "out") const {
    return tuner("compile mlp.onnx --no-tune -o " + out + " " + more);
  }
  // The name of the step that a plan of this network begins with.
  std::string first_step() const {
    const CommandResult made = compile("", "plain");
    CHECK(made.exit_code == 0) << made.err;
    return json::parse(shell_.read("plain/plan.json"))["steps"][0]["name"];
  }
  void expect_refused(const std::string& more, const std::string& reason) const {
    const CommandResult refused = compile(more, "refused");
    EXPECT_EQ(refused.exit_code, 2) << more << "\n" << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(reason)) << more;
    // On a busy machine, where it takes long, it also says what it compiles.
    const std::string last = refused.err.substr(refused.err.rfind("tuner: "));
    EXPECT_EQ(std::ranges::count(last, '\n'), 1) << refused.err;
    EXPECT_EQ(refused.err.find("tuner: "), refused.err.rfind("tuner: ")) << refused.err;
    EXPECT_EQ(shell_.tree("refused").size(), 0u) << "files of a refused model";
  }

  // Ctrl-C as soon as the function hangs: it must not wait for the deadline, which is 10 s in the first
  // process and 80 s where the function is timed.
  void expect_stops(const std::string& function) const {
    SCOPED_TRACE(function);
    const std::string in = shell_.folder().string();
    const std::string use = first_step() + "=" + in + "/libours.so:" + function;
    testing::Process compile({std::string(TUNER_BIN_DIR) + "/tuner", "compile", in + "/mlp.onnx", "--no-tune",
                              "--db", in + "/none.db", "-o", in + "/stopped", "--use", use},
                             in + "/" + function);
    ASSERT_TRUE(testing::eventually(60s, [&] { return std::filesystem::exists(in + "/hangs"); }))
        << compile.err();
    const std::vector<pid_t> all = compile.tree();
    EXPECT_GE(all.size(), 2u) << "the function has a process of its own";
    compile.signal(SIGINT);
    EXPECT_EQ(compile.wait(8s), 1);
    EXPECT_THAT(compile.err(), HasSubstr("stopped: nothing is written. To continue: "));
    EXPECT_THAT(compile.err(), Not(HasSubstr("has not returned")));
    for (const pid_t pid : all) EXPECT_NE(kill(pid, 0), 0) << "process " << pid << " is left";
    EXPECT_EQ(shell_.tree("stopped").size(), 0u);
    std::filesystem::remove(in + "/hangs");
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(UseCommand, AFunctionTakesTheStepsPlace) {
  const std::string step = first_step();
  const CommandResult made = compile("--use '" + step + "=libours.so:my_layer'");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr(step + ": my_layer of libours.so takes "));
  EXPECT_THAT(made.out, HasSubstr(", our kernel "));
  EXPECT_THAT(made.out, HasSubstr("checked: largest error"));
  EXPECT_THAT(made.err, HasSubstr("no static library"));
  const json plan = json::parse(shell_.read("out/plan.json"));
  const json kernel = plan["kernels"][plan["steps"][0]["kernel"].get<size_t>()];
  EXPECT_EQ(kernel["answer"]["kind"], "used");
  EXPECT_EQ(kernel["function"], "my_layer");
  EXPECT_EQ(kernel["used"]["file"], "libours.so");
  EXPECT_GT(kernel["measured"]["time_ns"], 0);
  const std::string library = kernel["used"]["library"];
  EXPECT_EQ(shell_.read("out/" + library), shell_.read("libours.so"));
  EXPECT_TRUE(plan["files"].contains(library));
  EXPECT_FALSE(plan["files"].contains("lib/libmlp.a"));
  EXPECT_THAT(shell_.read("out/lib/cmake/mlp/mlpConfig.cmake"), Not(HasSubstr("libmlp.a")));
  // The loader finds it beside the model, wherever that goes, and not by the name its maker gave it.
  EXPECT_EQ(shell_.run("rm libours.so; mv out moved; tuner run moved").exit_code, 0);
  EXPECT_THAT(tuner("show moved").out, HasSubstr("used: my_layer of libours.so, lib/libmlp_ours_"));
  EXPECT_THAT(tuner("show moved --as layers").out, HasSubstr("used"));
  EXPECT_THAT(tuner("run moved --profile --runs 2").out, HasSubstr("by my_layer of libours.so"));
  const CommandResult both = tuner("run moved --before plain --runs 2 --json");
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const json times = json::parse(both.out);
  EXPECT_EQ(times["times"]["steps"][0]["used"], "libours.so:my_layer");
  EXPECT_FALSE(times["before"]["steps"][0].contains("used"));
  // A damaged one is not loaded.
  shell_.write("moved/" + library, "nothing");
  const CommandResult damaged = tuner("run moved");
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.err, HasSubstr("is damaged, or not the library that plan.json tells of"));
}

// A program that links the model needs to name nothing else.
TEST_F(UseCommand, ProgramsLinkTheModel) {
  ASSERT_EQ(compile("--use '" + first_step() + "=libours.so:my_layer'").exit_code, 0);
  shell_.write("program.c", R"(
#include <stdio.h>
#include "mlp.h"
int main(void) {
  void* const in = aligned_alloc(64, tuner_mlp_model.inputs[0].bytes + 64);
  float* const out = (float*)aligned_alloc(64, 64);
  const void* inputs[1] = {in};
  void* outputs[1] = {out};
  tuner_context* context = NULL;
  float sum = 0;
  int i;
  memset(in, 0, tuner_mlp_model.inputs[0].bytes);
  if (mlp_create("out/mlp.weights", NULL, &context) != 0) return 1;
  if (tuner_context_run(context, inputs, outputs) != 0) return 2;
  for (i = 0; i < 10; ++i) sum += out[i];
  mlp_destroy(context);
  puts(sum > 0.999f && sum < 1.001f ? "right" : "wrong");
  return 0;
}
)");
  const CommandResult ran = shell_.run(
      "rm libours.so; cc program.c -Iout/include -Lout/lib -lmlp -Wl,-rpath,$PWD/out/lib -o program && "
      "./program");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "right\n");
}

TEST_F(UseCommand, WhatIsWrongIsToldInOneLine) {
  const std::string step = first_step(), use = "--use '" + step + "=libours.so:";
  shell_.write("text.so", "no library");
  std::string foreign = shell_.read("libours.so");
  foreign[18] ^= 1;  // e_machine: another one, whatever CPU this is
  shell_.write("foreign.so", foreign);
  // The loader would take one of them for both steps; the same library under two names is one.
  const std::string second = json::parse(shell_.read("plain/plan.json"))["steps"][1]["name"];
  ASSERT_EQ(shell_.run("cp libours.so copy.so; cp libours.so other.so; echo >> other.so").exit_code, 0);
  expect_refused(use + "my_layer' --use '" + second + "=other.so:my_layer'",
                 "a function of libours.so has the same name, and the loader would take one for both");
  expect_refused(use + "my_layer' --use '" + second + "=copy.so:my_layer'", "crashes: signal 11 (SIGSEGV)");
  expect_refused("--use my_layer", "--use: expected NODE=LIBRARY:FUNCTION, found \"my_layer\"");
  expect_refused("--use '" + step + "x=libours.so:my_layer'", "is called \"" + step + "x\"; did you mean ");
  expect_refused("--use '" + step + "=none.so:my_layer'", "none.so: cannot be read");
  expect_refused("--use '" + step + "=text.so:my_layer'", "text.so: is no shared library");
  expect_refused("--use '" + step + "=foreign.so:my_layer'", "foreign.so is a library for ELF machine ");
  expect_refused(use + "my_laier'", "exports no function \"my_laier\"; did you mean my_layer?");
  expect_refused(use + "variable'", "exports no function \"variable\"");
  expect_refused(use + "my_layer' " + use + "my_layer'", "has a function already");
  expect_refused(use + "wrong_layer'", "computes something else than the step: out[0, 5] is ");
  expect_refused(use + "weak_wrong'", "computes something else than the step: out[0, 5] is ");
  expect_refused(use + "right_once'", "computes something else than the step: out[0, 5] is ");
  expect_refused(use + "nothing'", "] is nan, expected ");
  expect_refused(use + "refuses'", "returns 7, expected 0");
  expect_refused(use + "leaves'", "ends the process: exit status 3");
  expect_refused(use + "crashes'", "crashes: signal 6 (SIGABRT)");
  expect_refused(use + "writes_behind'", "crashes: signal 11 (SIGSEGV)");
  expect_refused(use + "writes_input'", "crashes: signal 11 (SIGSEGV)");
  expect_refused(use + "hangs'", "has not returned after 10");
}

TEST_F(UseCommand, CtrlCStopsAFunctionThatIsTried) {
  expect_stops("hangs");
  expect_stops("hangs_later");
}

}  // namespace
}  // namespace tuner
