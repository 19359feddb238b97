// The texts that are compiled: the user's, for a C++ compiler, and a program around it.
#pragma once

#include <string>

#include "compiler_core/host_cuda/host_cuda.h"

namespace tuner {

// The user's text with arrays of dynamic shared memory (`extern __shared__ T name[];`) placed where the
// runtime keeps it. All lines keep their numbers.
std::string for_host_compiler(const std::string& text);

// True if the kernel is a printed one that asks units of a device (printed_ptx.h).
bool uses_units(const HostCudaKernel& kernel);

// The name of the file with the bytes of an argument, before the run or after it.
std::string operand_file_name(size_t argument);

// A main() that reads the given buffers, launches the kernel and writes the results.
std::string host_program_text(const HostCudaKernel& kernel);

}  // namespace tuner
