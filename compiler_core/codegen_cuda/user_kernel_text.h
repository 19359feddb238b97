// The text of a user's kernel with the knobs put in.
#pragma once

#include <string>

#include "compiler_core/ir/stmt.h"

namespace tuner {

// A header of #defines, then the user's source, and how it is launched. Of PTX the text itself; of a cubin a
// comment. Requires program.foreign->launch.
std::string user_kernel_text(const Program& program);

}  // namespace tuner
