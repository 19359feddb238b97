// A large network (44 MB of weights, 977 operators, values of 134 MB): the check ends within a minute in
// 3 GB, shows that it goes on, and SIGTERM ends it within a second at any moment, with nothing left behind.
// In the long suite.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <regex>

#include "tests/models/nested_u.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;
using testing::Process;

class CompileLarge : public ::testing::Test {
 protected:
  void SetUp() override {
    if (wanted_rounds(0) == 0)
      GTEST_SKIP() << "a long test: TUNER_TEST_ROUNDS says how many signals it sends";
    std::ofstream(folder_.file("net.onnx"), std::ios::binary) << testing::nested_u({.seed = 1});
  }
  std::vector<std::string> words() const {
    return {std::string(TUNER_BIN_DIR) + "/tuner",
            "compile",
            folder_.file("net.onnx"),
            "-o",
            folder_.file("out"),
            "--no-tune",
            "--db",
            folder_.file("none.db")};
  }
  TemporaryFolder folder_;
};

TEST_F(CompileLarge, IsCheckedInAMinuteAndThreeGigabytesWithALineEveryTwoSeconds) {
  Process compile(words(), folder_.file("log"));
  std::vector<double> lines{0};
  const Clock::time_point begin = Clock::now();
  double check_begins = 0, check_ends = 0;
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  size_t seen = 0;
  const bool ended = testing::eventually(std::chrono::seconds(300), [&] {
    const std::string err = compile.err();
    if (err.size() > seen) lines.push_back(seconds());
    seen = err.size();
    if (check_begins == 0 && err.find("checking") != std::string::npos) check_begins = seconds();
    if (check_ends == 0 && err.find("timing the steps") != std::string::npos) check_ends = seconds();
    return compile.wait(std::chrono::seconds(0)).has_value();
  });
  ASSERT_TRUE(ended);
  EXPECT_EQ(compile.wait(std::chrono::seconds(1)), 0) << compile.err();
  for (size_t k = 1; k < lines.size(); ++k) EXPECT_LE(lines[k] - lines[k - 1], 2.2) << "line " << k;
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  std::cout << "check " << check_ends - check_begins << " s, " << used.ru_maxrss / 1024 << " MB\n";
  EXPECT_GT(check_begins, 0);
  EXPECT_LE(check_ends - check_begins, 60);
  EXPECT_LE(used.ru_maxrss, 3 * 1000 * 1000);  // kB
}

TEST_F(CompileLarge, EndsWithinASecondOfASignal) {
  std::mt19937 random(first_seed(3));
  for (uint32_t round = 0; round < wanted_rounds(8); ++round) {
    Process compile(words(), folder_.file("log"));
    const std::chrono::seconds at(std::uniform_int_distribution<int>(0, 55)(random));
    compile.wait(at);
    const Clock::time_point asked = Clock::now();
    compile.signal(SIGTERM);
    const auto code = compile.wait(std::chrono::seconds(10));
    const double took = std::chrono::duration<double>(Clock::now() - asked).count();
    SCOPED_TRACE(str("after ", at.count(), " s"));
    ASSERT_TRUE(code.has_value());
    EXPECT_LE(took, 1.0);
    if (*code == 0) {  // it was over before
      std::filesystem::remove_all(folder_.file("out"));
      continue;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
  }
}

}  // namespace
}  // namespace tuner
