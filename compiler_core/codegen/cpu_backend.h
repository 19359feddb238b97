// The back end of CPUs: LLVM makes shared objects, which the runner loads in a process of their own.
#pragma once

#include "compiler_core/backend.h"

namespace tuner {

const Backend& cpu_backend();

// resolve_target() for a program that has this back end only.
Result<Target> resolve_cpu_target(std::string_view text);

}  // namespace tuner
