#include "tuner/compile/emulator_check.h"

#include <algorithm>

#include "compiler_core/lower/gpu.h"
#include "tuner/verify/verify_emulated.h"

namespace tuner {

Result<EmulatedKernels> check_in_emulator(std::span<const BundleKernel> kernels,
                                          const std::function<bool()>& interrupted,
                                          const std::function<void(const std::string&)>& progress) {
  constexpr uint64_t kSeed = 1;
  EmulatedKernels out;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const BundleKernel& kernel = kernels[k];
    if (interrupted && interrupted()) return Status(StatusCode::kAborted, "interrupted");
    if (progress) progress(str("checking kernel ", k + 1, " of ", kernels.size(), " in the emulator"));
    // Emulated runs take and give float32.
    const bool is_double = std::ranges::any_of(
        kernel.code.manifest.args, [](const ArgInfo& arg) { return arg.dtype == DType::kFloat64; });
    if (is_double || !check_emulation_size(kernel.task.workload)) {
      ++out.skipped;
      continue;
    }
    ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(*kernel.scheduled));
    ASSIGN_OR_RETURN(const VerifyData data, make_verify_data(kernel.task.workload, kSeed));
    const ConfigVerdict verdict = verify_kernels(lowered, data, emulation_work(kernel.task.workload));
    if (!verdict.problem.empty())
      return failed("the emulator finds a fault in the kernel of ", kernel.task.key, ": ", verdict.problem,
                    ". This is a fault of ours: report it with the model. Nothing was written");
    ++(verdict.not_checked.empty() ? out.checked : out.skipped);
    out.sampled += verdict.blocks_run > 0 ? 1 : 0;
  }
  return out;
}

}  // namespace tuner
