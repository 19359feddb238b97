// Libraries of NVIDIA's that bench_gpu loads at run time.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

// The file that `variable` of the environment names, else the first of `files` in the loader's path, then in
// /usr/local/cuda/lib64. Unavailable: "no cuBLAS: " (of `name`) and what the loader said. Never closed.
Result<void*> load_library(const std::string& name, const char* variable,
                           const std::vector<std::string>& files);

// Takes from the environment what lets these libraries do products of float32 in another arithmetic than
// asked for, or forbids it where it is asked for (TF32, emulation). Call it before a library reads it.
void forget_float_overrides();

}  // namespace tuner
