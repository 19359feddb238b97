// `tuner verify` without the device: each config is lowered, its kernels are emulated with every
// check on (compiler_core/emulator) and their answer is compared with the reference.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/lower/gpu.h"
#include "tuner/verify/verify_data.h"

namespace tuner {

// Work of a shape (operations, and 8 for each float32 of its arguments) up to which every block is emulated:
// some two seconds a config. Beyond it a sample of the blocks runs, about a quarter of this work.
inline constexpr int64_t kWholeWork = 2'000'000'000;
// The same for configs of several kernels (split-K), of which no sample can be run: beyond it they are not
// checked.
inline constexpr int64_t kWholeWorkOfSeveral = 10'000'000'000;
// Work beyond which the reference answer alone would take minutes: refused.
inline constexpr int64_t kMostWork = 50'000'000'000;
// Work up to which emulated kernels are interpreted as well, with --oracle: some ten seconds a config.
inline constexpr int64_t kInterpretedWork = 200'000;

int64_t emulation_work(const Workload& workload);
// InvalidArgument naming the limit when the shape is too large to be verified at all.
Status check_emulation_size(const Workload& workload);

// Runs `kernels` on the data and compares. `work`: emulation_work() of the task. `interpret`: also in the
// oracle.
Verdict verify_kernels(const GpuProgram& kernels, const VerifyData& data, int64_t work,
                       bool interpret = false);

}  // namespace tuner
