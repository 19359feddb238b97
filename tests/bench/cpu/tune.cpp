#include "tests/bench/cpu/tune.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

extern char** environ;

namespace tuner {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void describe(const MatmulWorkload& w, json& j) {
  j["batch"] = w.batch;
  j["a"] = w.transpose_a ? json{w.k, w.m} : json{w.m, w.k};
  j["b"] = w.transpose_b ? json{w.n, w.k} : json{w.k, w.n};
  j["transpose_a"] = w.transpose_a;
  j["transpose_b"] = w.transpose_b;
}

void describe(const Conv2dWorkload& w, json& j) {
  j["data"] = {w.batch, w.in_channels, w.in_height, w.in_width};
  j["weight"] = {w.out_channels, w.in_channels / w.groups, w.kernel_height, w.kernel_width};
  j["stride"] = w.stride;
  j["padding"] = w.padding;
  j["dilation"] = w.dilation;
  j["groups"] = w.groups;
  j["layout"] = w.layout;
  j["out_layout"] = w.out_layout;
}

template <class W>
requires requires(const W& w) { w.rows; }
void describe(const W& w, json& j) {
  j["rows"] = w.rows;
  j["columns"] = w.columns;
  if constexpr (requires { w.epsilon; }) j["epsilon"] = w.epsilon;
  if constexpr (requires { w.reduction; }) j["reduction"] = row_reduction_name(w.reduction);
  if constexpr (requires { w.scale; }) j["scale"] = w.scale;
}

template <class W>
requires requires(const W& w) { w.pooling; }
void describe(const W& w, json& j) {
  j["data"] = {w.batch, w.channels, w.in_height, w.in_width};
  j["kernel"] = {w.kernel_height, w.kernel_width};
  j["stride"] = w.stride;
  j["padding"] = w.padding;
  j["pooling"] = pooling_name(w.pooling);
  j["count_include_pad"] = w.count_include_pad;
  j["layout"] = w.layout;
}

// Beside this program: bin/tuner.
Result<std::string> find_tuner() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error);
  const fs::path command = here.parent_path() / "tuner";
  if (error || !fs::exists(command))
    return not_found(command.string(), " is not there; build it (target tuner, measure_server, runner)");
  return command.string();
}

}  // namespace

std::string job_entry(const Workload& workload, int threads, Algorithms algorithms) {
  json j = {{"op", workload.op_name()}, {"target", str("cpu -threads=", threads)}};
  std::visit(
      [&](const auto& w) {
        describe(w, j);
        if constexpr (requires { w.bias; }) j["bias"] = w.bias;
        if constexpr (requires { w.residual; }) j["residual"] = w.residual;
        if constexpr (requires { w.activation; })
          if (w.activation == Activation::kRelu) j["activation"] = "relu";
        if constexpr (requires { w.constant; }) j["constant"] = w.constant;
        if (w.dtype != DType::kFloat32) j["dtype"] = dtype_name(w.dtype);
      },
      workload.op());
  if (algorithms == Algorithms::kDirect) j["algorithms"] = {"direct"};
  return j.dump();
}

Status tune(const std::vector<Workload>& workloads, const TuneOptions& options) {
  if (workloads.empty()) return Status::ok();
  ASSIGN_OR_RETURN(const std::string command, find_tuner());
  std::string file = fs::temp_directory_path() / "bench-cpu-job-XXXXXX";
  const int fd = ::mkstemp(file.data());
  if (fd < 0) return failed("no temporary file can be made; set TMPDIR");
  ::close(fd);
  std::ofstream out(file);
  for (size_t i = 0; i < workloads.size(); ++i)
    out << (i == 0 ? "[" : ",\n") << job_entry(workloads[i], options.threads, options.algorithms);
  out << "]\n";
  out.close();

  std::vector<std::string> texts{command, "submit",  file, "--trials", std::to_string(options.trials),
                                 "--db",  options.db};
  if (options.seed) texts.insert(texts.end(), {"--seed", std::to_string(*options.seed)});
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, command.c_str(), nullptr, nullptr, words.data(), environ);
  int state = 0;
  if (error == 0)
    while (::waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
  std::error_code ignored;
  fs::remove(file, ignored);
  if (error != 0) return failed(command, ": cannot be started: ", std::strerror(error));
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) return failed(command, " submit failed");
  return Status::ok();
}

}  // namespace tuner
