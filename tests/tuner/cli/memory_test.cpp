// Memory: what would not fit is refused before anything is taken, and nothing of ours outlives its command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/tuner/cli/real_job.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Process;
using testing::RealJob;

TEST(Memory, OperandsBeyondACandidatesLimitAreRefusedInOneLine) {
  const RealJob job;
  std::ofstream(job.file) << R"({"op":"matmul","a":[60000,60000],"b":[60000,60000]})";
  for (const std::vector<std::string>& words :
       {job.submit(8), job.tuner({"verify", job.file, "--samples", "1"})}) {
    Process command(words, job.folder.file(words[1]));
    EXPECT_EQ(command.wait(20s), 2) << command.err();
    const std::string said = command.err();
    EXPECT_THAT(said, HasSubstr("its operands take 40.2 GiB, a candidate may take 4.0 GiB"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_FALSE(std::filesystem::exists(job.db));
    EXPECT_FALSE(std::filesystem::exists(job.folder.file("cache")));
  }
}

// Running and not a zombie that nobody has waited for.
bool alive(pid_t pid) {
  const std::string stat = testing::read_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  return end != std::string::npos && stat.size() > end + 2 && stat[end + 2] != 'Z';
}

bool is_builder(pid_t pid) {
  return testing::read_text("/proc/" + std::to_string(pid) + "/cmdline").find("--builder") !=
         std::string::npos;
}

// Seconds of user time that it has used.
double busy_s(pid_t pid) {
  const std::string stat = testing::read_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  long ticks = 0;
  if (end == std::string::npos ||
      std::sscanf(stat.c_str() + end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld", &ticks) != 1)
    return 0;
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// A builder in the middle of a reference answer that takes minutes looks at no socket.
TEST(Memory, NothingOutlivesACommandThatIsKilled) {
  const RealJob job;
  std::ofstream(job.file) << R"({"op":"matmul","a":[6000,6000],"b":[6000,6000]})";
  Process submit(job.submit(8), job.folder.file("submit"));
  std::vector<pid_t> all;
  ASSERT_TRUE(eventually(120s, [&] {
    all = submit.tree();
    return std::any_of(all.begin(), all.end(), [](pid_t pid) { return is_builder(pid) && busy_s(pid) > 2; });
  })) << submit.err();
  submit.signal(SIGKILL);
  EXPECT_EQ(submit.wait(10s), 128 + SIGKILL);
  EXPECT_TRUE(eventually(10s, [&] { return std::none_of(all.begin(), all.end(), alive); }));
  for (const pid_t pid : all) {
    EXPECT_FALSE(alive(pid)) << testing::read_text("/proc/" + std::to_string(pid) + "/cmdline");
    if (alive(pid)) kill(pid, SIGKILL);
  }
}

}  // namespace
}  // namespace tuner
