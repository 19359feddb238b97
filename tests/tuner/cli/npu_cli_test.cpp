// The NPU from a job file to an answer: searched, raced, certified, queried, shown and built. Times are
// cycles, so whoever measures again gets the same.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/models/quantized_networks.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

class NpuCommands : public ::testing::Test {
 protected:
  NpuCommands() {
    shell_.write("job.json",
                 R"({"op": "matmul", "a": [96, 72], "b": [72, 80], "dtype": "int8", "out_dtype": "int8",
                                 "bias": true, "activation": "relu", "target": "npu", "trials": 12})");
  }
  CommandResult tuner(const std::string& words) const { return shell_.run("tuner " + words); }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

// The line of a query that begins with this word.
std::string line_of(const std::string& text, const std::string& word) {
  const size_t at = text.find("\n  " + word);
  return at == std::string::npos ? "no " + word : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST_F(NpuCommands, AJobEndsInACertifiedAnswer) {
  const CommandResult submitted = tuner("submit job.json --db a.db");
  ASSERT_EQ(submitted.exit_code, 0) << submitted.out << submitted.err;
  EXPECT_THAT(submitted.out, HasSubstr(" (exact); certified: the device's clock is exact\n"));
  EXPECT_THAT(submitted.out, HasSubstr("(12 ok)"));
  const CommandResult queried = tuner("query job.json --db a.db");
  ASSERT_EQ(queried.exit_code, 0) << queried.err;
  EXPECT_THAT(queried.out + queried.err, HasSubstr("simulated at 1 GHz"));
  EXPECT_THAT(queried.out, Not(HasSubstr("  stale ")));
  const CommandResult verified = tuner("verify job.json --times --db a.db");
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("inside: "));
  // Another search, in a database of its own, with the same seed.
  ASSERT_EQ(tuner("submit job.json --db b.db").exit_code, 0);
  const CommandResult again = tuner("query job.json --db b.db");
  EXPECT_EQ(line_of(again.out, "time"), line_of(queried.out, "time"));
  EXPECT_EQ(line_of(again.out, "config"), line_of(queried.out, "config"));

  const CommandResult built = tuner("build job.json --db a.db -o out");
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(shell_.run("head -c 7 out/npu/*.npu").out, "NPUKERN");
}

// A C program that calls the built kernel, and adds up the same products itself.
constexpr char kProgram[] = R"(
#include <math.h>
#include <stdio.h>
#include "FUNCTION.h"

enum { kM = 96, kK = 72, kN = 80 };
static uint8_t a[kM * kK];
static int8_t b[kK * kN], out[kM * kN];
static int32_t bias[kN];
static float scale[kN];

int main(void) {
  int8_t zero_point = 5;
  int i, j, k, wrong = 0;
  tuner_npu_counts counts, again;
  for (i = 0; i < kM * kK; ++i) a[i] = (uint8_t)(i * 37 + i / 11);
  for (i = 0; i < kK * kN; ++i) b[i] = (int8_t)(i * 29 + i / 7);
  for (j = 0; j < kN; ++j) bias[j] = 100 * j - 3000, scale[j] = 0.0005f + 0.00001f * (float)j;
  if (FUNCTION(a, b, bias, scale, &zero_point, out, &counts) ||
      FUNCTION(a, b, bias, scale, &zero_point, out, &again)) {
    fprintf(stderr, "%s\n", tuner_npu_error());
    return 1;
  }
  for (i = 0; i < kM; ++i)
    for (j = 0; j < kN; ++j) {
      int32_t sum = bias[j];
      float real;
      for (k = 0; k < kK; ++k) sum += a[i * kK + k] * b[k * kN + j];
      real = (float)sum * scale[j];
      real = fminf(fmaxf(real, 0), 127 - zero_point);
      wrong += out[i * kN + j] != (int)nearbyintf(real) + zero_point;
    }
  if (tuner_npu_run("none", 4, NULL, NULL) != -1) return 2;
  fprintf(stderr, "%s\n", tuner_npu_error());
  printf("%d wrong, %s cycles, energy %s\n", wrong,
         counts.cycles > 500 && counts.cycles == again.cycles ? "equal" : "other",
         counts.energy_nj > 0 ? "known" : "unknown");
  return 0;
}
)";

TEST_F(NpuCommands, ABuiltKernelIsAFunctionInC) {
  const CommandResult built = tuner("build job.json --db none.db -o out --name npu_lib");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const std::string header = shell_.run("cd out/npu && ls *.h | grep -v tuner_npu").out;
  const std::string function = header.substr(0, header.find('.'));
  std::string source = kProgram;
  for (size_t at = source.find("FUNCTION"); at != std::string::npos; at = source.find("FUNCTION"))
    source.replace(at, 8, function);
  shell_.write("app.c", source);
  const std::string lib = TUNER_LIB_DIR;
  const CommandResult compiled =
      shell_.run("cc -std=c11 -Wall -Wextra -Werror app.c out/npu/" + function + ".c -Iout/npu -L" + lib +
                 " -ltuner_npu -lm -Wl,-rpath," + lib + " -o app");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CommandResult ran = shell_.run("./app");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "0 wrong, equal cycles, energy known\n");
  EXPECT_THAT(ran.err, HasSubstr("expected"));
}

TEST_F(NpuCommands, InstructionsAndTimelineAreShown) {
  const CommandResult list = tuner("show job.json --as npu");
  ASSERT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr(" of the array's peak; simulated\n"));
  EXPECT_THAT(list.out, HasSubstr(": npu.rows.uint8.16x16("));
  EXPECT_THAT(list.out, HasSubstr("\nstore_sums "));
  const CommandResult trace = tuner("show job.json --as trace");
  ASSERT_EQ(trace.exit_code, 0) << trace.err;
  const auto events = nlohmann::json::parse(trace.out).at("traceEvents");
  size_t instructions = 0;
  for (const auto& event : events) instructions += event.at("ph") == "X" ? 1 : 0;
  EXPECT_GT(instructions, 20u);
  EXPECT_EQ(events.at(1).at("args").at("name"), "load");
}

TEST_F(NpuCommands, ANetworkIn8BitsRunsOnIt) {
  const auto model =
      testing::quantized_network("mobilenetv2_int8", {.image = 32, .batch = 1, .narrower = 8, .seed = 7});
  ASSERT_TRUE(model.is_ok()) << model.message();
  shell_.write("net.onnx", *model);
  const CommandResult compiled = tuner("compile net.onnx -o net --target npu --no-tune --db none.db");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.out << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr(" steps run on \"npu\", the others on the CPU\n"));
  const CommandResult ran = tuner("run net --output scores=npu.npy --trace trace.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(" steps on the accelerator, simulated: "));
  EXPECT_THAT(ran.out, HasSubstr("\ncopies: 1 to it (3,072 bytes), 1 back (1,000 bytes)\n"));
  const auto facts = nlohmann::json::parse(tuner("run net --json").out).at("accelerator");
  double cycles = 0;
  for (const auto& step : facts.at("steps")) cycles += step.at("cycles").get<double>();
  EXPECT_EQ(cycles, facts.at("cycles").get<double>());
  // The trace has a slice for each step, one behind the other.
  double end = 0;
  size_t steps = 0;
  const auto trace = nlohmann::json::parse(shell_.read("trace.json"));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("tid") != 100) continue;
    ++steps;
    EXPECT_GE(event.at("ts").get<double>(), end);
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(steps, facts.at("steps").size());
  EXPECT_LE(end, cycles);

  // The same on the CPU, operator by operator.
  ASSERT_EQ(tuner("compile net.onnx -o net_cpu --name net_cpu --no-tune --db none.db").exit_code, 0);
  ASSERT_EQ(tuner("run net_cpu --output scores=cpu.npy").exit_code, 0);
  EXPECT_EQ(shell_.run("cmp npu.npy cpu.npy").exit_code, 0);
  const CommandResult refused = tuner("run net_cpu --trace trace.json");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("has no steps on an accelerator; compile it with --target npu"));
  const CommandResult blocks =
      tuner("compile net.onnx -o net_b --target npu --blocks --no-tune --db none.db");
  EXPECT_EQ(blocks.exit_code, 2);
  EXPECT_THAT(blocks.err, HasSubstr("--blocks: images lie in NHWC where \"npu\" takes steps"));
  const CommandResult used =
      tuner("compile net.onnx -o net_u --target npu --use node1=libx.so:f --no-tune --db none.db");
  EXPECT_EQ(used.exit_code, 2);
  EXPECT_THAT(used.err, HasSubstr("runs on the accelerator; leave --use out"));
}

TEST_F(NpuCommands, WhatItLacksIsNamed) {
  shell_.write("sums.json",
               R"({"op": "matmul", "a": [8, 8], "b": [8, 8], "dtype": "int8", "target": "npu"})");
  const CommandResult sums = tuner("show sums.json --as npu");
  EXPECT_EQ(sums.exit_code, 1);
  EXPECT_THAT(sums.err,
              HasSubstr("matmul_npu: needs int8 with out_dtype int8 or uint8, got int8 with int32"));
  const CommandResult banks = tuner("show job.json --as npu --target 'npu -banks=3'");
  EXPECT_EQ(banks.exit_code, 2);
  EXPECT_THAT(banks.err, HasSubstr("-banks: expected a power of two from 1 to 32, found 3"));
}

}  // namespace
}  // namespace tuner
