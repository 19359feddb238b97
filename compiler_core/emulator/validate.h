// What can be said of a kernel before it runs. Private to emulator.
#pragma once

#include "compiler_core/lower/gpu.h"

namespace tuner::emulation {

// InvalidConfig naming what no GPU would launch or run: the launch's sizes, the places of shared buffers,
// buffers the kernel is not given, statements that lowering must not leave.
Status validate(const GpuKernel& kernel);

}  // namespace tuner::emulation
