#include "tests/bench/cpu/tune.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "templates/workload/workload_json.h"

extern char** environ;

namespace tuner {
namespace {

namespace fs = std::filesystem;
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
  nlohmann::ordered_json j = workload_json(workload);
  j["target"] = str("cpu -threads=", threads);
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
