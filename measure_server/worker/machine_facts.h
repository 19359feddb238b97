// Learns from the runner what this machine is and can do. Figures that take time to measure are kept for the
// next start.
#pragma once

#include <chrono>
#include <filesystem>

#include "compiler_core/base/status.h"
#include "measure_server/runner/runner_client.h"

namespace tuner {

// Kept figures are measured again when they are older than this. The higher figure stays, because a busy
// neighbour can only make a figure too low.
inline constexpr std::chrono::hours kFactsStayFor{24};

// Returns the runner's probe. Peaks and bandwidths come from `file` if they are of this hardware, harness and
// runner version and not too old at `now`. Otherwise they are measured (0.3 s on two CPUs) and kept there. A
// file that cannot be read or written costs only that time. Errors are the runner's.
Result<ProbeReply> machine_facts(
    RunnerClient& runner, const std::filesystem::path& file,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

// Raises each figure in `fresh` to the one in `kept` if that is higher. Adds no figure that only `kept` has.
void raise_to(const ProbeReply& kept, ProbeReply& fresh);

}  // namespace tuner
