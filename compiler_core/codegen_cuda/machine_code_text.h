// The machine code of a Program's kernels, for people.
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

// `tuner show --as sass`: compiles the Program, and for each kernel registers, spills, issue floor, and what
// stands in sass/sass_text.h. Unavailable without NVRTC. Configs that the filter refuses are shown too.
Result<std::string> cuda_sass(const Program& program, const Target& target);

}  // namespace tuner
