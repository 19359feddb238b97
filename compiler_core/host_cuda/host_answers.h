// The right answers of a user's kernel, computed on this host whatever machine the kernel is for.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/foreign/run_foreign.h"
#include "compiler_core/host_cuda/host_cuda.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// The kernel of a Program whose code is CUDA C++ with a launch, to run it here.
HostCudaKernel host_cuda_kernel(const Program& program);

// As foreign_answers(), of any user's code that is no whole program: CUDA C++ runs by run_host_cuda(). InvalidConfig
// also: what was found in such a run is a fault; or the code is PTX or a cubin, which no host runs.
Result<std::vector<std::vector<double>>> user_answers(const Program& program,
                                                      const std::vector<std::string>& given,
                                                      const ForeignRun& run, const BroughtAnswer& brought);

}  // namespace tuner
