#include "tuner/compile/emulator_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "compiler_core/codegen/reference.h"
#include "compiler_core/lower/gpu.h"
#include "tuner/verify/verify_emulated.h"

namespace tuner {
namespace {

constexpr uint64_t kSeed = 1;

// The same with integers that are 0 or 1, as masks are: a mask that is multiplied by the largest float32 must
// not be another number.
Result<VerifyData> with_masks(VerifyData data) {
  std::minstd_rand random(kSeed);
  size_t next = 0;
  for (const Buffer& arg : data.unscheduled.args) {
    if (arg->role == BufferRole::kOutput) continue;
    std::vector<float>& numbers = data.inputs[next++];
    if (is_float(arg->dtype)) continue;
    for (float& number : numbers) number = static_cast<float>(random() >> 8 & 1);
  }
  ASSIGN_OR_RETURN(data.answers, reference_answer(data.unscheduled, data.inputs));
  return data;
}

// Where float32 is infinite, the reference, which is double, is not.
bool is_beyond_float32(const VerifyData& data) {
  const auto is_beyond = [](double x) {
    return !(std::fabs(x) <= static_cast<double>(std::numeric_limits<float>::max()));
  };
  return std::ranges::any_of(data.answers,
                             [&](const auto& answer) { return std::ranges::any_of(answer, is_beyond); });
}

// Empty if nothing is wrong. `not_checked` of the verdict: nothing can be said.
Result<ConfigVerdict> verdict_of(const BundleKernel& kernel) {
  const Workload& workload = kernel.task.workload;
  ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(*kernel.scheduled));
  ASSIGN_OR_RETURN(const VerifyData data, make_verify_data(workload, kSeed));
  ConfigVerdict verdict = verify_kernels(lowered, data, emulation_work(workload));
  if (!verdict.problem.starts_with("wrong_answer")) return verdict;
  ASSIGN_OR_RETURN(const VerifyData masks, with_masks(data));
  verdict = verify_kernels(lowered, masks, emulation_work(workload));
  if (verdict.problem.starts_with("wrong_answer") && is_beyond_float32(masks)) {
    verdict.problem.clear();
    verdict.not_checked = "its numbers are beyond float32";
  }
  return verdict;
}

}  // namespace

Result<EmulatedKernels> check_in_emulator(std::span<const BundleKernel> kernels,
                                          const std::function<bool()>& interrupted,
                                          const std::function<void(const std::string&)>& progress) {
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
    ASSIGN_OR_RETURN(const ConfigVerdict verdict, verdict_of(kernel));
    if (!verdict.problem.empty())
      return failed("the emulator finds a fault in the kernel of ", kernel.task.key, ": ", verdict.problem,
                    ". This is a fault of ours: report it with the model. Nothing was written");
    ++(verdict.not_checked.empty() ? out.checked : out.skipped);
    out.sampled += verdict.blocks_run > 0 ? 1 : 0;
  }
  return out;
}

}  // namespace tuner
