// A user's kernel for a GPU as an application gets it.
#pragma once

#include "compiler_core/backend.h"

namespace tuner {

// Cubin or PTX, the launcher in C with its header, and, of CUDA C++, the source with the knobs put in, which
// stands beside the files that it includes. Requires program.foreign->launch. Errors as
// compile_user_kernel().
Result<ShippedKernel> ship_user_kernel(const Program& program, const Target& target,
                                       const ShipRequest& request);

}  // namespace tuner
