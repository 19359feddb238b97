// Regions: which box of a buffer the statements below a loop touch.
//
// Loops inside the statement are run through; variables bound outside stay symbols. A box has a minimum for
// each dimension (an expression of the outer variables) and a constant extent. It covers every element
// touched. It is exact for the affine indices of one access; it may be larger if indices divide, or if
// several accesses lie apart.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

struct Region {
  std::vector<Expr> min;
  std::vector<int64_t> extent;  // per dimension; at most the buffer's
  // The extent before it was cut at the buffer's size (min is then 0); else equal to extent.
  std::vector<int64_t> reached;
};

// Returns the box of `buffer` that `s` loads; empty if it loads none of it. `outer` holds the ranges of the
// variables bound outside `s`. If the box would be as large as the buffer in a dimension, it is that whole
// dimension, from 0.
std::optional<Region> region_read(const Stmt& s, const Buffer& buffer, const RangeMap& outer);
// Returns the box of `buffer` that `s` stores.
std::optional<Region> region_written(const Stmt& s, const Buffer& buffer, const RangeMap& outer);

}  // namespace tuner
