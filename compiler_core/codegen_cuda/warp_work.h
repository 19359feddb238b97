// What an average warp of a kernel does, counted from its statements in one walk: instructions, passes of the
// memory pipe, bytes; and the order of it, for latencies. Input of time_estimate.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// What instructions are issued for. Work, accesses and moves are counted one by one; of the others the walk
// counts what asks for instructions, and a weight tells how many (issue_weights).
enum class Issue : uint8_t {
  kWork,       // arithmetic of values, shuffles, waits
  kTile,       // products of tiles on tensor cores
  kAccess,     // loads and stores
  kMove,       // of a register
  kSetup,      // an operation of an index or a condition that stands still in all loops
  kIndex,      // one that does not: of an index
  kCondition,  // of a guard, or of what selects a value
  kAddress,    // a pointer that goes on from iteration to iteration
  kSwizzle,    // an operation of a layout, for each access
  kTurn,       // of a loop
  kBarrier,
  kEntry,  // of the kernel, and the way out
};
inline constexpr size_t kIssues = static_cast<size_t>(Issue::kEntry) + 1;
std::string_view issue_name(Issue issue);
// Fitted (warp_work.cpp tells how): instructions for one of each; and clocks until a warp that is alone issues
// what comes next, without waits for memory.
struct IssueWeights {
  std::array<double, kIssues> instructions, clocks;
};
const IssueWeights& issue_weights();

// Of one warp. Fractions come from guards that only some warps pass.
struct WarpCounts {
  std::array<double, kIssues> issues{};
  double arithmetic = 0;  // of these in the float pipe: a fused multiply-add is one
  double wavefronts = 0;  // passes of shared memory and L1, 128 bytes each at best
  double conflicts = 0;   // of these, more than another layout of shared memory would need
  double sectors = 0;     // of 32 bytes, asked of L1 or written
  double halves = 0;      // products on tensor cores, in such of 16 x 8 x 16 of 16 bits
  double bytes = 0;       // likewise, in such of 16 x 8 x 32 of bytes
  double grouped = 0;     // of 16 bits by warpgroups, in such of 16 x 8 x 16
  double dots = 0;        // of the instructions: dot products of four bytes, in the integer pipe

  double tiles() const { return halves + bytes + grouped; }
  double& operator[](Issue issue) { return issues[static_cast<size_t>(issue)]; }
  double operator[](Issue issue) const { return issues[static_cast<size_t>(issue)]; }
  double instructions() const;  // that are issued, all kinds
  double clocks_alone() const;  // of a warp that is alone, each pipe at full rate

  WarpCounts& operator+=(const WarpCounts& o);
  WarpCounts operator*(double factor) const;
};

// What happens without going back: statements between loops that stay loops and barriers. Unrolled loops are
// one step of all their iterations, because the compiler orders those as it likes.
struct WarpStep {
  enum class Kind { kWork, kLoop, kBarrier, kCommit, kWait } kind = Kind::kWork;

  // kWork
  WarpCounts counts;
  double chain = 0;  // operations that wait for each other
  bool global_loads = false, shared_loads = false, shuffles = false;
  bool loads_go_on = false;                 // what is loaded goes to `result`: who reads that waits
  bool is_async = false;                    // what is loaded goes to shared memory: a kWait waits for it
  const BufferNode* result = nullptr;       // of registers
  std::vector<const BufferNode*> operands;  // of registers

  // kWait: all groups of asynchronous copies but so many of the latest, each ended by a kCommit
  int64_t in_flight = 0;

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

// What a product of tiles C += A B is, of one warp; nothing of any other intrinsic.
struct TileProducts {
  double halves = 0, bytes = 0, grouped = 0;  // units: at WarpCounts
  double instructions = 0;
};
TileProducts tile_products(const Intrinsic& intrinsic);

// `wave_blocks`: how many blocks run at the same time.
WarpWork warp_work(const GpuKernel& kernel, int64_t wave_blocks);

}  // namespace tuner::cuda
