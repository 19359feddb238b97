// Shared by products on CPUs (matmul, 1x1 convolutions): a tile of sums in registers, and which tiles are
// worth trying.
#pragma once

#include <cstdint>
#include <span>

#include "compiler_core/base/int_math.h"
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"
#include "templates/space/config_space.h"
#include "templates/space/knob.h"

namespace tuner::cpu {

// Limit on multiply-adds in one unrolled body; a longer one only takes longer to compile.
constexpr int64_t kMaxBody = 64;

// Makes the sum acc[.., row, column], computed inside the loop `tile`, a tile of registers. The reduce axes
// are split by `reduce_splits`, outermost first, and the last of them is unrolled.
//
//   acc = 0
//   for k.outer
//     unrolled k.inner
//       unrolled row                   one broadcast of an operand...
//         unrolled vector              ...times each vector of the other: one accumulator register each
//           vectorized lane
//
// In groups of `group` terms (more than one), k counts groups, and each lane adds the dot product of one.
// Returns the outermost loop of k.
Axis sum_in_registers(Schedule& s, const Tensor& acc, const Axis& tile, int64_t lanes,
                      std::span<const int64_t> reduce_splits, int64_t group = 1);

// How the operand is read of which each number is multiplied by vectors of the other.
enum class Broadcasts : uint8_t {
  kEach,          // each number by itself, in all lanes
  kLanesOfRows,   // four rows as one vector, of which the multiply-add takes a lane: they lie side by side
  kLanesOfTerms,  // four terms of a row as one vector, kept until all four are added
};
// Returns kEach for targets whose multiply-adds take no lane (AArch64's do). `side_by_side`: rows lie so.
Broadcasts broadcasts_of(const Target& t, bool side_by_side);
// Returns the registers that such numbers of `rows` rows need. Int: a number or an expression of knobs.
template <class Int>
Int registers_of(Broadcasts how, const Int& rows) {
  if (how == Broadcasts::kEach) return Int(1);
  return how == Broadcasts::kLanesOfTerms ? rows : ceil_div(rows, 4);
}

// The columns of a tile come in units of `unit`, a multiple of the vector width `lanes`.
struct Columns {
  int64_t lanes, unit;
  Broadcasts broadcasts = Broadcasts::kEach;
};
// Adds constraints: the accumulators, one vector of each column and the broadcasts fit the registers; tiles
// are as equal as possible, without a small rest; no body is longer than kMaxBody.
void require_tile(ConfigSpace& space, const SplitKnob& rows, const SplitKnob& columns, Columns in,
                  int64_t registers, const IntExpr& unroll);

struct Tile {
  int64_t rows, columns;
};
// Returns the cycles in which a tile adds one term: multiply-adds take four, two start in each; so do two
// loads. Where lanes are taken, one load and three instructions of any kind start in each. Half a cycle for
// the loop.
double cycles_of_terms(int64_t rows, int64_t vectors, Broadcasts how);
// Returns the tile that covers m x n in the least time by these cycles.
Tile first_tile(int64_t m, int64_t n, Columns in, int64_t registers);
// Returns how many terms to write out first, of `terms`, in a tile of so many sums: four where lanes are
// taken and a body stays short, so that loads come in pairs and the loop's own instructions are shared; else
// one.
int64_t first_unroll(Broadcasts how, int64_t sums, int64_t terms);

// Packs [k, x] or [x, k] into blocks of x: [blocks of x][k][inside of the block]. Dimensions before `first`
// stay in front. `x` is the blocked one of the two dimensions at `first`; those after them stay behind k. In
// groups of k, one group of each element of a block lies side by side: [blocks of x][groups of k][inside of
// the block][inside of the group].
Tensor pack_blocks(Schedule& s, const Tensor& t, int first, int x, int64_t block, int64_t group = 1);

// Returns how many terms a lane of a dot-product instruction multiplies: what fills 32 bits, 2 of bfloat16, 4
// of int8; 1 of float32, which has none; 0 of types that products here do not have.
int64_t dot_group(DType dtype);

// Returns the registers that a first tile leaves free: targets of few registers mostly have no dot products,
// and take their operands apart; AArch64 adds up a side of bytes beside the sums (codegen/emit_dot.cpp).
inline int64_t spare_registers(const Target& t, int64_t group) {
  if (group == 1) return 0;
  if (broadcasts_of(t, true) != Broadcasts::kEach) return 6;
  return t.vector_registers() < 32 ? 3 : 0;
}

// Packs the channels of an image (dimension 1; pixels behind it) into groups side by side, zeros beyond the
// last: [n, groups, pixels.., inside of the group]. Copies vectors of pixels, one a channel, and weaves them;
// a constant is packed ahead.
void group_channels(Schedule& s, const Tensor& image, int64_t group, bool parallel);

// Elements along k that an instruction takes together: groups of `group`, as many as a multiple of
// `multiple`. The other dimension is in blocks, as many as a multiple of `blocks`.
struct Groups {
  int64_t group = 1, block = 1, multiple = 1, blocks = 1;
};
// Packs [batch,] x, y, whose dimension `along_k` (0: x, 1: y) holds k: [batch,] blocks of the other, groups,
// inside of the block, inside of the group. Zeros beyond the shape.
Tensor pack_groups(Schedule& s, const Tensor& t, int along_k, const Groups& in);
// Schedules the loops of such a packed operand that is no constant. Groups that lie side by side already are
// copied whole; else vectors of the block are read, one for each place in a group, and woven together.
void weave_groups(Schedule& s, const Tensor& packed, int along_k, int64_t block, bool parallel);

// Whether panels of an operand are worth asking for while the one before is used (Schedule::prefetch_next):
// each of its elements is multiplied `uses` times. A core reads about 8 bytes a cycle from its outer caches
// and multiplies 32 elements, so reading takes 16 / uses of the time, unless it is done meanwhile.
constexpr bool may_ask_ahead(int64_t uses) { return uses <= 1024; }
constexpr bool asks_ahead_first(int64_t uses) { return uses <= 256; }

// Splits the axis into unrolled vectors of `lanes`.
void vectorize_by(Schedule& s, const Axis& axis, int64_t lanes);

}  // namespace tuner::cpu
