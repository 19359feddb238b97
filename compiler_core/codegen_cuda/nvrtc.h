// NVRTC through dlopen: CUDA C++ -> cubin. Needs no CUDA header, and no library until first used.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::cuda {

struct NvrtcVersion {
  int major = 0, minor = 0;
};
// Unavailable, with the places that were looked at, when there is none. Decided once per process.
Result<NvrtcVersion> nvrtc_version();

struct Compiled {
  std::string cubin;
  std::string log;  // what ptxas says of registers and spills among it
};
// Compiles `source` with these options. Internal with the log's first error when the source is not right.
// From any thread, several at once.
Result<Compiled> compile_source(const std::string& source, const std::string& name,
                                const std::vector<std::string>& options);

}  // namespace tuner::cuda
