// Checks a kernel before it runs. Private to emulator.
#pragma once

#include "compiler_core/lower/gpu.h"

namespace tuner::emulation {

// InvalidConfig names what no GPU would launch or run: sizes of the launch, places of shared buffers, buffers
// that the kernel is not given, or statements that lowering must not leave.
Status validate(const GpuKernel& kernel);

}  // namespace tuner::emulation
