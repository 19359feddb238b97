// What the buffers of a user's kernel hold before a call.
#pragma once

#include <cstdint>
#include <string>

#include "templates/source_kernel/source_kernel.h"

namespace tuner {

// The bytes of a buffer of role in or inout: drawn from the seed and the argument's place, the same on any
// machine, or as its contents say. InvalidArgument: its file is no .npy of the argument's type and shape.
Result<std::string> operand_bytes(const SourceKernel& kernel, size_t argument, uint64_t seed);

// True if another seed gives other bytes.
bool follows_seed(const SourceArgument& argument);

// The right answer for an output, where the kernel brings it as a file (ReferenceFrom::kArrays). Errors as
// above.
Result<std::string> given_answer(const SourceKernel& kernel, size_t argument);

}  // namespace tuner
