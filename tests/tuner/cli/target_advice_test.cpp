// What a user is told who names the GPU of a Hopper without the suffix that its fastest instructions need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "compiler_core/target.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kAdvice[] =
    "tuner: target \"cuda -arch=sm_90\": without the \"a\" there are no templates with wgmma and TMA, the "
    "fastest on an "
    "H100 or H200; use \"cuda -arch=sm_90a\"\n";

class TargetAdvice : public testing::Test {
 protected:
  // What a command says on stderr, whatever it ends with.
  std::string said(const std::string& arguments) {
    const std::string line =
        str("cd ", temporary_.path().string(), " && XDG_DATA_HOME=", temporary_.path().string(), " ",
            TUNER_BINARY, " ", arguments, " >out.txt 2>err.txt </dev/null");
    (void)std::system(line.c_str());
    std::ifstream in(temporary_.path() / "err.txt");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static size_t lines_with(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }
  // Two entries for the target.
  void write_job(const std::string& target) {
    std::ofstream(temporary_.path() / "job.json")
        << R"([{"op": "softmax", "rows": 4, "columns": 64, "target": ")" << target
        << R"("}, {"op": "softmax", "rows": 8, "columns": 64, "target": ")" << target << R"("}])";
  }
  const TemporaryFolder temporary_;
};

TEST_F(TargetAdvice, EveryCommandThatTakesATargetGivesItOnce) {
  write_job("cuda -arch=sm_90");
  for (const char* command :
       {"show job.json --as cuda", "verify job.json", "build job.json -o built", "query job.json",
        "pack job.json -o p.pack --candidates 1", "submit job.json --trials 1"}) {
    const std::string text = said(command);
    EXPECT_THAT(text, HasSubstr(kAdvice)) << command;
    EXPECT_EQ(lines_with(text, "sm_90a"), 1u) << command << ": " << text;
  }
}

TEST_F(TargetAdvice, ATargetOfTheCommandLineCountsToo) {
  write_job("cpu");
  EXPECT_EQ(lines_with(said("show job.json --as cuda --target 'cuda -arch=sm_90'"), kAdvice), 1u);
  EXPECT_THAT(said("show job.json --as cuda --target 'cuda -arch=sm_90a'"), Not(HasSubstr("use \"cuda")));
}

TEST_F(TargetAdvice, OtherTargetsNeedNone) {
  for (const char* target : {"cuda -arch=sm_90a", "cuda -arch=sm_80", "cuda -arch=sm_100", "cpu"}) {
    write_job(target);
    EXPECT_THAT(said("query job.json"), Not(HasSubstr("use \"cuda"))) << target;
  }
}

TEST(TargetFamilies, AdviseOnTheNameAlone) {
  const auto advice = [](const char* text) {
    const Result<Target> target = parse_target(text);
    EXPECT_TRUE(target.is_ok()) << target.message();
    return target->family->advice(*target);
  };
  EXPECT_THAT(advice("cuda -arch=sm_90"), HasSubstr("sm_90a"));
  EXPECT_THAT(advice("cuda -arch=sm_90 -emulated"), HasSubstr("use \"cuda -arch=sm_90a -emulated\""));
  EXPECT_THAT(advice("cuda -arch=sm_90a"), IsEmpty());
  EXPECT_THAT(advice("cuda -arch=sm_89"), IsEmpty());
  EXPECT_THAT(advice("llvm -mcpu=znver4"), IsEmpty());
}

}  // namespace
}  // namespace tuner
