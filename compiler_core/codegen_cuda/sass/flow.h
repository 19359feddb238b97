// The ways through a kernel's code. Internal to sass.
#pragma once

#include "compiler_core/codegen_cuda/sass/sass.h"

namespace tuner::sass {

// Fills in blocks, loops (with their mixes), loop_of and indirect from code.instructions. A jump to a place
// that is not there ends a way. InvalidArgument for more blocks or loops than a compiler writes.
Status find_flow(KernelCode& code);

}  // namespace tuner::sass
