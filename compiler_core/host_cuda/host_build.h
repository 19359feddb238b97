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

}  // namespace tuner
