// Judges a kernel: compiled, read, run on inputs that it has not seen, and raced against its rival.
#pragma once

#include <functional>
#include <string>

#include "compiler_core/base/status.h"
#include "measure_server/runner/isolation.h"
#include "tuner/jobs/judged_kernels.h"
#include "tuner/judge/duel.h"
#include "tuner/judge/kernel_verdict.h"

namespace tuner {

struct KernelJudgeOptions {
  uint64_t seed = 0;                       // of the inputs; 0: drawn
  Isolation at_most = Isolation::kStrict;  // of the runs
  bool on_host = false;                    // a kernel in CUDA is compared on this host's CPU and not timed
  DuelOptions duel;
  std::function<void(const std::string&)> tell;  // a line for each step; null: nobody listens
};

// The verdict, which is the kernel's own. Errors are not: InvalidArgument if the job cannot be judged at
// all (its reference or the rival does not compile, or is wrong), else this host's.
Result<KernelJudgement> judge_kernel(const JudgedKernels& kernels, const KernelJudgeOptions& options);

}  // namespace tuner
