// What a warp does, in numbers: what its instructions are issued for, and what these cost by weights that are
// fitted to machine code.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "compiler_core/ir/intrinsic.h"

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
// Fitted (warp_counts.cpp tells how): instructions for one of each; and clocks until a warp that is alone
// issues what comes next, without waits for memory.
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

// What a product of tiles C += A B is, of one warp; nothing of any other intrinsic.
struct TileProducts {
  double halves = 0, bytes = 0, grouped = 0;  // units: at WarpCounts
  double instructions = 0;
};
TileProducts tile_products(const Intrinsic& intrinsic);

}  // namespace tuner::cuda
