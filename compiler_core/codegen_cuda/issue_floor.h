// A lower bound of a compiled kernel's time, from the instructions it must issue. No estimate: nothing can be
// faster.
//
// A multiprocessor has four schedulers, each issues one instruction a clock. How many instructions a warp
// issues follows from two numbers of the lowered kernel that are known exactly, its multiply-adds and its
// barriers, and from the loops of the machine code:
//
//   outside of loops     what every thread passes, once
//   loops with HMMA or IMMA     the products of tiles, likewise
//   loops with FFMA      the multiply-adds that the code outside of loops cannot hold, times the fewest
//                        instructions that any such loop can issue for one of them
//   loops with barriers, without the others     the same with barriers, if no loop has both
//
// Only instructions count that no branch leads around (Block::sure), and of those behind a branch what comes
// with multiply-adds: guarded copies are left out. A loop with neither counts nothing. Multiply-adds under a
// guard count by the share of blocks and iterations that pass it; under one that differs from thread to
// thread, not at all. All that makes the bound lower, never wrong. The busiest multiprocessor has ceil(blocks
// / multiprocessors) blocks and its busiest scheduler a quarter of their warps, rounded up; where they have
// different work, the average counts, spread evenly.
//
// Four more bounds from the same counts, of which the largest is taken: the float32 pipe, where it has fewer
// lanes than the schedulers can feed (sm_80); the tensor cores, at a rate that mma.sync never exceeds
// (DeviceRates::least_mma); the pipe to memory, an access a clock and multiprocessor, of shared memory as
// many passes as a warp needs for what it must load and store there, without bank conflicts (shared_words.h);
// and a warp that nobody is in the way of, with its stalls and the shortest waits for its loads, once for
// each round of resident blocks. Clock and multiprocessors are those of device_rates.h.
//
// Refused: code with too many unknown instructions, indirect jumps (what is executed there is not known), or
// no code of that kernel.
#pragma once

#include <string_view>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/codegen_cuda/sass/sass.h"
#include "compiler_core/lower/gpu.h"
#include "compiler_core/target.h"

namespace tuner::sass {

// Of one thread of a block that has work, from the statements of a lowered kernel.
struct LoweredCounts {
  double multiply_adds = 0;    // float32 products with a sum
  double tiles = 0;            // products of tiles: instructions, each of a warp
  double halves = 0;           // of them, in such of 16 x 8 x 16 of 16 bits
  double bytes = 0;            // of them, in such of 16 x 8 x 32 of bytes
  double grouped = 0;          // of them by warpgroups, in such of 16 x 8 x 16 of 16 bits
  double dots = 0;             // products of four bytes with a sum
  double barriers = 0;         // of the block
  double shared_passes = 0;    // of a warp: what its accesses to shared memory between barriers need
  double active_blocks = 1;    // share of the blocks that have work
  bool blocks_differ = false;  // some have more than others: counts are the average of those that have work
};
LoweredCounts lowered_counts(const GpuKernel& kernel);

struct IssueFloor {
  double ns = 0;                 // without the launch
  double issue_ns = 0;           // of the bounds, the largest of schedulers, float32 pipe and tensor cores
  double warp_instructions = 0;  // a warp issues at least so many
  double warp_clocks = 0;        // and takes so many clocks when nobody is in its way
  double warp_stalls = 0;        // of them, so many without waiting for memory
};
// `resident_blocks`: that fit a multiprocessor at once (LaunchInfo); 0: not known.
Result<IssueFloor> issue_floor(const KernelCode& code, const GpuKernel& kernel, const Target& target,
                               int resident_blocks = 0);
// Its kernels one after the other, without the launches.
Result<IssueFloor> issue_floor(const Artifact& artifact, const GpuProgram& program, const Target& target);

}  // namespace tuner::sass
