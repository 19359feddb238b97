// `tuner kernel judge` as it is typed: verdicts, exit codes, and input that is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler_core/foreign/confined_program.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class JudgeCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    shell_.run("cp -r " TUNER_SOURCE_DIR "/tests/examples/judge/. . && cp " TUNER_SOURCE_DIR
               "/examples/own_kernels/sgemm* .");
  }
  json judged(const std::string& words, int exit_code) {
    const CommandResult ran = shell_.run("tuner kernel judge --json " + words);
    EXPECT_EQ(ran.exit_code, exit_code) << words << "\n" << ran.out << ran.err;
    return json::accept(ran.out) ? json::parse(ran.out) : json::object();
  }
  void refuses(const std::string& words, const std::string& says) {
    const CommandResult ran = shell_.run("tuner kernel judge " + words);
    EXPECT_EQ(ran.exit_code, 2) << words << "\n" << ran.out << ran.err;
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(says)) << words;
    EXPECT_EQ(ran.out, "");
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

// A busy machine may keep it from an answer; nothing else may.
TEST_F(JudgeCli, AnExampleIsRightAndRaced) {
  const CommandResult ran = shell_.run("tuner kernel judge sgemm.c --job sgemm.json --json");
  const json verdict = json::parse(ran.out);
  if (verdict["verdict"] == "cannot tell") {
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_THAT(verdict["why"].get<std::string>(),
                ContainsRegex("the machine is too busy|times differ from"));
    return;
  }
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(verdict["verdict"], "right");
  EXPECT_GT(verdict["ratio"], 1.0) << "tiles with vectors against three plain loops";
  EXPECT_LE(verdict["ratio_low"], verdict["ratio"]);
  EXPECT_GE(verdict["processes"], 6);
  EXPECT_EQ(verdict["input_sets"], 6);
  EXPECT_EQ(verdict["against"], "sgemm_plain of sgemm_plain.c");
  EXPECT_FALSE(verdict.contains("difference"));
}

TEST_F(JudgeCli, AgainstAnotherKernel) {
  const CommandResult ran = shell_.run(
      "tuner kernel judge honest/blocked.c --job gemm.json --against gemm_plain.c --against-function "
      "gemm_plain");
  EXPECT_THAT(ran.out,
              ::testing::AnyOf(HasSubstr("times the speed of gemm_plain.c (95 %: "),
                               ContainsRegex("cannot tell: (the machine is too busy|times differ from)")))
      << ran.err;
  EXPECT_THAT(ran.exit_code, ::testing::AnyOf(0, 1));
  refuses("honest/blocked.c --job gemm.json --against cheats/one_element_wrong.c",
          "which it is to race with: wrong_answer: c[");
}

TEST_F(JudgeCli, AWrongElementIsNamed) {
  const json verdict = judged("cheats/one_element_wrong.c --job gemm.json", 1);
  EXPECT_EQ(verdict["verdict"], "wrong");
  EXPECT_EQ(verdict["difference"]["output"], "c");
  EXPECT_EQ(verdict["difference"]["index"], json({41, 17}));
  EXPECT_EQ(verdict["difference"]["found"], "0.25");
  EXPECT_THAT(verdict["why"].get<std::string>(), HasSubstr("c[41, 17] is 0.25, reference "));
  EXPECT_FALSE(verdict.contains("ratio"));
  EXPECT_EQ(judged("cheats/nothing.c --job gemm.json", 1)["difference"]["found"], "nan");
}

TEST_F(JudgeCli, TheSameSeedGivesTheSameInputs) {
  const std::string words = "cheats/one_element_wrong.c --job gemm.json";
  EXPECT_EQ(judged(words + " --seed 5", 1), judged(words + " --seed 5", 1));
  EXPECT_NE(judged(words, 1)["seed"], judged(words, 1)["seed"]);
}

TEST_F(JudgeCli, EachVerdictHasItsWord) {
  EXPECT_EQ(judged("cheats/traps.c --job gemm.json", 1)["verdict"], "crashed");
  EXPECT_EQ(judged("cheats/never_ends.c --job gemm.json", 1)["verdict"], "timed out");
  EXPECT_EQ(judged("cheats/reads_a_file.c --job gemm.json", 1)["verdict"], "refused");
  const json compiler = judged("cheats/calls_reference.c --job gemm.json", 1);
  EXPECT_EQ(compiler["verdict"], "not compiled");
  EXPECT_THAT(compiler["why"].get<std::string>(), HasSubstr("gemm_plain"));
}

// Times of the other kernel say nothing about this one.
TEST_F(JudgeCli, ARivalWhoseTimesCannotBeTrueTellsNothing) {
  const json verdict = judged("honest/blocked.c --job gemm.json --against cheats/cache_by_all.c", 1);
  EXPECT_EQ(verdict["verdict"], "cannot tell");
  EXPECT_THAT(verdict["why"].get<std::string>(),
              HasSubstr("cheats/cache_by_all.c, which it races with, forges its times: "));
}

TEST_F(JudgeCli, WhatACompilerSaysIsCutAndHarmless) {
  shell_.write("long.c", "#error \x1b[31m" + std::string(20000, 'x') + "\n");
  const CommandResult ran = shell_.run("tuner kernel judge long.c --job gemm.json");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_LT(ran.out.size(), 6000u);
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
}

TEST_F(JudgeCli, BadInputIsOneLine) {
  refuses("none.c --job gemm.json", "none.c: is no file");
  refuses("cheats --job gemm.json", "cheats: is no file");
  refuses("gemm_plain.c --job none.json", "none.json");
  refuses("gemm_plain.c --job gemm_plain.c", "gemm_plain.c: ");
  refuses("gemm_plain.c --job gemm.json --against none.c", "none.c: is no file");
  refuses("gemm_plain.c --job gemm.json --isolation much", "--isolation");
  refuses("gemm_plain.c --job gemm.json --against-function f", "--against");
  refuses("gemm_plain.c", "--job");
  refuses("gemm_plain.c --job gemm.json --target cuda", "");
  shell_.write("matmul.json", R"({"op": "matmul", "a": [8, 8], "b": [8, 8]})");
  refuses("gemm_plain.c --job matmul.json", R"(expected an entry with "op": "kernel")");
  shell_.run("(echo '['; cat gemm.json; echo ,; cat gemm.json; echo ']') > two.json");
  refuses("gemm_plain.c --job two.json", "expected one entry, found 2");
  json job = json::parse(shell_.read("gemm.json"));
  job["reference"]["function"] = "nobody";
  shell_.write("broken.json", job.dump());
  refuses("gemm_plain.c --job broken.json", "nobody");
  job["reference"] = {{"files", {{"c", "c.npy"}}}};
  shell_.write("arrays.json", job.dump());
  refuses("gemm_plain.c --job arrays.json", "c.npy");
}

}  // namespace
}  // namespace tuner
