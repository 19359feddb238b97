// Machine code for people.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner::sass {

// Counts of the kernel and of its hot loop, its copies, and the hot loop's instructions; runs of one opcode that wait
// for nothing are one line.
std::string to_text(const KernelCode& code);

// `tuner show --as sass`: compiles the Program, and for each kernel registers, spills, issue floor and to_text.
// Unavailable without NVRTC. Configs that the filter refuses are shown too.
Result<std::string> cuda_sass(const Program& program, const Target& target);

}  // namespace tuner::sass
