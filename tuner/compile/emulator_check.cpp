#include "tuner/compile/emulator_check.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/tuner_kernel.h"
#include "tuner/verify/verify_emulated.h"

namespace tuner {
namespace {

constexpr uint64_t kSeed = 1;

// What the math gives in float32, each operation as it is written.
Result<std::vector<std::vector<double>>> float32_answers(const Kernel& kernel, const VerifyData& data) {
  std::vector<AlignedBuffer> memory;
  std::vector<void*> args;
  size_t next = 0;
  for (const Buffer& arg : data.unscheduled.args) {
    memory.emplace_back(arg->bytes());
    args.push_back(memory.back().data());
    if (arg->role == BufferRole::kOutput) continue;
    store_elements(data.inputs[next++].data(), arg->elements(), arg->dtype, memory.back().data());
  }
  const AlignedBuffer workspace(kernel.workspace_bytes(1));
  RETURN_IF_ERROR(kernel.call(args.data(), tuner_serial_runtime(workspace.data())));
  std::vector<std::vector<double>> answers;
  for (size_t i = 0; i < memory.size(); ++i) {
    const Buffer& arg = data.unscheduled.args[i];
    if (arg->role == BufferRole::kOutput)
      answers.push_back(load_elements(memory[i].data(), arg->elements(), arg->dtype));
  }
  return answers;
}

// The most that two answers differ by, where both are finite.
double difference(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double most = 0;
  for (size_t o = 0; o < a.size(); ++o)
    for (size_t i = 0; i < a[o].size(); ++i)
      if (std::isfinite(a[o][i]) && std::isfinite(b[o][i]))
        most = std::max(most, std::fabs(a[o][i] - b[o][i]));
  return most;
}

// The same, to be judged as float32: a sine of a large number, or one beyond float32, is another one in
// double precision. The tolerance grows by what the math makes of inputs that are off by a rounding.
Result<VerifyData> in_float32(VerifyData data) {
  constexpr int kDraws = 8;
  constexpr float kRounding = 0x1p-22F;
  const Target host = host_target(1);
  ASSIGN_OR_RETURN(const Artifact artifact, compile(data.unscheduled, host, {.as_written = true}));
  ASSIGN_OR_RETURN(const Kernel kernel, Kernel::load(artifact));
  ASSIGN_OR_RETURN(data.answers, float32_answers(kernel, data));
  std::minstd_rand random(kSeed);
  double spread = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    VerifyData disturbed = data;
    size_t next = 0;
    for (const Buffer& arg : data.unscheduled.args) {
      if (arg->role == BufferRole::kOutput) continue;
      std::vector<float>& numbers = disturbed.inputs[next++];
      if (arg->dtype != DType::kFloat32) continue;
      for (float& number : numbers) number *= (random() >> 8 & 1) != 0 ? 1 + kRounding : 1 - kRounding;
    }
    ASSIGN_OR_RETURN(const auto answers, float32_answers(kernel, disturbed));
    spread = std::max(spread, difference(data.answers, answers));
  }
  data.tolerance.absolute += 2 * spread;
  return data;
}

Result<ConfigVerdict> verdict_of(const BundleKernel& kernel) {
  const Workload& workload = kernel.task.workload;
  ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(*kernel.scheduled));
  ASSIGN_OR_RETURN(const VerifyData data, make_verify_data(workload, kSeed));
  ConfigVerdict verdict = verify_kernels(lowered, data, emulation_work(workload));
  if (!verdict.problem.starts_with("wrong_answer: ")) return verdict;
  ASSIGN_OR_RETURN(const VerifyData as_written, in_float32(data));
  return verify_kernels(lowered, as_written, emulation_work(workload));
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
