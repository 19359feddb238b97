// The C header of a bundle. For each CPU kernel it has a plain function with typed pointers, written around
// the library's single entry per kernel. It also has a table of all kernels for programs that choose by
// workload. All declarations follow the workloads (c_signature.h); templates and configs change only sizes
// and function bodies.
#pragma once

#include <string>
#include <vector>

#include "tuner/bundle/bundle.h"

namespace tuner {

// The type of elements in C.
const char* c_type(DType dtype);

// The header is valid C11 and C++. For each kernel it has:
//   int32_t NAME(arguments..., void* workspace)                          one thread, no runtime needed
//   int32_t NAME_with(const tuner_runtime* runtime, arguments...)        with the host's thread pool
//   int32_t NAME_prepack(constants..., packed...)                        if the workload has constants
//   int32_t NAME_call(args, runtime), NAME_pack(args, runtime)           the same with arrays of arguments
//   int32_t NAME_runs_here(void)                                         1 if this CPU can run it
// and the size of every argument in bytes. Variants for several CPUs (cpu_variants.h) are kernels, too.
// Behind them stand the same functions of what they are variants of, and
//   int32_t NAME_variant(void)                                           the first that this CPU runs, or -1
// For the library it has:
//   const tuner_kernel* LIBRARY_kernels(int32_t* count)
//   const tuner_kernel* LIBRARY_find(const char* workload, int32_t threads)
std::string c_header(const std::string& library, const std::vector<const BundleKernel*>& kernels);

}  // namespace tuner
