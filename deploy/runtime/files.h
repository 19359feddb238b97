// Whole files: read with a limit, written beside and renamed into place.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner::runtime {

// NotFound when it is not there; Failed when it cannot be read or has more than `most` bytes.
Result<std::string> read_whole(const std::string& path, size_t most);
// Readers see the former file or this one, whole. The folder must be there.
Status replace_file(const std::string& path, std::string_view bytes);
Status make_folders(const std::string& path);

}  // namespace tuner::runtime
