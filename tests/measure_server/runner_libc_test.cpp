// The runner, bench_gpu and measure_runner are copied to hosts that have nothing of ours, and start where
// glibc is 2.34 or newer.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

// The lines that a command prints; empty if it fails.
std::vector<std::string> lines_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  char part[4096];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  const int status = pclose(pipe);
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; WIFEXITED(status) && WEXITSTATUS(status) == 0 && std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

// "GLIBC_2.36" -> 36; -1: the line asks for no version of glibc.
int minor_version(const std::string& line) {
  constexpr char kBegin[] = "GLIBC_2.";
  const size_t at = line.find(kBegin);
  return at == std::string::npos ? -1 : std::atoi(line.c_str() + at + sizeof kBegin - 1);
}

TEST(RunnerLibc, NoSymbolIsNewerThanGlibc234) {
  if (lines_of("objdump --version 2>/dev/null").empty()) GTEST_SKIP() << "no objdump here (binutils)";
  for (const std::string program : TUNER_TRAVELLING_PROGRAMS) {
    int asked = 0;
    for (const std::string& line : lines_of("objdump -T '" + program + "'")) {
      if (minor_version(line) < 0) continue;
      ++asked;
      EXPECT_LE(minor_version(line), 34) << program << ": " << line;
    }
    EXPECT_GT(asked, 50) << "objdump -T tells of no symbols of " << program;
  }
}

}  // namespace
