// ScratchFolder: a private folder that is removed, with its content, when the object is destroyed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

class ScratchFolder {
 public:
  // Creates PARENT/NAME-XXXXXX in the first parent that accepts it; without parents in $TMPDIR, or /tmp.
  static Result<std::unique_ptr<ScratchFolder>> make(std::string_view name,
                                                     const std::vector<std::string>& parents = {});
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return str(path_, "/", name); }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tuner
