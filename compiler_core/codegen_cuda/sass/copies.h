// Which loads from global memory belong together, and which of them wait for each other. Internal to sass.
#pragma once

#include <vector>

#include "compiler_core/codegen_cuda/sass/sass.h"

namespace tuner::sass {

// Requires the flow (flow.h). By the address they begin at.
std::vector<Copy> find_copies(const KernelCode& code);

}  // namespace tuner::sass
