// A user's CUDA kernel with its launch (ForeignCode::launch), as run_host_cuda() takes it.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/host_cuda/host_cuda.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// Requires program.foreign->launch. Of the kernel's flags, which are NVRTC's, macros are kept and others left
// out. InvalidConfig: it comes compiled, as PTX or cubin.
Result<HostCudaKernel> host_cuda_kernel(const Program& program);

// The bytes of each output, in their order, where the kernel itself says what is right. Errors as
// run_host_cuda(); InvalidConfig also if anything is found in it.
Result<std::vector<std::string>> host_cuda_outputs(const Program& program,
                                                   const std::vector<std::string>& given);

}  // namespace tuner
