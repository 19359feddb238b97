// A board, played by qemu: daemon, a builder on this host and a runner of the other architecture, over TLS.
// The last layer of ResNet-50 is tuned, raced, asked for, and built into a library that a cross-compiled
// program links and runs, with right answers. Needs what
// deploy/cross.sh aarch64 builds, and qemu-user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using testing::eventually;
using ::testing::HasSubstr;
using testing::Process;
using testing::read_text;

constexpr int kIn = 2048, kOut = 1000;

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<float> floats_of(const std::string& file) {
  const std::string bytes = read_text(file);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

class Board : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& needed : {worker_ + "/measure_runner", worker_ + "/runner"})
      if (!std::filesystem::exists(needed))
        GTEST_SKIP() << needed << " is not there: deploy/cross.sh aarch64";
    for (const char* tool : {"qemu-aarch64", "aarch64-linux-gnu-g++"})
      if (std::system((std::string("command -v ") + tool + " > /dev/null 2>&1").c_str()) != 0)
        GTEST_SKIP() << tool << " is not here: deploy/install.sh --emulator --cross";
    setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1);
    setenv("XDG_DATA_HOME", folder_.file("data").c_str(), 1);
  }
  // A program's end, with exit status 0.
  std::string run(const std::string& line, std::chrono::seconds limit = 60s) {
    Process process(words_of(line), folder_.file("run" + std::to_string(++runs_)));
    EXPECT_EQ(process.wait(limit), 0) << line << "\n" << process.out() << process.err();
    return process.out();
  }
  std::string tuner(const std::string& words) { return run(bin_ + "/tuner " + words, 900s); }
  std::string credentials(const std::string& kind, const std::string& name) {
    const std::string file = folder_.file(name + ".credentials");
    tuner("admin " + kind + " " + name + " --address " + address_ + " -o " + file + " --db " + db_);
    return file;
  }
  void serve() {
    tuner("admin ca --db " + db_);
    serve_ = std::make_unique<Process>(words_of(bin_ + "/tuner serve --listen tls:127.0.0.1:0 --db " + db_),
                                       folder_.file("serve"));
    ASSERT_TRUE(eventually(30s, [&] {
      std::smatch found;
      const std::string text = serve_->out();
      if (std::regex_search(text, found, std::regex("listening on (?:tls:)?(\\S+)"))) address_ = found[1];
      return !address_.empty();
    })) << serve_->err();
  }

  const TemporaryFolder folder_;
  const std::string bin_ = TUNER_BIN_DIR, worker_ = TUNER_CROSS_DIR "/worker", db_ = folder_.file("t.db");
  const std::string qemu_ = "qemu-aarch64 -cpu cortex-a72 -L " TUNER_CROSS_DIR "/sysroot ";
  std::unique_ptr<Process> serve_;
  std::string address_;
  int runs_ = 0;
};

TEST_F(Board, TunesAndRunsTheLastLayerOfResNet50) {
  serve();
  const std::string alice = credentials("token", "alice"), host = credentials("worker", "builder1"),
                    board = credentials("worker", "board");
  const Process builder(words_of(bin_ + "/measure_server --kind builder --daemon " + host + " --work-dir " +
                                 folder_.file("b") + " --shared-dir " + folder_.file("b-shared")),
                        folder_.file("builder"));
  const Process runner(
      words_of("/usr/bin/env " + qemu_ + worker_ + "/measure_runner --daemon " + board + " --work-dir " +
               folder_.file("r") + " --shared-dir " + folder_.file("r-shared")),
      folder_.file("runner"));
  std::string list;
  ASSERT_TRUE(eventually(120s,
                         [&] {
                           list = tuner("workers --daemon " + alice);
                           return list.find("a runner") != std::string::npos &&
                                  list.find("a builder") != std::string::npos;
                         }))
      << list << runner.err() << builder.err();
  EXPECT_THAT(list, HasSubstr("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"));
  EXPECT_THAT(list, HasSubstr("-emulated")) << "its times never meet a device's";

  const std::string job = folder_.file("fc.json");
  std::ofstream(job)
      << R"({"name": "fc", "op": "matmul", "a": [1, )" << kIn << R"(], "b": [)" << kIn << ", " << kOut
      << R"(], "constant": ["b"], "search": "random", "measure": {"min_repeat_ms": 1, "repeats": 3},)"
      << R"( "target": "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -threads=1 -emulated"})";
  const std::string tuned = tuner("submit " + job + " --trials 64 --stop-below 0 --daemon " + alice);
  // On a busy machine the race decides nothing, and says so.
  EXPECT_THAT(tuned, AnyOf(HasSubstr("a race of"), HasSubstr("no race that decides"))) << runner.err();
  const std::string answer = tuner("query " + job + " --daemon " + alice);
  EXPECT_THAT(answer, HasSubstr("exact: this task was tuned"));
  EXPECT_THAT(answer, HasSubstr("worker board")) << answer;
  std::printf("%s", answer.c_str());

  // The program of examples/app_cpp, for the board.
  const std::string out = folder_.file("out"), app = folder_.file("app"), dump = folder_.file("dump");
  tuner("build " + job + " -o " + out + " --name app_kernels --db " + db_);
  EXPECT_THAT(read_text(out + "/manifest.json"), HasSubstr("\"same_code_as_measured\": true"));
  run("/usr/bin/env aarch64-linux-gnu-g++ -O2 -std=c++17 " TUNER_SOURCE_DIR "/examples/app_cpp/main.cpp -I" +
      out + "/include -L" + out + "/lib -lapp_kernels -Wl,-rpath," + out + "/lib -pthread -o " + app);
  std::filesystem::create_directory(dump);
  run("/usr/bin/env qemu-aarch64 -cpu cortex-a72 -L /usr/aarch64-linux-gnu " + app + " " + dump, 300s);
  const std::vector<float> a = floats_of(dump + "/fc.a"), b = floats_of(dump + "/fc.b"),
                           c = floats_of(dump + "/fc.out");
  ASSERT_EQ(a.size(), static_cast<size_t>(kIn));
  ASSERT_EQ(b.size(), static_cast<size_t>(kIn) * kOut);
  ASSERT_EQ(c.size(), static_cast<size_t>(kOut));
  for (size_t j = 0; j < kOut; ++j) {
    double sum = 0;
    for (size_t k = 0; k < kIn; ++k) sum += static_cast<double>(a[k]) * b[k * kOut + j];
    ASSERT_NEAR(c[j], sum, 1e-3) << j;
  }
}

// A job for a core that nobody knows could never come; code for one with more units would not run.
TEST_F(Board, ANameThatThisCoreCannotHaveIsRefused) {
  const auto refusal = [&](const std::string& name) {
    Process runner(
        words_of("/usr/bin/env " + qemu_ + worker_ + "/measure_runner --daemon 127.0.0.1:1 --mcpu " + name),
        folder_.file("named" + name));
    EXPECT_EQ(runner.wait(60s), 2) << runner.err();
    return runner.err();
  };
  EXPECT_THAT(refusal("raspberrypi4"), HasSubstr("--mcpu: found raspberrypi4, expected generic or one of "));
  EXPECT_THAT(refusal("cortex-a76"), HasSubstr("which this core has not"));
}

}  // namespace
}  // namespace tuner
