// What a copy engine (TMA) does in the place of the loops of a copy into shared memory: boxes of a tensor
// map.
#pragma once

#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/tensor_map.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// One box, for each iteration of `rounds`.
struct TensorCopy {
  // Of an array that lies in memory as the tile does: so many bytes in a row, no map. 0: by `map`.
  int64_t bytes = 0;
  Expr first;  // load of the first of them
  TensorMap map;
  Buffer from;                    // the array that the map describes, in global memory
  std::vector<Expr> coordinates;  // of the first element of a box, innermost first
  Expr to;                        // load of the tile's element that it goes to
  std::vector<Stmt> rounds;       // loops of the copy that no box covers, outermost first
};

// Reads `copy`: loops and guards around one store tile[...] = select(inside, x[...], 0), of a tile in shared
// memory. The boxes bring what the loops would, zeros too, to where the layout of the tile has it: shown for
// every element. An array with a layout of its own (a constant that was packed so) must lie as the tile does.
// InvalidConfig, in words of the copy, the map or the layout: no boxes do that. "the rows of b are 120 bytes
// apart, expected a multiple of 16".
Result<TensorCopy> tensor_copy(const Stmt& copy, const RangeMap& ranges);

}  // namespace tuner
