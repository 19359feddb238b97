// An example that adds to tuner, copied out of the tree and built on an installation in a temporary folder,
// which goes with it. Needs TUNER_SOURCE_DIR, TUNER_BUILD_DIR, TUNER_CMAKE and TUNER_CXX.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner::testing {

class InstalledExample {
 public:
  struct Outcome {
    int exit_code = -1;
    std::string out, err;
  };

  // `name`: a folder of examples/. Installs and builds, for about a minute.
  explicit InstalledExample(const std::string& name) {
    std::string pattern = std::filesystem::temp_directory_path() / "tuner-installed-XXXXXX";
    CHECK(::mkdtemp(pattern.data()) != nullptr) << "no temporary folder";
    folder_ = pattern;
    std::filesystem::copy(std::filesystem::path(TUNER_SOURCE_DIR) / "examples" / name, folder_ / name);
    built_ = shell(str(TUNER_CMAKE, " --install ", TUNER_BUILD_DIR, " --prefix ", path("prefix"), " && ",
                       TUNER_CMAKE, " -G Ninja -S ", name, " -B build -DCMAKE_PREFIX_PATH=", path("prefix"),
                       " -DCMAKE_CXX_COMPILER=", TUNER_CXX, " -DCMAKE_CXX_FLAGS_RELEASE=-O1 && ", TUNER_CMAKE,
                       " --build build"));
  }
  ~InstalledExample() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  InstalledExample(const InstalledExample&) = delete;

  const Outcome& built() const { return built_; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string contents(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  // A line of the shell, in the temporary folder.
  Outcome shell(const std::string& line) const {
    const std::string full =
        str("cd ", folder_.string(), " && { ", line, "; } >out.txt 2>err.txt </dev/null");
    const int status = std::system(full.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(folder_ / "out.txt"),
            contents(folder_ / "err.txt")};
  }
  // A command line of the built `tuner`, on a database of its own.
  Outcome tuner(const std::string& arguments) const {
    return shell(str("XDG_DATA_HOME=", path("data"), " XDG_CACHE_HOME=", path("cache"), " build/bin/tuner ",
                     arguments));
  }

 private:
  std::filesystem::path folder_;
  Outcome built_;
};

}  // namespace tuner::testing
