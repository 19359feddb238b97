// Machine code for people.
#pragma once

#include <string>

#include "compiler_core/codegen_cuda/sass/sass.h"

namespace tuner::sass {

// Counts of the kernel and of its hot loop, its copies, and the hot loop's instructions; runs of one opcode
// that wait for nothing are one line.
std::string to_text(const KernelCode& code);

}  // namespace tuner::sass
