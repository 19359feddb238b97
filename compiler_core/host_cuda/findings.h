// What the runtime wrote down about a run, for a person.
#pragma once

#include "compiler_core/host_cuda/host_build.h"

namespace tuner {

// The findings of a program that has run; addresses of code become lines of the source where the host has
// addr2line. Lines that the runtime did not write are left out.
Result<std::vector<HostCudaFinding>> read_findings(const HostCudaProgram& program);

}  // namespace tuner
