// How the nests of a reference answer are cut into blocks (reference.h). Each element keeps its value: its
// terms are added in the order of the Program, in the type of the Program, whatever the blocks.
//
//   parallel over chunks of rows and of lanes
//     for blocks of `depth` steps of the reduction              sums wait in the output between two blocks
//       for blocks of `lanes`
//         panel[depth, lanes] = what all rows of the chunk read
//         for blocks of `rows`
//           sums[rows, lanes] in registers: for depth: sums (op)= value, with elements of the panel as vectors
#pragma once

#include <cstdint>

#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

struct ReferenceBlocks {
  int64_t vectors = 4;       // registers along the last spatial axis: the lanes of a tile
  int64_t rows = 6;          // rows of a tile; 1: no rows share what they read
  int64_t depth = 128;       // steps of the reduction that a panel holds
  int64_t chunk_rows = 192;  // rows that use a panel while it is in the cache
  // Iterations of a nest that has tiles: fewer take less time than the code for all remainders takes to
  // compile.
  int64_t least_work = int64_t{1} << 22;
};
// Returns the largest tile whose sums stay in this CPU's registers.
ReferenceBlocks reference_blocks(const Target& target);

// Returns the nest in blocks, its outermost loop parallel if the target has several threads; `nest` itself if
// it is not a perfect nest around one store along a contiguous axis.
Stmt reference_nest(const Stmt& nest, const ReferenceBlocks& blocks, const Target& target);

}  // namespace tuner
