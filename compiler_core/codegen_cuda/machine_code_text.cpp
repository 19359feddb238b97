// tuner show --as sass.
#include "compiler_core/codegen_cuda/machine_code_text.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/issue_floor.h"
#include "compiler_core/codegen_cuda/sass/sass_text.h"

namespace tuner {
namespace {

std::string kernel_text(const sass::KernelCode& code, const GpuKernel& kernel, const LaunchInfo& launch,
                        const Target& target) {
  std::string text =
      str(code.name, "\n  registers    ", launch.registers, ", ", launch.spill_bytes, " bytes spilled, ",
          launch.blocks_per_sm, launch.blocks_per_sm == 1 ? " block" : " blocks", " a multiprocessor\n");
  const Result<sass::IssueFloor> floor = sass::issue_floor(code, kernel, target, launch.blocks_per_sm);
  text += floor ? str("  issue floor  ", std::llround(floor->ns / 100) / 10.0, " us, ",
                      std::llround(floor->warp_instructions), " instructions a warp: no run can be faster\n")
                : str("  issue floor  none: ", floor.message(), "\n");
  return text + sass::to_text(code);
}

}  // namespace

Result<std::string> cuda_sass(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(program));
  CudaOptions everything;
  everything.static_filter = false;
  everything.max_spill_bytes = INT32_MAX;
  ASSIGN_OR_RETURN(const Artifact artifact, cuda::compile_kernels(lowered, target, everything));
  ASSIGN_OR_RETURN(const std::vector<sass::KernelCode> codes, sass::read_kernel_code(artifact.binary));
  std::string text;
  for (size_t i = 0; i < lowered.kernels.size(); ++i) {
    const auto code = std::ranges::find(codes, lowered.kernels[i].name, &sass::KernelCode::name);
    if (code == codes.end()) return failed(lowered.kernels[i].name, ": its machine code is not in the cubin");
    text += kernel_text(*code, lowered.kernels[i], artifact.manifest.launches[i], target);
  }
  return text;
}

}  // namespace tuner
