// The steps of compile_cuda after lowering. Internal to codegen_cuda and its tests.
#pragma once

#include "compiler_core/codegen_cuda/cuda.h"

namespace tuner::cuda {

// InvalidConfig naming what the printer cannot write: arithmetic in 16 bits, copies that no cp.async does,
// clusters, an unknown intrinsic.
Status check_printable(const GpuProgram& program);

// compile_cuda of a lowered Program.
Result<Artifact> compile_kernels(const GpuProgram& program, const Target& target, const CudaOptions& options);

}  // namespace tuner::cuda
