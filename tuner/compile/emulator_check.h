// The check of a model's GPU kernels that needs no GPU: each distinct one in the emulator, which also finds
// data races, accesses out of bounds and what was not written (compiler_core/emulator).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/bundle/bundle.h"

namespace tuner {

struct EmulatedKernels {
  size_t checked = 0;  // kernels, the sampled ones among them
  size_t sampled = 0;  // those of which some blocks ran: the shape is large (tuner/verify/verify_emulated.h)
  size_t skipped = 0;  // those that were not checked: the shape is too large, or numbers are float64
};

// Failed, one line: a kernel is wrong. Aborted: `interrupted`, which is asked before each kernel, said so.
Result<EmulatedKernels> check_in_emulator(std::span<const BundleKernel> kernels,
                                          const std::function<bool()>& interrupted,
                                          const std::function<void(const std::string&)>& progress);

}  // namespace tuner
