// The entries that begin with a scheduled Program.
#include "compiler_core/codegen_cuda/compile.h"

namespace tuner {

Result<std::string> emit_cuda(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(program));
  RETURN_IF_ERROR(cuda::check_printable(lowered));
  return print_cuda(lowered, target);
}

Result<Artifact> compile_cuda(const Program& program, const Target& target, const CudaOptions& options) {
  ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(program));
  return cuda::compile_kernels(lowered, target, options);
}

}  // namespace tuner
