// The C header of a bundle: a plain function over typed pointers for each kernel of a CPU, written around the
// library's one entry a kernel, and a table of all kernels for programs that choose by workload. Everything
// it declares follows the workloads (c_signature.h); templates and configs change sizes and function bodies
// only.
#pragma once

#include <string>
#include <vector>

#include "tuner/bundle/bundle.h"

namespace tuner {

// Valid C11 and C++. For each kernel:
//   int32_t NAME(arguments..., void* workspace)                          one thread, no runtime needed
//   int32_t NAME_with(const tuner_runtime* runtime, arguments...)        the host's thread pool
//   int32_t NAME_prepack(constants..., packed...)                        when the workload has constants
//   int32_t NAME_call(args, runtime), NAME_pack(args, runtime)           the same by arrays of arguments
//   int32_t NAME_runs_here(void)                                         whether this CPU can run it
// and the sizes of every argument in bytes; and for the library
//   const tuner_kernel* LIBRARY_kernels(int32_t* count)
//   const tuner_kernel* LIBRARY_find(const char* workload, int32_t threads)
std::string c_header(const std::string& library, const std::vector<const BundleKernel*>& kernels);

}  // namespace tuner
