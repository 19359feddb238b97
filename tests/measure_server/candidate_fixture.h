// Candidates written in C: compiled by the test into an artifact and run by the real runner. The kernel asked
// for is out[i] = 2 * x[i] on float32 [4, 8, 40]; what a test writes in its place may do anything.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/runner/reference_file.h"
#include "measure_server/runner/runner_client.h"
#include "tests/support/temporary_folder.h"

namespace tuner {

class CandidateTest : public testing::Test {
 protected:
  static constexpr int64_t kCount = 4 * 8 * 40;

  static void SetUpTestSuite() {
    Result<std::unique_ptr<RunnerClient>> started = RunnerClient::start(TUNER_RUNNER_PATH);
    ASSERT_TRUE(started.is_ok()) << started.message();
    runner = started->release();
  }
  static void TearDownTestSuite() {
    delete runner;
    runner = nullptr;
  }

  void SetUp() override {
    std::vector<float> x(kCount);
    std::vector<double> answer(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      x[i] = 0.25f + static_cast<float>((i * 7919) % 1009) / 1009.0f;
      answer[i] = 2.0 * x[i];
    }
    std::ofstream(dir_ / "x.f32", std::ios::binary)
        .write(reinterpret_cast<const char*>(x.data()), kCount * sizeof(float));
    ASSERT_TRUE(write_reference(dir_ / "out.ref", answer, {4, 8, 40}, ReferenceKind::kFull).is_ok());
  }

  static Manifest doubling_manifest() {
    Manifest m;
    m.entry = "doubling";
    m.args = {{"x", BufferRole::kInput, DType::kFloat32, {4, 8, 40}, "", kCount * 4},
              {"out", BufferRole::kOutput, DType::kFloat32, {4, 8, 40}, "", kCount * 4}};
    m.target = "llvm -mcpu=x86-64 -threads=1";
    m.toolchain = "cc";
    return m;
  }

  // Compiles C `code` (with the usual headers, `N`, and `doubling_right()` at hand) and stores it as an
  // artifact.
  std::string build(const std::string& code, Manifest manifest = doubling_manifest()) {
    Artifact artifact{std::move(manifest), compiled(R"(#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "compiler_core/runtime/tuner_runtime.h"
enum { N = 4 * 8 * 40 };
__attribute__((unused)) static int32_t doubling_right(void* const* args) {
  const float* x = args[0];
  float* out = args[1];
  for (int i = 0; i < N; ++i) out[i] = 2 * x[i];
  return 0;
}
)" + code)};
    const Result<std::string> digest = save_artifact(artifact, (dir_ / "artifacts").string());
    EXPECT_TRUE(digest.is_ok()) << digest.message();
    return digest.is_ok() ? *digest : "";
  }
  // Compiles a whole C source; returns the shared object.
  virtual std::string compiled(const std::string& source) {
    static int counter = 0;
    const std::string base = (dir_ / str("candidate", counter++)).string();
    std::ofstream(base + ".c") << source;
    const std::string command =
        "cc -O1 -w -shared -fPIC -I" TUNER_SOURCE_DIR " -o " + base + ".so " + base + ".c";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream in(base + ".so", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A candidate whose kernel has this body.
  std::string build_kernel(const std::string& body) {
    return build("int32_t doubling(void* const* args, const tuner_runtime* rt) {" + body + "\n}");
  }

  RunRequest request(const std::string& digest) {
    static uint64_t next_id = 1;
    RunRequest r;
    r.id = next_id++;
    r.artifact_dir = (dir_ / "artifacts").string();
    r.digest = digest;
    r.inputs = {{"x", (dir_ / "x.f32").string()}};
    r.references = {{"out", (dir_ / "out.ref").string()}};
    r.min_repeat_ms = 0.2;
    r.repeats = 5;
    r.run_timeout_s = 20;
    r.memory_limit_bytes = int64_t{1} << 30;
    return r;
  }
  RunReply run(const RunRequest& r) {
    const Result<RunReply> reply = runner->run(r);
    EXPECT_TRUE(reply.is_ok()) << reply.message();
    return reply.is_ok() ? *reply : RunReply{};
  }
  RunReply run_kernel(const std::string& body) { return run(request(build_kernel(body))); }

  static RunnerClient* runner;
  const TemporaryFolder temporary_;
  const std::filesystem::path dir_ = temporary_.path();
};

inline RunnerClient* CandidateTest::runner = nullptr;

}  // namespace tuner
