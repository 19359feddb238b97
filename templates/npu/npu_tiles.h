// Shared by templates for the NPU: sizes of tiles, and what fits a machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/npu/machine.h"
#include "templates/schedule_template.h"

namespace tuner::npu_tiles {

// Rows of operands, and of weights, are at most so many words apart.
constexpr int64_t kMostStride = 255;
// Rows of one `matmul`, and how often it begins such a run anew.
constexpr int64_t kMostRows = 1023, kMostOuter = 255;

// Words from one row of pixels to the next, at most.
constexpr int64_t kMostRowStride = 4095;

// Parts of about equal size, each a multiple of `unit`, the largest first; none above `most`.
std::vector<int64_t> equal_tiles(int64_t extent, int64_t unit, int64_t most);
// Those that are a multiple of `unit` and divide the extent, the largest first; none above `most`.
std::vector<int64_t> dividing_tiles(int64_t extent, int64_t unit, int64_t most);
// The largest that is at most `most`; else the smallest.
int64_t at_most(const std::vector<int64_t>& tiles, int64_t most);

// Of bias and scale, in blocks of the array's columns.
int64_t tables_bytes(int64_t channels, const npu::Machine& m);

// Of a product with requantised sums of these channels, whatever its shape.
template <class Product>
Support serves_product(const Product& w, int64_t channels, const npu::Machine& m) {
  if (w.dtype != DType::kInt8 || !requantises(w))
    return declined("needs int8 with out_dtype int8 or uint8, got ", w.dtype, " with ", w.out_dtype());
  if (w.residual) return declined("has no residual");
  for (const int64_t side : {m.array_rows, m.array_columns})
    if (side % m.bank_bytes != 0)
      return declined("needs sides of the array that fill words of ", m.bank_bytes, " bytes, got ", side);
  const int64_t tables = tables_bytes(channels, m);
  if (2 * tables > m.scratchpad_bytes)
    return declined("needs bias and scale of all channels in half of the scratchpad, got ", tables, " bytes");
  // A loop of one iteration is none, and no tile can be cut out of it.
  if (channels < 2) return declined("needs 2 output channels (columns), got ", channels);
  return supported();
}

// Of a convolution, whatever its groups.
Support serves_convolution(const Conv2dWorkload& w, const Target& t);

// Rows (columns) of the padded image that `n` of out read.
template <class Int>
Int reach(const Int& n, int64_t stride, int64_t kernel, int64_t dilation) {
  return (n - 1) * stride + ((kernel - 1) * dilation + 1);
}

// The name of an intrinsic: "npu.rows.uint8.16x16".
std::string intrinsic(const char* what, const npu::Machine& m);

// The image of a convolution with its border, as large as whole tiles of out need it, and with whole tiles of
// channels: zeros beyond the image.
struct ImageTile {
  int64_t h, w, channels;
};
Tensor tiled_image(Schedule& s, const Conv2dWorkload& w, const ImageTile& tile);

// A tile of pixels and channels of a result in NHWC.
struct OutTile {
  int64_t h, w, channels;
};
// Loops over such tiles, pixels outside; then those inside of one.
struct OutLoops {
  Axis pixel_tile, channel_tile;
};
OutLoops tile_out(Schedule& s, const Tensor& out, const OutTile& tile);

// Of an operator of the vector unit on windows of an image.
struct WindowKnobs {
  ChoiceKnob tile_h, tile_w, tile_c, stages;
};
struct WindowTiles {
  std::vector<int64_t> h, w, c;
};
struct WindowTile {
  int64_t h, w, c, stages;
};
WindowKnobs declare_windows(ConfigSpace& space, const WindowTiles& tiles, const WindowTile& first,
                            int64_t out_height, int64_t out_width);
// Smaller rows, then columns, then channels, until it fits; the smallest of all where nothing does.
template <class Fits>
WindowTile fitting(WindowTile tile, const WindowTiles& tiles, const Fits& fits) {
  const auto shrink = [&](int64_t& side, const std::vector<int64_t>& sides) {
    while (!fits(tile) && side != sides.back()) side = at_most(sides, side - 1);
  };
  shrink(tile.h, tiles.h), shrink(tile.w, tiles.w), shrink(tile.c, tiles.c);
  return tile;
}

// Where the operands of a product are loaded, and how far ahead.
struct Streams {
  Axis outer, inner, terms;    // loops over tiles; terms: of the sum
  bool several_terms = false;  // that loop has more than one iteration
  bool resident = false;       // of `panel` all terms are loaded once per outer tile
  Tensor panel;                // the operand that depends on `outer`
  int64_t stages = 1, panel_stages = 1;
};
void stream(Schedule& s, const std::vector<Tensor>& operands, const Streams& streams);

}  // namespace tuner::npu_tiles
