// A scratch folder in which a kernel becomes a program of this host.
#pragma once

#include <memory>

#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/host_cuda/host_cuda.h"

namespace tuner {

struct HostCudaProgram {
  std::unique_ptr<ScratchFolder> folder;
  std::string path;
};

// InvalidConfig: the compiler refuses the source; the message has what it said. Else as find_compiler() and
// run_confined().
Result<HostCudaProgram> build_host_cuda(const HostCudaKernel& kernel);

// One run of it, with these bytes of the given buffers. Once at a time for a program: operands lie in its folder.
// Errors as run_host_cuda().
Result<HostCudaRun> run_host_program(const HostCudaProgram& program, const HostCudaKernel& kernel,
                                     const std::vector<std::string>& given,
                                     std::chrono::milliseconds deadline);

}  // namespace tuner
