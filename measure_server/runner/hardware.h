// What this CPU can do: peaks and bandwidths, for a roofline beside every time.
#pragma once

#include "compiler_core/runtime/cpu_hardware.h"
#include "measure_server/runner/runner_protocol.h"

namespace tuner {

// Peaks (runtime/peak.h, dot_peak.h) with 1..max_threads threads at once (0: every CPU this process may use),
// one thread a CPU. Takes about 100 ms a thread count; on a busy machine it finds what is left.
CpuPeaks measure_peaks(int max_threads);

// Read bandwidths of the levels with 1..max_threads threads at once; about 20 ms a thread count.
CpuBandwidths measure_bandwidths(int max_threads);

}  // namespace tuner
