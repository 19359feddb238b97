// Small text files, written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

Result<std::string> read_text(const std::filesystem::path& path);
// Temporary file beside it, then rename; folders are made. Without fsync: what is kept here can be made
// again.
Status write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace tuner
