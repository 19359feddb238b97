// Compiled sources on disk, by content: a source that was compiled with the same options and the same NVRTC
// is not compiled again. A folder of files KEY.cubincache, shared by any number of processes; nothing is ever
// removed (a kernel takes 5 to 70 KB: delete the folder when it is too large, at any time).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler_core/codegen_cuda/nvrtc.h"

namespace tuner::cuda {

std::string cache_key(const std::string& source, const std::vector<std::string>& options,
                      const NvrtcVersion& version);
// Empty when it is not there, or is damaged (then the next store replaces it).
std::optional<Compiled> read_cache(const std::string& directory, const std::string& key);
// Whole or not at all. A folder that cannot be written only costs time: errors are for the log.
Status write_cache(const std::string& directory, const std::string& key, const Compiled& compiled);

}  // namespace tuner::cuda
