// `tuner verify --on-host` as a person types it: what it prints, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler_core/foreign/compilers.h"
#include "compiler_core/foreign/confined_program.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CudaOnHost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    for (const char* name : {"cc", "c++"})
      if (const Result<Compiler> compiler = find_compiler(name); !compiler)
        GTEST_SKIP() << compiler.message();
    for (const char* name :
         {"transpose.cu", "cuda_plain.c", "transpose_cuda.json", "sgemm.c", "sgemm_plain.c", "sgemm.json"})
      std::filesystem::copy_file(std::filesystem::path(TUNER_SOURCE_DIR "/examples/own_kernels") / name,
                                 line_.folder() / name);
    nlohmann::json job = nlohmann::json::parse(line_.read("transpose_cuda.json"));
    job["sizes"] = {{"height", 70}, {"width", 45}};
    line_.write("job.json", job.dump());
  }
  testing::CommandResult run(const std::string& words) const { return line_.run("tuner verify " + words); }

  testing::CommandLine line_{TUNER_BIN_DIR};
};

TEST_F(CudaOnHost, RightConfigs) {
  const testing::CommandResult r = run("job.json --on-host --samples 3 --seed 5");
  EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("transpose.cu on this host's CPU: 3 of "), HasSubstr("seed 5\n"),
                           HasSubstr("\n  out: right when |error| <= "),
                           HasSubstr("\n  right  PAD=1 ROWS=8 TILE=32\n"),
                           HasSubstr("\n  3 of 3 compared, 0 wrong\n3 configs compared, 0 wrong, in ")));
}

TEST_F(CudaOnHost, AFaultIsToldWithItsLinesAndFails) {
  std::string text = line_.read("transpose.cu");
  line_.write("transpose.cu", text.replace(text.find("__syncthreads();"), 16, "/* none */      "));
  const testing::CommandResult r = run("job.json --on-host --samples 1");
  EXPECT_EQ(r.exit_code, 1) << r.out << r.err;
  EXPECT_THAT(r.out,
              AllOf(HasSubstr("\n  FAILED PAD=1 ROWS=8 TILE=32\n    a race on tile (shared memory) at byte "),
                    HasSubstr("transpose.cu:8"), HasSubstr("transpose.cu:14"),
                    HasSubstr("\n1 configs compared, 1 wrong, in ")));
}

// A job file that names no GPU takes any, where there is none.
TEST_F(CudaOnHost, NeedsNoGpuAndNoTarget) {
  nlohmann::json job = nlohmann::json::parse(line_.read("job.json"));
  job.erase("target");
  line_.write("job.json", job.dump());
  const testing::CommandResult r = run("job.json --on-host --samples 1");
  EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
}

TEST_F(CudaOnHost, WrongUse) {
  const auto refused = [&](const std::string& words) {
    const testing::CommandResult r = run(words);
    EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
    EXPECT_EQ(r.out, "") << words;
    return r.err;
  };
  EXPECT_THAT(refused("sgemm.json --on-host"),
              AllOf(HasSubstr("sgemm.json: --on-host runs kernels with \"language\": \"cuda\""),
                    HasSubstr("leave --on-host out")));
  EXPECT_THAT(refused("job.json --on-host --oracle"), HasSubstr("leave --oracle out"));
  EXPECT_THAT(refused("job.json --on-host --times"), HasSubstr("leave --times out"));
  EXPECT_THAT(refused("none.json --on-host"), Not(HasSubstr("root:")));
}

}  // namespace
}  // namespace tuner
