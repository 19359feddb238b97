// What schedules for GPUs share: the copy of a tile by all threads of a block, the grid, and limits of a
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"
#include "templates/space/knob.h"

namespace tuner::cuda {

constexpr int64_t kWarp = 32;  // threads
// Multiprocessors of the GPU a default config is made for. A target names an architecture, not a model:
// between an RTX 3060 (28) and an H200 (132), large enough that the default of a small workload has blocks
// for all of a large GPU.
constexpr int64_t kMultiprocessors = 128;
// Multiply-adds in one unrolled body. Compile time grows with it, and the instruction cache ends.
constexpr int64_t kMaxBody = 2048;
constexpr int64_t kMaxGridYZ = 65535;  // blocks in the second and third dimension of a grid

// Elements of a vector access: the widest of 4, 2, 1 that divides every one of `lengths`.
int64_t vector_width(std::initializer_list<int64_t> lengths);

// Registers a thread may use when `min_blocks` blocks of `threads` are to fit one multiprocessor.
IntExpr register_limit(const Target& t, const IntExpr& threads, const IntExpr& min_blocks);
// What a thread needs beside accumulators, operands and staged loads: addresses, counters, what the compiler
// keeps. Measured on compiled tiles of a matrix product: a smaller allowance let through tiles that spill.
constexpr int64_t kOtherRegisters = 30;

// Shares the copy of a tile among `threads` threads: consecutive threads take consecutive vectors of
// `vector` columns, then the next rows. `outer`, `row`, `column` are nested in any order, `outer` may be
// empty; the columns are a whole number of vectors. Rounds are unrolled while they are few, so that their
// loads are under way together.
//
//   before   for outer, row, column: tile[...] = source[...]
//   after    for outer
//              unrolled row_round, column_round
//                threadIdx.x = row_thread * (threads of a row) + column_thread     guarded at the last rows
//                  vectorized lane: tile[...] = source[...]
void share_rows(Schedule& s, Axis outer, Axis row, Axis column, int64_t threads, int64_t vector);
// The same for `axes` (nested, outermost first; the last a whole number of vectors) as one long row.
void share_copy(Schedule& s, const std::vector<Axis>& axes, int64_t threads, int64_t vector);

// Binds what stands outside the tile of a block: `tiles` to blockIdx.x, `splits` (parts of a reduction) to
// .y, `batch` to .z. Empty axes are left out. The axes are nested in the order batch, splits, tiles; too
// large ones join blockIdx.x.
void bind_grid(Schedule& s, Axis batch, Axis splits, Axis tiles);

// Splits `axis` in vectors: the vectors are unrolled, the lanes of one vectorized.
void vectorize_by(Schedule& s, Axis axis, int64_t lanes);

}  // namespace tuner::cuda
