// Regions: which box of a buffer the statements below a loop touch.
//
// The loops inside the statement are run through; variables bound outside stay symbols. A box is a minimum
// per dimension (an expression of the outer variables) and a constant extent. It covers every element
// touched; it is exact for affine indices of one access and may be larger where indices divide, or where
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
  std::vector<int64_t> extent;  // of a dimension, at most the buffer's
  std::vector<int64_t>
      reached;  // the same before it was cut at the buffer's size, where min is then 0; else equal to extent
};

// The box of `buffer` loaded by `s`; empty when it is not loaded there. `outer` holds the ranges of the
// variables bound outside `s`. A dimension whose box would be as large as the buffer's is the whole
// dimension, from 0.
std::optional<Region> region_read(const Stmt& s, const Buffer& buffer, const RangeMap& outer);
// The box stored by `s`.
std::optional<Region> region_written(const Stmt& s, const Buffer& buffer, const RangeMap& outer);

}  // namespace tuner
