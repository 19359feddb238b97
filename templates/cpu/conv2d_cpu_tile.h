// Shared by the direct convolutions of CPUs: a task as tiles see it, and how much code its tiles become.
#pragma once

#include "compiler_core/target.h"
#include "templates/cpu/cpu_product.h"
#include "templates/workload/workload.h"

namespace tuner::conv2d_cpu {

// Limits on vector multiply-adds in the code of one tile, and in all the code that its cuts become (cut tiles
// count as whole ones, and are half as large on average). Longer code only takes longer to compile.
constexpr int64_t kMaxBody = 200, kMaxKernel = 560;

inline bool pads(const Conv2dWorkload& w) { return w.padding != std::array<int64_t, 4>{}; }

// How far the windows reach into the padding at the first and at the last outputs of an axis.
struct Border {
  int64_t low, high;
  int64_t sides() const { return (low > 0 ? 1 : 0) + (high > 0 ? 1 : 0); }
};
Border rows_border(const Conv2dWorkload& w);
Border columns_border(const Conv2dWorkload& w);

// One task, as the template of dense convolution sees it.
struct Shape {
  Shape(const Conv2dWorkload& w, const Target& t);

  // Returns how many bodies the code has for one tile: one for each way in which the tile may be cut at the
  // border or at the end (lower/partition_loops.cpp). Int: numbers, or expressions of knobs.
  template <class Int>
  Int bodies(const Int& tile_oc, const Int& tile_oh, const Int& tile_ow, const Int& unroll_kw) const {
    const int64_t apart = columns.low + columns.high;
    const Int across = unroll_kw * (kernel_width * (1 + columns.sides()) - 1 - apart) + (1 + apart);
    const Int down = Int(tile_oh > 1) * (rows.low + rows.high) + 1;
    const Int ends = (Int(Int(out_group) % tile_oc != 0) + 1) * (Int(Int(out_height) % tile_oh != 0) + 1) *
                     (Int(Int(out_width) % tile_ow != 0) + 1);
    return across * down * ends;
  }

  int64_t dot;  // channels that one lane of an instruction multiplies: more than 1 for bfloat16, int8
  int64_t in_group, out_group;  // channels per group; in_group and in_block count dot products
  int64_t in_block, out_block;  // channels of a block of memory, in data and in out; 1: no blocks
  bool planar_out;              // pixels of a channel are adjacent in out, not channels of a pixel
  int64_t lanes;                // of vectors of output channels
  // Pixels of a row lie side by side in a plain image, channels of a pixel in a blocked one.
  cpu::Broadcasts broadcasts;
  int64_t stride_width;
  Border rows, columns;
  int64_t kernel_width, out_height, out_width;
};

// Returns the registers that the data of a tile need, for one channel and tap.
int64_t data_registers(const Shape& shape, int64_t oh, int64_t ow);

struct Tile {
  int64_t vectors, oh, ow;
};
// Returns the tile that covers the output in the least time, by a count of multiply-adds and loads.
Tile first_tile(const Shape& shape, int64_t registers);

}  // namespace tuner::conv2d_cpu
