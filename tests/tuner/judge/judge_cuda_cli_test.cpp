// `tuner kernel judge` of kernels in CUDA: on the GPU for tests, and on this host's CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/foreign/confined_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;

class JudgeCudaCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
    std::filesystem::permissions(scratch_.path(), std::filesystem::perms(0755));
    std::filesystem::create_directories(scratch_.file("programs"));
    shell_.run("cp -r " TUNER_SOURCE_DIR "/tests/examples/judge/. .");
  }
  CommandResult on_gpu(const std::string& words) {
    return shell_.run(str("export TUNER_LIBCUDA=" TUNER_FAKE_CUDA " TUNER_LIBNVML=" TUNER_FAKE_CUDA
                          " TUNER_NVRTC=" TUNER_FAKE_NVRTC " TUNER_FAKE_CUDA_PROGRAMS=",
                          scratch_.file("programs"), " TMPDIR=", scratch_.path().string(),
                          "\ntuner kernel judge --json ", words));
  }
  CommandResult without_gpu(const std::string& words) {
    return shell_.run("TUNER_LIBCUDA=/none tuner kernel judge --json " + words);
  }
  static json verdict(const CommandResult& ran, int exit_code) {
    EXPECT_EQ(ran.exit_code, exit_code) << ran.out << ran.err;
    return json::accept(ran.out) ? json::parse(ran.out) : json::object();
  }
  void refuses(const std::string& words, const std::string& says) {
    const CommandResult ran = without_gpu(words);
    EXPECT_EQ(ran.exit_code, 2) << words << "\n" << ran.out << ran.err;
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(says)) << words;
    EXPECT_EQ(ran.out, "");
  }
  const TemporaryFolder scratch_;
  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(JudgeCudaCli, ARightKernelRacesWithTheJobsOwn) {
  const json found = verdict(on_gpu("honest/cuda_rows_by_warps.cu --job rows_cuda.json"), 0);
  EXPECT_EQ(found["verdict"], "right");
  EXPECT_EQ(found["against"], "row_sums of rows.cu");
  EXPECT_EQ(found["input_sets"], 6);
  // Six where time allows (duel_test); three where this GPU, which compiles kernels in each process, is slow.
  EXPECT_GE(found["processes"], 3);
  EXPECT_GT(found["time_ns"], 0);
  EXPECT_NEAR(found["ratio"].get<double>(), 1, 0.01) << "all kernels take as long on that GPU";
}

TEST_F(JudgeCudaCli, WhatIsRightOnlyAtFirstIsWrong) {
  const json found = verdict(on_gpu("cheats/cuda_returns_if_it_is_there.cu --job scale_cuda.json"), 1);
  EXPECT_EQ(found["verdict"], "wrong");
  EXPECT_EQ(found["difference"]["output"], "y");
  EXPECT_EQ(found["difference"]["index"].size(), 1u);
  EXPECT_THAT(found["why"].get<std::string>(), HasSubstr("wrong in a timed one"));
  EXPECT_EQ(verdict(on_gpu("cheats/cuda_writes_behind.cu --job scale_cuda.json"), 1)["verdict"], "crashed");
}

TEST_F(JudgeCudaCli, ARivalMustBeRight) {
  const CommandResult ran = on_gpu("scale.cu --job scale_cuda.json --against cheats/cuda_only_sampled.cu");
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("which it is to race with: wrong_answer: y["));
}

TEST_F(JudgeCudaCli, CodeIsReadWithoutAGpu) {
  const json found = verdict(without_gpu("cheats/cuda_cache_by_sample.cu --job rows_cuda.json --on-host"), 1);
  EXPECT_EQ(found["verdict"], "refused");
  EXPECT_THAT(found["why"].get<std::string>(), HasSubstr("writes to a variable of its module"));
  EXPECT_THAT(found["why"].get<std::string>(), HasSubstr(": kept"));
}

TEST_F(JudgeCudaCli, AnswersAreComparedOnTheHost) {
  const json right = verdict(without_gpu("honest/cuda_scale_by_table.cu --job scale_cuda.json --on-host"), 0);
  EXPECT_EQ(right["verdict"], "right, not timed");
  EXPECT_EQ(right["input_sets"], 6);
  EXPECT_FALSE(right.contains("ratio") || right.contains("unread"));
  // An output begins as another run left it.
  const json lazy =
      verdict(without_gpu("cheats/cuda_returns_if_it_is_there.cu --job scale_cuda.json --on-host"), 1);
  EXPECT_EQ(lazy["verdict"], "wrong");
  EXPECT_EQ(lazy["difference"]["output"], "y");
  std::string race = shell_.read("rows.cu");
  race.replace(race.find("__syncthreads();"), 16, "");
  shell_.write("race.cu", race);
  const json raced = verdict(without_gpu("race.cu --job rows_cuda.json --on-host"), 1);
  EXPECT_EQ(raced["verdict"], "wrong");
  EXPECT_THAT(raced["why"].get<std::string>(), HasSubstr("a race on sums"));
}

TEST_F(JudgeCudaCli, WhereNothingReadsTheCodeTheVerdictSaysSo) {
  const CommandResult ran = shell_.run(
      "TUNER_LIBCUDA=/none TUNER_NVRTC=/none tuner kernel judge scale.cu --job scale_cuda.json --on-host");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("right, not timed\n"));
  EXPECT_THAT(ran.out, HasSubstr("nobody read its code: no NVRTC"));
}

TEST_F(JudgeCudaCli, TheJobsOwnKernelMayBeRightByDefinition) {
  json job = json::parse(shell_.read("scale_cuda.json"));
  job["reference"] = "default";
  shell_.write("default.json", job.dump());
  EXPECT_EQ(
      verdict(without_gpu("honest/cuda_scale_in_vectors.cu --job default.json --on-host"), 0)["verdict"],
      "right, not timed");
  EXPECT_EQ(verdict(without_gpu("cheats/cuda_only_sampled.cu --job default.json --on-host"), 1)["verdict"],
            "wrong");
}

TEST_F(JudgeCudaCli, BadInputIsOneLine) {
  refuses("scale.cu --job scale_cuda.json", R"(no GPU here is "cuda -arch=sm_90a": )");
  refuses("scale.cu --job scale_cuda.json", "--on-host");
  refuses("scale_plain.c --job scale_cuda.json --on-host", "is a source in C or C++, ");
  refuses("scale.cu --job gemm.json", "is a source in CUDA, ");
  refuses("gemm_plain.c --job gemm.json --function gemm_plain --on-host",
          "--on-host: is for kernels in CUDA");
  refuses("scale.cu --job scale_cuda.json --target cpu", "expected one that runs such a kernel");
  json job = json::parse(shell_.read("scale_cuda.json"));
  job["language"] = "cubin";
  shell_.write("ready.json", job.dump());
  refuses("scale.cu --job ready.json", "its kernels come compiled");
}

}  // namespace
}  // namespace tuner
