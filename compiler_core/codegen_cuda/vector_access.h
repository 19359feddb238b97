// What may be done for all lanes of a vectorized loop at once: proofs about addresses and conditions.
#pragma once

#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/stmt.h"

namespace tuner::cuda {

// One access as `lane` runs over 0..lanes: the same element, `lanes` elements side by side from an address
// that is a multiple of their bytes (then one vector does it: float4; of 16 bits ushort4; 8 or 16 bytes of
// smaller elements in a uint2 or uint4), or anything.
enum class LaneAccess { kSame, kVector, kScattered };
LaneAccess lane_access(const Buffer& buffer, const std::vector<Expr>& indices, const Var& lane, int64_t lanes,
                       const RangeMap& ranges);

// True for registers that lie together, four bytes in each, as an array that is aligned for every vector of
// them: so the compiler moves and multiplies words of it.
bool lies_in_words(const BufferNode& buffer);

// True when `condition` is proved to be the same for all lanes: it does not depend on the lane, or it
// compares a multiple of `lanes` plus the lane with a multiple of `lanes`.
bool same_for_all_lanes(const Expr& condition, const Var& lane, int64_t lanes, const RangeMap& ranges);

}  // namespace tuner::cuda
