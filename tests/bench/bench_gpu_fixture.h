// bench_gpu as a process, on a CUDA driver, a cuBLAS, a cuBLASLt and a cuDNN of ours: packs of small tasks
// whose answers are known, and what it says about them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "measure_server/runner/check_kernels.h"
#include "measure_server/runner/pack_file.h"
#include "tests/bench/made_up_tasks.h"
#include "tests/support/temporary_folder.h"

namespace tuner {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class BenchGpu : public testing::Test {
 protected:
  PackTask task(const std::string& key, const std::vector<ArgInfo>& args, const std::vector<double>& answer) {
    return tasks_.task(key, args, answer);
  }
  PackTask copying(const std::vector<std::string>& kernels, int64_t count = 1000) {
    return tasks_.copying(kernels, count);
  }
  PackTask product(const Product& p, const std::string& kernel) { return tasks_.product(p, kernel); }
  PackTask convolution(const Image& c, const std::string& more = "") { return tasks_.convolution(c, more); }

  struct Ended {
    int exit_code = -1;
    std::string text;
  };
  void write(std::vector<PackTask> tasks) {
    Pack pack{.about = "a test", .tasks = std::move(tasks)};
    pack.plan.rounds = {{.repeats = 3}, {.repeats = 5}};
    pack.plan.min_repeat_ms = 0.05;
    const Status written = write_pack(pack, (dir_ / "a.pack").string());
    ASSERT_TRUE(written.is_ok()) << written.message();
  }
  Ended run(const std::string& more = "", const std::string& environment = "") {
    const std::string log = (dir_ / "log").string();
    const std::string command = str(
        "cd ", dir_.string(), " && env TUNER_LIBCUDA=", TUNER_FAKE_CUDA, " TUNER_LIBNVML=", TUNER_FAKE_CUDA,
        " TUNER_LIBCUBLAS=", TUNER_FAKE_CUBLAS, " TUNER_LIBCUBLASLT=", TUNER_FAKE_CUBLASLT,
        " TUNER_LIBCUDNN=", TUNER_FAKE_CUDNN, " ", environment, " ", TUNER_BENCH_GPU_PATH,
        " a.pack --rounds 6 --json out.json ", more, " >", log, " 2>&1");
    const int status = std::system(command.c_str());
    std::ifstream in(log);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {std::istreambuf_iterator<char>(in), {}}};
  }
  json result() const {
    std::ifstream in(dir_ / "out.json");
    return json::parse(in, nullptr, /*allow_exceptions=*/false);
  }
  // A line of results.jsonl, as much of it as is read.
  void add_result(int candidate, int round, const std::string& outcome, double ns) {
    const Result<PackFile> pack = PackFile::open((dir_ / "a.pack").string());
    ASSERT_TRUE(pack.is_ok());
    std::ofstream(dir_ / "results.jsonl", std::ios::app)
        << json{{"format", 1},    {"pack", pack->id()}, {"task", 0},     {"candidate", candidate},
                {"round", round}, {"outcome", outcome}, {"run_ns", {ns}}}
        << "\n";
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path dir_ = temporary_.path();
  MadeUpTasks tasks_{dir_};
};

}  // namespace tuner
