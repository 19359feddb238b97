// The answers of a CUDA kernel on this host's CPU, for a judge without a GPU.
#pragma once

#include <chrono>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "tuner/judge/judge_data.h"
#include "tuner/judge/kernel_verdict.h"

namespace tuner {

// Runs the kernel, CUDA C++ with a launch, on each set of inputs until one is not right; `data` as
// make_judge_data() wrote it. The verdict: right but not timed; wrong, also if threads race; crashed, if it
// reaches beyond its buffers, writes to inputs, or waits for ever; not compiled. Errors are this host's.
// `deadline` is of one set. Outputs hold the answer to the set before when a run begins.
Result<KernelJudgement> judge_on_host(const Program& program, const JudgeData& data,
                                      std::chrono::milliseconds deadline);

}  // namespace tuner
