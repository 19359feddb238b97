// TemporaryFolder: a test's own folder, removed with its content. Declare it before the objects that use it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "tuner-test-XXXXXX";
    CHECK(::mkdtemp(pattern.data()) != nullptr) << pattern << " cannot be made";
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tuner
