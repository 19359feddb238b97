// NVRTC through dlopen: CUDA C++ -> cubin. Needs no CUDA header, and no library until first used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::cuda {

struct NvrtcVersion {
  int major = 0, minor = 0;
};
// Unavailable, with the places that were looked at, when there is none. Decided once per process.
Result<NvrtcVersion> nvrtc_version();

// The file that it was loaded from. Errors as nvrtc_version().
Result<std::string> nvrtc_file();

struct Compiled {
  std::string cubin;
  std::string log;     // what ptxas says of registers and spills among it
  std::string symbol;  // of the kernel that was asked for by a name of C++
  std::string ptx;     // the text that the cubin was assembled from; a cache does not keep it
};

// One try, whatever comes of it.
struct Attempt {
  enum class End : uint8_t { kCompiled, kRefused, kUnable };
  End end = End::kUnable;  // kUnable: this NVRTC cannot, whatever the source; `error` says why
  std::string error;       // one line
  Compiled compiled;       // of kRefused: its log
};
// `kernel`: a name of C++, whose symbol is wanted; may be empty. From any thread.
Result<Attempt> try_to_compile(const std::string& source, const std::string& name,
                               const std::vector<std::string>& options, const std::string& kernel = {});
// Compiles `source` with these options. Internal with the log's first error when the source is not right.
// From any thread, several at once.
Result<Compiled> compile_source(const std::string& source, const std::string& name,
                                const std::vector<std::string>& options);

}  // namespace tuner::cuda
