// A file in memory without a copy: the system reads what is looked at.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// A handle; copies share the mapping, which lasts as long as one of them or of its owners.
class MappedFile {
 public:
  MappedFile(std::string_view bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  // A file that is cut while it is mapped ends the process when the lost part is read.
  std::string_view bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

// Maps a file that a user names. `expected` ends the message: "an ONNX model". InvalidArgument: it cannot be
// read, is no regular file, or is empty.
Result<MappedFile> map_input(const std::string& path, const std::string& expected);

}  // namespace tuner
