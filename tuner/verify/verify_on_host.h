// `tuner verify --on-host`: CUDA sources of users on this host's CPU (compiler_core/host_cuda). No GPU and no
// CUDA is needed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/jobs/tasks.h"
#include "tuner/verify/verify_data.h"
#include "tuner/verify/verify_tasks.h"

namespace tuner {

// Configs that are run if nobody says how many: some seconds.
inline constexpr uint64_t kHostSamples = 16;

// Runs one config, a Program whose code is a CUDA source, and compares. `problem` has what the run found, a
// line each, or the first element that differs. An error: it could not be found out, as this host has no
// compiler.
Result<ConfigVerdict> verify_host_config(const Workload& workload, const Program& program,
                                         const VerifyData& data, std::chrono::milliseconds deadline);

// Prints a verdict for each config, several of which run at a time, and a summary. Returns how many configs
// were wrong. InvalidArgument: a task is no CUDA source.
Result<int64_t> verify_on_host(const std::vector<CliTask>& tasks, const VerifyOptions& options);

}  // namespace tuner
