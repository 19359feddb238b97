// The C header of a built kernel: a plain function over typed pointers, written around the artifact's one
// entry.
#pragma once

#include <string>

#include "compiler_core/artifact/artifact.h"

namespace tuner::cli {

struct HeaderText {
  std::string name;      // of the C function; also the entry's symbol is `manifest.entry`
  std::string workload;  // key, for people
  std::string origin;    // "tuned: 1.234 ms ..." or "default config", for people
};
// Valid C11 and C++. Declares:
//   int32_t NAME(arguments..., void* workspace)                          one thread, no runtime needed
//   int32_t NAME_with(const tuner_runtime* runtime, arguments...)        the host's thread pool
//   int32_t NAME_prepack(constants..., packed...)                        when constants are packed
// and the sizes of every argument in bytes.
std::string c_header(const Manifest& manifest, const HeaderText& text);

}  // namespace tuner::cli
