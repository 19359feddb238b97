// How long a lowered GPU kernel may take, from its statements alone: no compiler, no device.
//
// For ranking candidates of one task before they are compiled, never a measurement: whatever shows it says
// "estimated". The model: a multiprocessor is held up by what it has most of (instructions, passes of the
// memory pipe, bytes from L2), or by one block that waits with nobody else to run; blocks come in waves; the
// memory behind L2 bounds the whole. README.md tells what it does not know.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/lower/gpu.h"
#include "compiler_core/target.h"

namespace tuner {

// What holds the kernel up.
enum class TimeBound : uint8_t { kArithmetic, kSharedMemory, kMemory, kLatency };
// "arithmetic" (with the instructions around it), "shared memory" (and L1), "memory" (L2 and beyond),
// "latency".
std::string_view time_bound_name(TimeBound bound);

// Between two kernels of one stream.
inline constexpr double kLaunchNs = 2000;

struct TimeEstimate {
  double ns = 0;         // with the launch
  double launch_ns = 0;  // of it, what passes before the kernel begins
  // It would take without the launch if one thing alone held it up.
  double issue_ns = 0;   // schedulers and their pipes
  double shared_ns = 0;  // passes of shared memory and L1
  double l2_ns = 0;      // bytes between multiprocessors and L2
  double dram_ns = 0;    // bytes behind L2
  double alone_ns = 0;   // of each wave one block, waiting included
  TimeBound bound = TimeBound::kLatency;
  int64_t evaluations = 0;  // of indices and conditions, for lanes of sample warps: what the estimate cost
};

// Requires a CUDA target. A kernel that does not fit a multiprocessor takes infinitely long. Takes about half
// a millisecond for the kernels of the templates, and a bounded number of evaluations for any.
TimeEstimate estimate_time(const GpuKernel& kernel, const Target& target);
// Its kernels one after the other; the bound is that of the longest.
TimeEstimate estimate_time(const GpuProgram& program, const Target& target);

}  // namespace tuner
