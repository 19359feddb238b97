// What this machine is and can do, asked of the runner; what takes time to measure is kept for the next
// start.
#pragma once

#include <chrono>
#include <filesystem>

#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_client.h"

namespace tuner {

// Kept facts are measured again when they are older than this. The higher of both figures stays: what is
// measured beside a busy neighbour is too low, never too high.
inline constexpr std::chrono::hours kFactsStayFor{24};

// The runner's probe. Peaks and bandwidths come from `file`, where they are of this hardware, this harness
// and not too old at `now`; else they are measured (0.3 s on two CPUs) and kept there. A file that cannot be
// read or written costs nothing but that time. Errors are the runner's.
Result<ProbeReply> machine_facts(
    RunnerClient& runner, const std::filesystem::path& file,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

// The higher of each figure; of `fresh` where `kept` has none.
void raise_to(const ProbeReply& kept, ProbeReply& fresh);

}  // namespace tuner
