// `tuner verify` without the device: each config is lowered, its kernels are emulated with every
// check on (compiler_core/emulator) and their answer is compared with the reference.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/lower/gpu.h"
#include "tuner/verify/verify_data.h"

namespace tuner {

// Work of a shape: its operations, plus 8 for each float32 of its arguments. Up to this limit every block is
// emulated, in about two seconds per config. Above it a sample of the blocks runs, about a quarter of this
// work.
inline constexpr int64_t kWholeWork = 2'000'000'000;
// The limit for configs of several kernels (split-K), of which no sample can run: above it they are not
// checked.
inline constexpr int64_t kWholeWorkOfSeveral = 10'000'000'000;
// Above this, the reference answer alone would take minutes, and the shape is refused.
inline constexpr int64_t kMostWork = 50'000'000'000;
// With --oracle, emulated kernels are also interpreted up to this work: about ten seconds per config.
inline constexpr int64_t kInterpretedWork = 200'000;

// Returns the work of a shape, as the limits above count it.
int64_t emulation_work(const Workload& workload);
// InvalidArgument, with the limit: the shape is too large to be verified at all.
Status check_emulation_size(const Workload& workload);

// Runs `kernels` on the data and compares. `work`: emulation_work() of the task. `interpret`: also in the
// oracle.
ConfigVerdict verify_kernels(const GpuProgram& kernels, const VerifyData& data, int64_t work,
                             bool interpret = false);

}  // namespace tuner
