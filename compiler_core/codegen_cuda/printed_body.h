// The body of a kernel as it is printed: simplified, and which of its loops the compiler unrolls.
#pragma once

#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// The body after simplification. Names, masks and counts speak of its nodes. Never null.
Stmt simplified_body(const GpuKernel& kernel);

// True if the loop is printed unrolled. A serial loop whose variable indexes registers is, too: registers
// have no addresses, and the compiler would put the buffer into local memory.
bool prints_unrolled(const StmtNode& loop);

}  // namespace tuner::cuda
