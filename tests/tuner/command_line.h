// Runs command lines in a scratch folder, through the shell, with a home of their own.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "compiler_core/base/status.h"
#include "tests/support/temporary_folder.h"

namespace tuner::testing {

struct CommandResult {
  int exit_code = -1;  // 128 + signal when one ended it
  std::string out, err;
};

class CommandLine {
 public:
  // `path_first`: a folder that programs are looked for first.
  explicit CommandLine(std::string path_first) : path_first_(std::move(path_first)) {
    std::filesystem::create_directories(folder_ / ".home/run");
  }
  CommandLine(const CommandLine&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string read(const std::filesystem::path& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Each file below `name` and what it holds.
  std::map<std::string, std::string> tree(const std::string& name) const {
    std::map<std::string, std::string> files;
    if (!std::filesystem::exists(folder_ / name)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / name))
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), folder_ / name).string()] = read(entry.path());
    return files;
  }
  // `script` may have many lines; each deadline is the test's own.
  CommandResult run(const std::string& script) const {
    write(".home/script", script);
    const std::string home = (folder_ / ".home").string();
    const std::string line =
        str("cd ", folder_.string(), " && PATH=", path_first_, ":$PATH HOME=", home, " XDG_DATA_HOME=", home,
            "/data XDG_CACHE_HOME=", home, "/cache XDG_RUNTIME_DIR=", home, "/run bash -eu ", home,
            "/script >", home, "/out 2>", home, "/err </dev/null");
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(".home/out"),
            read(".home/err")};
  }

 private:
  std::string path_first_;
  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

}  // namespace tuner::testing
