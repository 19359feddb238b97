// tuner show --as resources.
#include <cmath>

#include "compiler_core/codegen_cuda/compile.h"
#include "compiler_core/codegen_cuda/time_estimate.h"
#include "compiler_core/codegen_cuda/warp_work.h"

namespace tuner {
namespace {

std::string percent(int64_t part, int64_t whole) { return str(whole > 0 ? part * 100 / whole : 0, " %"); }

std::string occupancy(int blocks, int64_t threads, const Target& target) {
  return str(blocks, blocks == 1 ? " block" : " blocks", " a multiprocessor, ",
             percent(blocks * threads, target.threads_per_sm), " of its threads");
}

std::string before_compiling(const GpuKernel& k, const Target& target) {
  const ResourceEstimate e = estimate_resources(k, target);
  const Status filter = check_resources(k, target);
  const auto triple = [](const std::array<int64_t, 3>& a) { return str(a[0], " x ", a[1], " x ", a[2]); };
  std::string text = str(k.name, "\n  grid         ", triple(k.grid), "\n  block        ", triple(k.block),
                         " = ", e.threads, " threads\n");
  text += str("  shared       ", e.shared_bytes, " of ", target.shared_bytes_per_block, " bytes\n");
  for (size_t i = 0; i < k.shared.size(); ++i)
    text += str("               ", k.shared[i]->name, " at ", k.shared_offsets[i],
                k.shared[i]->layout.empty() ? "" : ", layout " + k.shared[i]->layout, "\n");
  const cuda::WarpCounts counts = cuda::warp_work(k, 1).counts;
  if (!k.shared.empty())
    text += counts.conflicts < 0.5
                ? std::string("               no bank conflicts predicted\n")
                : str("               bank conflicts predicted: ", std::llround(counts.conflicts), " of ",
                      std::llround(counts.wavefronts), " passes of a warp\n");
  text += str("  registers    at least about ", e.registers, " of ", e.register_limit, " a thread\n");
  text += str("  fits         ", occupancy(e.blocks_per_sm, e.threads, target), " by this estimate\n");
  return text + str("  filter       ", filter.is_ok() ? "accepted" : filter.message(), "\n");
}

std::string estimated_time(const GpuKernel& k, const Target& target) {
  const TimeEstimate e = estimate_time(k, target);
  if (!std::isfinite(e.ns)) return "";
  return str("  estimated    ", std::llround(e.ns / 100) / 10.0, " us, bound by ", time_bound_name(e.bound),
             " (for ranking; not measured)\n");
}

std::string after_compiling(const LaunchInfo& l, const Target& target) {
  const int64_t threads = l.block[0] * l.block[1] * l.block[2];
  return str("  compiled     ", l.registers, " registers, ", l.spill_bytes, " bytes spilled, ", l.stack_bytes,
             " bytes of stack\n", "               ", occupancy(l.blocks_per_sm, threads, target), "\n");
}

}  // namespace

Result<std::string> cuda_resources(const Program& program, const Target& target) {
  ASSIGN_OR_RETURN(const GpuProgram lowered, lower_gpu(program));
  CudaOptions everything;
  everything.static_filter = false;
  everything.max_spill_bytes = INT32_MAX;
  const Result<Artifact> artifact = cuda::compile_kernels(lowered, target, everything);
  std::string text;
  for (size_t i = 0; i < lowered.kernels.size(); ++i) {
    text += before_compiling(lowered.kernels[i], target);
    text += estimated_time(lowered.kernels[i], target);
    text += artifact ? after_compiling(artifact->manifest.launches[i], target)
                     : str("  compiled     no: ", artifact.message(), "\n");
  }
  for (const Buffer& b : lowered.workspace) text += str("workspace ", b->name, " ", b->bytes(), " bytes\n");
  return text;
}

}  // namespace tuner
