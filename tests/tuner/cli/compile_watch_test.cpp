// `tuner compile` on a network whose check takes half a minute: it tells what it does every two seconds, and
// SIGTERM or SIGINT ends it soon at any moment, with nothing left behind. How soon: work_watch_test.cpp, by a
// made-up clock. compile_large_test.cpp does the same on a network of its size in the field.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <regex>

#include "tests/models/network_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::Process;

class CompileWatch : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::NetworkWriter w(1);
    testing::Tensor x = w.input({1, 32, 512, 512});
    for (int k = 0; k < 60; ++k) x = w.relu(w.conv(x, {.channels = 32, .kernel = 3}));
    w.output(x);
    std::ofstream(folder_.file("net.onnx"), std::ios::binary) << w.bytes();
    setenv("HOME", folder_.path().c_str(), 1);
  }
  std::unique_ptr<Process> compile() {
    return std::make_unique<Process>(
        std::vector<std::string>{std::string(TUNER_BIN_DIR) + "/tuner", "compile", folder_.file("net.onnx"),
                                 "-o", folder_.file("out"), "--no-tune", "--db", folder_.file("none.db")},
        folder_.file(str("log", ++logs_)));
  }
  // It would go on for half a minute.
  void expect_ended(Process& process) const {
    EXPECT_EQ(process.wait(5s), 1) << process.err();
    EXPECT_NE(process.err().find("stopped: nothing is written. To continue: "), std::string::npos)
        << process.err();
    EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
  }
  const TemporaryFolder folder_;
  int logs_ = 0;
};

// The lines of the watch end with the seconds since the beginning.
std::vector<int> seconds_of(const std::string& err) {
  const std::regex line(R"((reading|rewriting|building|checking|timing)[^\n]*, ([0-9]+) s\n)");
  std::vector<int> seconds;
  for (std::sregex_iterator it(err.begin(), err.end(), line), end; it != end; ++it)
    seconds.push_back(std::stoi((*it)[2]));
  return seconds;
}

TEST_F(CompileWatch, TellsWhatItDoesAndIsEndedWhileItChecks) {
  const auto process = compile();
  ASSERT_TRUE(testing::eventually(60s, [&] {
    return process->err().find("checking step") != std::string::npos &&
           seconds_of(process->err()).size() >= 2;
  })) << process->err();
  const std::vector<int> seconds = seconds_of(process->err());
  EXPECT_LE(seconds[0], 2);
  for (size_t k = 1; k < seconds.size(); ++k) {
    EXPECT_GT(seconds[k], seconds[k - 1]) << process->err();
    EXPECT_LE(seconds[k] - seconds[k - 1], 3) << process->err();  // whole seconds, and a loaded machine
  }
  process->signal(SIGINT);
  expect_ended(*process);
}

TEST_F(CompileWatch, IsEndedWhileItReadsAndBuilds) {
  for (const auto moment : {20ms, 150ms, 700ms}) {
    SCOPED_TRACE(moment.count());
    const auto process = compile();
    wait_until(moment, [&] { return process->tree().empty(); });
    process->signal(SIGTERM);
    const std::optional<int> code = process->wait(5s);
    ASSERT_TRUE(code.has_value());
    // A signal before main() does what signals do.
    EXPECT_TRUE(code == 1 || code == 128 + SIGTERM) << *code;
    EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
  }
}

}  // namespace
}  // namespace tuner
