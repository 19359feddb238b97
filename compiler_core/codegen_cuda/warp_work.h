// What an average warp of a kernel does, counted from its statements in one walk: instructions, passes of the
// memory pipe, bytes; and the order of it, for latencies. Input of time_estimate.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/codegen_cuda/warp_counts.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// What happens without going back: statements between loops that stay loops and barriers. Unrolled loops are
// one step of all their iterations, because the compiler orders those as it likes.
struct WarpStep {
  enum class Kind { kWork, kLoop, kBarrier, kCommit, kWait, kExpect } kind = Kind::kWork;

  // kWork
  WarpCounts counts;
  double chain = 0;  // operations that wait for each other
  bool global_loads = false, shared_loads = false, shuffles = false;
  bool loads_go_on = false;                 // what is loaded goes to `result`: who reads that waits
  bool is_async = false;                    // what is loaded goes to shared memory: a kWait waits for it
  const BufferNode* result = nullptr;       // of registers
  std::vector<const BufferNode*> operands;  // of registers

  // kWait: all groups of asynchronous copies but so many of the latest, each ended by a kCommit; of copies by
  // TMA begun by a kExpect
  int64_t in_flight = 0;
  double fetched_bytes = 0;  // by TMA, for the whole block

  // kLoop
  int64_t extent = 0;
  std::vector<WarpStep> steps;
};

// Of one global buffer.
struct GlobalTraffic {
  Buffer buffer;
  double load_sectors = 0, store_sectors = 0;  // of one warp
  double block_bytes = 0;                      // that a block touches, each counted once (a box around them)
  double wave_blocks = 1;                      // blocks of a wave that touch different parts of it
};

struct WarpWork {
  WarpCounts counts;
  std::vector<GlobalTraffic> traffic;
  std::vector<WarpStep> steps;
  bool has_barriers = false;
  double active_blocks = 1;  // share of the blocks that have this work; others leave at once
  int64_t evaluations = 0;   // of indices and conditions, see WarpSampler
};

// `wave_blocks`: how many blocks run at the same time.
WarpWork warp_work(const GpuKernel& kernel, int64_t wave_blocks);

}  // namespace tuner::cuda
