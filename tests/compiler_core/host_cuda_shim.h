// What printed CUDA needs to be C++ for this host, in a library that a test loads: the words and the runtime
// of compiler_core/host_cuda, without its watch over each access. Not a header of the test: the compiler that
// the test starts reads it (host_cuda.h).
#pragma once

#include "device.h"
#include "units.h"

namespace host_cuda {

// Runs a kernel. Null, or what is wrong with it in one line, which lives until the next call: its kind, as
// HostCudaFinding has them, and where.
const char* fault_of(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void (*body)());

}  // namespace host_cuda
