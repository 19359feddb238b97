// In place: outputs that lie on an operand (BufferRole::kInOut), as out does in out += a * b.
#pragma once

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// Checks that no element of such an output is read after it was overwritten, in whatever order or on however
// many threads the loops run:
//
//   - one statement stores it, and only that statement reads it, the very element that it stores;
//   - no two iterations of the loops around store the same element. Shown from the indices: sums of loop
//     variables whose steps do not overlap, and quotients and remainders of fused loops, within the guards
//     around.
//
// So a copy of the output (cache_read, cache_write, pack), partial sums kept in it, a loop of k outside of
// the store, and tiles that overlap are refused. InvalidConfig names the output and what was found; also
// where the indices are such that this analysis cannot tell. Programs without such an output pass.
//
// It is for a schedule's result, before lowering: lowering writes statements twice, under conditions that
// exclude each other (lower/partition_loops.cpp), and keeps what is shown here.
Status check_in_place(const Program& program);

}  // namespace tuner
