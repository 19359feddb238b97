// Learns from the runner what this machine is and can do. Figures that take time to measure are kept for the
// next start.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>

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

// Measures peaks and bandwidths once more and keeps the higher of each in `file` and in the result. For when
// a kernel was faster than the peak: it was measured at a slower moment then.
Result<ProbeReply> machine_facts_again(RunnerClient& runner, const std::filesystem::path& file,
                                       const ProbeReply& known);

// True if the fastest of these calls did more than `peak_gflops`. Never where times or peak are not known.
bool beats_peak(int64_t operations, std::span<const double> run_ns, double peak_gflops);

// Raises each figure in `fresh` to the one in `kept` if that is higher. Adds no figure that only `kept` has.
void raise_to(const ProbeReply& kept, ProbeReply& fresh);

}  // namespace tuner
