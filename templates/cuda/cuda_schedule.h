// Shared by schedules for GPUs: copying a tile with all threads of a block, the grid, and limits of a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"
#include "templates/space/knob.h"

namespace tuner::cuda {

constexpr int64_t kWarp = 32;  // threads
// Warps of a block come in fours where there is work for them: a multiprocessor has four schedulers, each
// with warps of its own.
constexpr int64_t kSchedulers = 4;
// Elements of out from which on a template asks for that: below, more and smaller blocks reach more
// multiprocessors.
constexpr int64_t kManyElements = int64_t{1} << 20;
// Multiprocessors of the GPU that a default config is made for. A target names an architecture, not a model.
// The value lies between an RTX 3060 (28) and an H200 (132), large enough that a small workload's default has
// blocks for all of a large GPU.
constexpr int64_t kMultiprocessors = 128;
// Limit on multiply-adds in one unrolled body. Compile time grows with it, and the instruction cache is
// limited.
constexpr int64_t kMaxBody = 2048;
constexpr int64_t kMaxGridYZ = 65535;  // blocks in the second and third dimension of a grid
// Parts that sums may be split into, each in blocks of its own.
inline const std::vector<int64_t> kParts = {1, 2, 3, 4, 6, 8, 12, 16};

// Returns the rows (columns) of input that `n` rows of output and `k` rows of the kernel cover.
inline int64_t reach(int64_t n, int64_t k, int64_t stride, int64_t dilation) {
  return (n - 1) * stride + (k - 1) * dilation + 1;
}
inline IntExpr reach(const IntExpr& n, const IntExpr& k, int64_t stride, int64_t dilation) {
  return (n - 1) * stride + (k - 1) * dilation + 1;
}

// Returns the least power of two that is no less than n, or `most`, a power of two, if that is less.
int64_t power_of_two_at_least(int64_t n, int64_t most = int64_t{1} << 62);

// Returns the elements of a vector access: the widest of 4, 2, 1 that divides all of `lengths`.
int64_t vector_width(std::initializer_list<int64_t> lengths);

// Returns the registers that a thread may use if `min_blocks` blocks of `threads` are to fit a
// multiprocessor.
IntExpr register_limit(const Target& t, const IntExpr& threads, const IntExpr& min_blocks);
// Registers of a thread besides accumulators, operands and staged loads: addresses, counters, what the
// compiler keeps. Measured on compiled tiles of a matrix product: a smaller allowance let tiles through that
// spill.
constexpr int64_t kOtherRegisters = 30;

// Shares the copy of a tile among `threads` threads: consecutive threads take consecutive vectors of `vector`
// columns, then the next rows, then, where threads are left, the next iterations of `outer`. `outer`, `row`,
// `column` may be nested in any order, and `outer` may be empty; the columns must be a whole number of
// vectors. A few rounds are unrolled, so that their loads overlap.
//
//   before   for outer, row, column: tile[...] = source[...]
//   after    for outer
//              unrolled row_round, column_round
//                threadIdx.x = row_thread * (threads of a row) + column_thread     guarded at the last rows
//                  vectorized lane: tile[...] = source[...]
//
// `rows` > 1, a divisor of the rows: a thread takes as many rows of a vector, for a tile that lies the other
// way round than its source: vectors of columns are loaded, vectors of rows stored.
//
// `group`: a loop inside of `column`, whose elements lie side by side in the tile: a column is that many of
// them. In the source they lie so too, behind each other as columns do; or, `across`, each in a row of its
// own, so that vectors of columns are loaded and vectors of the group stored. With rows = 1.
struct ColumnGroup {
  Axis axis;
  bool across = false;
};
void share_rows(Schedule& s, const Axis& outer, const Axis& row, const Axis& column, int64_t threads,
                int64_t vector, int64_t rows = 1, const ColumnGroup& group = {});
// The same for `axes` as one long row (nested, outermost first; the last is a whole number of vectors).
void share_copy(Schedule& s, const std::vector<Axis>& axes, int64_t threads, int64_t vector);

// The stage through which a block reads what `reader` needs of `operand`: a copy of an argument that was
// packed ahead, or the stage that packs it, itself.
Tensor shared_tile(Schedule& s, const Tensor& operand, bool packed_ahead, const Tensor& reader);

// Binds the loops outside a block's tile: `tiles` to blockIdx.x, `splits` (parts of a reduction) to .y,
// `batch` to .z. Empty axes are left out. The axes must be nested in the order batch, splits, tiles; those
// that are too large join blockIdx.x.
void bind_grid(Schedule& s, const Axis& batch, const Axis& splits, const Axis& tiles);

// The kernel behind one that split the reduction `acc` (rfactor): adds up the parts, and computes from them,
// element by element, what `axes` ([batch,] i, j) run over; n: the length of j; vector_out: elements of its
// widest store.
void add_partials(Schedule& s, const Tensor& acc, const std::vector<Axis>& axes, int64_t n,
                  int64_t vector_out);

// Cuts the reduction `acc` into `splits` parts of `chunk` terms of its axis `sum`, each by blocks of its own,
// which a second kernel adds up (as add_partials); with one part nothing is cut. The sums of a block lie in
// `scope`. Returns them, and the loops [part,] [batch,] i, j over what the first kernel stores.
struct SplitSums {
  Tensor sums;
  std::vector<Axis> axes;
};
SplitSums split_sums(Schedule& s, const Tensor& acc, const Axis& sum, int64_t chunk, int64_t splits,
                     MemoryScope scope, const std::vector<Axis>& out, int64_t n, int64_t vector_out);

// The threads of a block that multiplies tiles together: lanes of a warp (of a warpgroup) along x, these
// along y.
struct ThreadGrid {
  int64_t lanes = kWarp, groups = 1;
  int64_t count() const { return lanes * groups; }
};
// Shares the copy of a tile among all threads of the block: consecutive lanes take consecutive vectors.
void share_tile(Schedule& s, const Tensor& tile, const ThreadGrid& threads, int64_t vector);
// The loops `axes` ([part,] [batch,] i, j) of out, or of the sums of parts, become the grid; `acc`, in shared
// memory, is computed in a block, and all threads write what is made of it.
struct BlockShape {
  int64_t batch = 1;
  int64_t rows = 0, columns = 0;
  int64_t group_m = 1;  // rows of blocks that are done together, column by column
  int64_t splits = 1;
  int64_t vector = 1;  // elements of a store
};
void place_block(Schedule& s, const std::vector<Axis>& axes, const Tensor& acc, const BlockShape& block,
                 const ThreadGrid& threads);

// Splits `axis` into vectors: unrolls the vectors and vectorizes the lanes of each.
void vectorize_by(Schedule& s, const Axis& axis, int64_t lanes);

}  // namespace tuner::cuda
