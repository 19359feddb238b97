// A user's kernel as a Program: its function called with its operands and scalars.
#pragma once

#include "compiler_core/ir/stmt.h"
#include "templates/source_kernel/source_kernel.h"

namespace tuner {

// The kernel under that config. Arguments are its buffers, in its order; outputs stand where the function has
// them.
Program program_of(const SourceKernel& kernel, const Config& config);
// What the right answer follows from: the reference function, or the kernel under its default config.
Program reference_program(const SourceKernel& kernel);

// The config with each knob at its first value.
Config default_config(const SourceKernel& kernel);

}  // namespace tuner
