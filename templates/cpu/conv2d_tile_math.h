// A convolution as tiles see it: pixels in a row, and each tap of the window a distance between two of them.
// For conv2d_tile_cpu.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler_core/ir/stmt.h"
#include "templates/cpu/cpu_tiles.h"
#include "templates/workload/workload.h"

namespace tuner::conv2d_tile {

// One axis of the window.
struct Taps {
  Taps(int64_t kernel_n, int64_t stride_n, int64_t dilation_n, int64_t in_n, int64_t low, int64_t out_n)
      : kernel(kernel_n),
        stride(stride_n),
        dilation(dilation_n),
        phases(kernel > 1 && dilation % stride != 0 ? stride : 1),
        plane(out_n + (kernel - 1) * dilation / stride),
        padding(low),
        in(in_n) {}

  Expr phase(const Expr& k) const { return floor_mod(k * dilation, stride); }
  Expr distance(const Expr& k) const { return floor_div(k * dilation, stride); }
  // Where element `i` of a phase is read, and whether it is of the image; undefined: all are.
  Expr at(const Expr& phase, const Expr& i) const { return i * stride + phase - padding; }
  Expr inside(const Expr& phase, const Expr& i) const;

  int64_t kernel, stride, dilation;
  int64_t phases, plane;  // phases that are read, and how many elements of each
  int64_t padding, in;
};

// Images of few channels are folded: taps count as channels, so that steps of the unit are full. The channels
// of pixels side by side are one line, and those that a row of the window covers follow each other in it:
//
//   term t of output q = line[(t / slot) * dilation + the row of q][first of q + t % slot]
//
// (With a dilation along the line its pixels are that far apart.)
struct Fold {
  int64_t channels;  // of a pixel in a line: the image's; of several planes (NCHW) filled up to whole groups
  int64_t taken;     // of a line by one output: kernel_width * channels
  int64_t slot;      // the same as `taken`, filled up so that vectors copy it
  int64_t rows;      // of the window that stand side by side as terms
  int64_t blocks;    // of so many rows in the window; the last one may reach beyond it
  int64_t lines, line;  // how many are read, and elements of one
};

// One task, as the template sees it.
struct Shape {
  Shape(const Conv2dWorkload& task, const cpu::TileUnit& of);

  bool lays_out() const {
    return w.padding != std::array<int64_t, 4>{} || down.stride != 1 || across.stride != 1;
  }
  // Outputs of a pixel lie side by side, and so do its rows of tiles; else pixels are their columns.
  bool pixels_are_rows() const;
  // Pixels can be read where they lie: side by side, channels innermost, in whole steps.
  bool reads_in_place() const;
  std::vector<int64_t> out_shape() const;

  Conv2dWorkload w;  // one row where nothing sets pixels apart
  const cpu::TileUnit& unit;
  bool folds;
  Fold fold;  // of those that do
  Taps down, across;
  int64_t step, group, out_block;
  int64_t terms = 0;             // channels, or what is folded into them, of one step after the other
  int64_t row = 0;               // pixels from one row of outputs to the next
  int64_t pixels = 0, sums = 0;  // that are read, and computed, of an image and phase
  int64_t out_height = 0, out_width = 0;  // one row where rows of outputs follow each other
};

// The math by stages:
//
//   phases  the image, padded and apart by phases of the stride: [n, ic, phase, phase, row, column], channels
//           as in its layout. Of shapes that lay out, and do not fold
//   lines   of shapes that fold: [n, line, element]
//   pixels  [n, phase, phase, term, q]
//   taps    of shapes that fold: the weights of these terms, [oc, term, block of rows, 1]; elsewhere `weight`
//   acc     [n, q, oc] or, where pixels are columns, [n, oc, q]
//   out     as Workload::compute() has it, byte for byte; pixels in one row have no rows
//
// Arguments are those of Workload::compute(), some with fewer dimensions.
Program math(const Shape& shape);

}  // namespace tuner::conv2d_tile
