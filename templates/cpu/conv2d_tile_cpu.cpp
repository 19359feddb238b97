// conv2d_tile_cpu: convolution of bfloat16 or int8 by the tiles of a CPU's matrix unit: AMX, or vectors of
// AArch64 that hold small matrices (i8mm, bf16).
//
//   out[n, oc, oh, ow] = act(sum over ic, kh, kw of data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left]
//                                                   * weight[oc, ic, kh, kw] + bias[oc] + residual[...])
//
// The padded image, apart by phases of the stride, is one row of pixels q. Then a tap is a distance: what
// output q adds at kh, kw lies at q + (kh*dh / sh)*row + kw*dw / sw of its phase, and pixels side by side are
// a tile, across the ends of rows. Outputs that begin in the padding are computed and not written; a 1x1
// kernel has none.
//
//   pixels packed  with channels innermost, a step of them side by side (AMX: 16 groups, 32 bfloat16 or 64
//                  int8; in vectors one group, 4 or 8; zeros beyond):
//                  [n][phase][phase][IC/step][q][step]   where out is NHWC or in blocks: the rows of tiles
//                  or in groups (AMX: of 32 bits):
//                  [n][phase][phase][IC/D][q][D]         where out is NCHW: the columns of tiles
//                  or not at all (`in_place`): NHWC in whole steps, 1x1 without a stride
//   weight packed  the other way around, in tiles: [OC/16][KH][KW][IC/D][16][D] or
//                  [OC/R][KH][KW][IC/step][R][step]; by the packing entry when constant
//
//   parallel n, block of pixels
//     pack the pixels that the block reads (`pack_block`; else all of them before, and panels are parallel, too)
//     for panel of channels
//       for tiles of pixels in block
//         sums over kh, kw, ic: `down` x `across` tiles, into acc, which stays in L1    (cpu_tiles.h);
//         part of the next panel is asked for meanwhile (`next_panel`)
//         of outputs in one row (`by_tile`): write acc
//       write acc: the epilogue; vectors of channels (NHWC, blocked) or of pixels (NCHW)
//
// Few channels: rows of the window count as channels, so that steps are full (conv2d_tile_math.h):
//
//   lines          padded; the channels of a pixel side by side, of planes woven      [n][line][element]
//   pixels packed  rows of the window side by side, each one vector of a line
//
// Declines float32 and float16, groups, targets without tiles, and what leaves most of a tile empty.
#include <algorithm>
#include <optional>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/conv2d_tile_math.h"
#include "templates/cpu/cpu_images.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"
#include "templates/cpu/cpu_tiles.h"

namespace tuner {
namespace {

using conv2d_tile::Shape;

struct Conv2dTileKnobs {
  ChoiceKnob rows, down, across, block;
  FlagKnob by_tile, pack_block, in_place, next_panel;
};

// Blocks of outputs: so many rows; so many columns, of which those beyond the image fill up the last tile.
struct Blocks {
  Blocks(const Shape& shape, int64_t block, int64_t unit) {
    if (shape.out_height == 1) {
      columns = block == 0 ? round_up(shape.out_width, unit) : block * unit;
      last = (ceil_div(shape.out_width, columns) - 1) * columns;
      sums = columns;
    } else {
      rows = block == 0 ? shape.out_height : block;
      sums = round_up((rows - 1) * shape.row + shape.out_width, unit);
      columns = sums - (rows - 1) * shape.row;
      last = (ceil_div(shape.out_height, rows) - 1) * rows * shape.row;
    }
  }
  int64_t rows = 1, columns = 0;
  int64_t sums = 0;  // of a block
  int64_t last = 0;  // the first of the last block
};

class Conv2dTileCpu final : public ScheduleTemplate<Conv2dWorkload, Conv2dTileKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_tile_cpu"; }
  int version() const override { return 3; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (w.dtype != DType::kBFloat16 && w.dtype != DType::kInt8)
      return declined("needs bfloat16 or int8, got ", w.dtype);
    if (!t.has_tiles(w.dtype))
      return declined("needs tiles of ", w.dtype, " (AMX; i8mm or bf16 of AArch64), which ", t.name(),
                      " has not");
    if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
    if (w.out_channels < 2) return declined("needs 2 output channels or more, got ", w.out_channels);
    const Shape shape(w, cpu::tile_unit(t));
    if (!shape.pixels_are_rows() && w.dtype == DType::kInt8 && !t.is_x86())
      return declined("needs an output in NHWC or in blocks, got ", w.out_layout,
                      ": AArch64 has no product of signed by unsigned bytes");
    if (shape.pixels_are_rows() && w.out_channels < shape.unit.columns)
      return declined("needs ", shape.unit.columns, " output channels or more in layout ", w.out_layout,
                      ", got ", w.out_channels);
    if (shape.out_width < 2) return declined("needs 2 output columns or more, got ", shape.out_width);
    if (const int64_t few = shape.unit.few_terms(w.dtype); !shape.folds && shape.terms <= few)
      return declined("needs more than ", few, " input channels, got ", w.in_channels);
    return supported();
  }

  Conv2dTileKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const Shape shape(w, cpu::tile_unit(t));
    const bool by_rows = shape.pixels_are_rows();
    const int64_t m = by_rows ? shape.sums : w.out_channels, n = by_rows ? w.out_channels : shape.sums;
    const std::vector<int64_t> rows = rows_for(shape, m);
    const FirstConfig first = first_config(shape, rows, n);
    const auto [down, across] = first.tiles;
    const int64_t first_channels = by_rows ? shape.unit.columns * across : rows.front() * down;
    const bool one_row = shape.out_height == 1;
    Conv2dTileKnobs k{
        // Rows of a tile. Fewer take less time each, and leave registers half empty.
        .rows = space.choice("rows", rows).try_first(rows.front()),
        // Tiles of sums below each other. Each tile of columns that is loaded serves so many products.
        .down = space.choice("down", shape.unit.lengths).at_most(ceil_div(m, rows.front())).try_first(down),
        // Tiles of sums side by side. Each tile of rows that is loaded serves so many.
        .across = space.choice("across", shape.unit.lengths)
                      .at_most(ceil_div(n, shape.unit.columns))
                      .try_first(across),
        // Rows of outputs (where they are one row: groups of tiles) done with all panels of weights before
        // the next. Few: their pixels and sums stay in L1; many: weights are read from the outer caches less
        // often, and less of the windows twice. 0: all.
        .block = space.choice("block", blocks()).try_first(first.block),
        // Sums of one block of tiles finished before the next: they stay in L1, and few pixels are written at
        // a time. Else those of a panel: longer rows to write.
        .by_tile = space.flag("by_tile").try_first(one_row && by_rows),
        // Pixels packed for each block, just before: they stay in the cache, for those that two blocks read.
        .pack_block = space.flag("pack_block").try_first(first.pack_block),
        // Pixels read where they lie, channels innermost: no copy, for tiles of lines that are apart.
        .in_place = space.flag("in_place").try_first(first.in_place),
        // The next panel of weights is asked for while this one is used.
        .next_panel = space.flag("next_panel")
                          .try_first(streams_weight(shape, t) && shape.sums <= kMostPixels / 2 &&
                                     first_channels < w.out_channels),
    };
    if (!streams_weight(shape, t) || shape.sums > kMostPixels) space.require(k.next_panel == 0);
    const IntExpr channels = by_rows ? k.across * shape.unit.columns : k.rows * k.down;
    space.require(!k.next_panel || channels < w.out_channels);
    space.require(k.down * k.across + k.down + k.across <= shape.unit.registers);
    const IntExpr unit = by_rows ? k.rows * k.down : k.across * shape.unit.columns;
    // Panels are of whole blocks of channels.
    if (by_rows) space.require(channels % shape.out_block == 0);
    // One spelling for "all"; and no block is as long as all.
    if (shape.out_height == 1)
      space.require(k.block * unit < shape.out_width);
    else
      space.require(k.block == 0 ||
                    (k.block < shape.out_height &&
                     ceil_div((k.block - 1) * shape.row + shape.out_width, unit) * unit < shape.sums));
    if (w.batch == 1) space.require(k.block > 0 || k.pack_block == 0);
    if (!one_row) space.require(k.by_tile == 0);
    space.require(!k.in_place || k.pack_block == 0);
    // Nothing lies behind the last pixel.
    if (shape.reads_in_place())
      space.require(!k.in_place || (IntExpr(shape.sums) % unit == 0 &&
                                    (k.block == 0 || IntExpr(shape.sums) % (k.block * unit) == 0)));
    else
      space.require(k.in_place == 0);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override {
    return conv2d_tile::math(Shape(w, cpu::amx_tiles()));
  }
  Program compute_for(const Conv2dWorkload& w, const Target& t) const override {
    return conv2d_tile::math(Shape(w, cpu::tile_unit(t)));
  }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2dTileKnobs& k,
                const Config& c) const override {
    const Shape shape(w, cpu::tile_unit(t));
    const bool by_rows = shape.pixels_are_rows(), parallel = t.threads > 1;
    const cpu::TileBlock tiles{.rows = c[k.rows], .down = c[k.down], .across = c[k.across]};
    const int64_t channels = by_rows ? shape.unit.columns * tiles.across : tiles.rows * tiles.down,
                  unit = by_rows ? tiles.rows * tiles.down : shape.unit.columns * tiles.across;
    const Blocks blocks(shape, c[k.block], unit);
    const bool in_place = c[k.in_place], by_tile = c[k.by_tile];
    const Tensor pixels = in_place ? s.tensor("data") : pack_pixels(s, shape, blocks),
                 panels = pack_weight(s, w, shape, tiles, parallel), acc = s.tensor("acc");
    if (in_place) s.inline_compute(s.tensor("pixels"));
    s.pad_reduction(s.reduce_axes<3>(acc)[2], shape.step);

    const cpu::ImageAxes o = cpu::image_axes(s, s.tensor("out"), w.out_layout);
    if (s.refused()) return;
    const auto [panel, channel] = s.split(o.c, channels / shape.out_block);
    const auto [row_block, row] = s.split(o.h, blocks.rows);
    const auto [column_block, in_block] = s.split(o.w, blocks.columns);
    Axis tile, column = in_block;
    std::vector<Axis> order{row_block, column_block, panel};
    if (by_tile) {
      const SplitAxes parts = s.split(in_block, unit);
      tile = parts.outer;
      column = parts.inner;
      order.push_back(tile);
    }
    if (by_rows)
      order.insert(order.end(), {row, column, channel});
    else
      order.insert(order.end(), {channel, row, column});
    if (shape.out_block > 1) order.push_back(o.in_block);
    s.reorder(order);
    s.compute_at(acc, by_tile ? tile : panel);
    if (shape.out_block > 1) {
      s.unroll(channel);
      s.vectorize(o.in_block);
    } else {
      // Only now: acc is as long as these are. Two vectors at once become bytes in fewer instructions.
      const int64_t together = by_rows ? channels : unit, lanes = t.f32_lanes();
      const bool pairs = dtype_bytes(w.out_dtype()) == 1 && together % (2 * lanes) == 0;
      cpu::vectorize_by(s, by_rows ? channel : column, pairs ? 2 * lanes : lanes);
    }
    const Tensor &a = by_rows ? pixels : panels, &b = by_rows ? panels : pixels;
    if (by_tile)
      cpu::sum_through_memory(
          s, shape.unit, acc, a, b, tiles,
          c[k.next_panel] ? std::optional(cpu::NextPanel{panel, tile, /*of_a=*/!by_rows}) : std::nullopt);
    else
      sum_by_tiles(s, shape.unit, acc, a, b, tiles, by_rows, c[k.next_panel] ? &panel : nullptr);

    std::vector<Axis> outer{o.n, row_block, column_block};
    if (c[k.pack_block])
      s.compute_at(pixels, column_block);
    else
      outer.push_back(panel);
    if (!in_place) lay_out_pixels(s, pixels, shape, parallel && !c[k.pack_block]);
    if (shape.folds) lay_out_lines(s, shape, parallel);
    if (parallel) s.parallel(s.fuse(outer));
  }

 private:
  // Of pixels that are read in place also rows of which two tiles, or one, divide them: no tile reaches
  // beyond the last one.
  static std::vector<int64_t> rows_for(const Shape& shape, int64_t m) {
    std::vector<int64_t> rows = shape.unit.rows_for(m);
    if (!shape.reads_in_place()) return rows;
    for (const int64_t tiles : {shape.unit.first_length, int64_t{1}})
      for (int64_t r = shape.unit.rows; r > shape.unit.rows / 2; --r) {
        if (shape.sums % (r * tiles) != 0) continue;
        std::erase(rows, r);
        rows.insert(rows.begin(), r);
        return rows;
      }
    return rows;
  }

  // Where to begin: one block of tiles, and how many of them before the next panel.
  struct FirstConfig {
    cpu::TileUnit::FirstBlock tiles;
    int64_t block;
    bool pack_block, in_place;
  };
  static FirstConfig first_config(const Shape& shape, const std::vector<int64_t>& rows, int64_t n) {
    const bool by_rows = shape.pixels_are_rows();
    const int64_t m = by_rows ? shape.sums : shape.w.out_channels, row = rows.front();
    FirstConfig first{};
    first.tiles = first_tiles(shape, ceil_div(m, row), ceil_div(n, shape.unit.columns));
    if (shape.reads_in_place() && shape.sums % row == 0) {
      if (shape.sums % (row * first.tiles.down) != 0) first.tiles.down = 1;
      first.in_place = true;
      first.block = block_in_l1(shape, row * first.tiles.down);
      return first;
    }
    first.block =
        first_block(shape, by_rows ? row * first.tiles.down : shape.unit.columns * first.tiles.across);
    // Lines of images that fold are read by several blocks, and packed anew for each.
    first.pack_block = first.block > 0 && !shape.folds;
    return first;
  }
  // Blocks of tiles to begin with; panels are of whole blocks of channels.
  static cpu::TileUnit::FirstBlock first_tiles(const Shape& shape, int64_t down, int64_t across) {
    const cpu::TileUnit& unit = shape.unit;
    cpu::TileUnit::FirstBlock first = unit.first_block(down, across);
    if (shape.pixels_are_rows())
      first.across = round_up(first.across, ceil_div(shape.out_block, unit.columns));
    while (first.down > 1 && first.down * first.across + first.down + first.across > unit.registers)
      --first.down;
    return first;
  }
  // As many pixels, in groups of `unit`, as stay in half of L1 while all panels of weights pass.
  static int64_t block_in_l1(const Shape& shape, int64_t unit) {
    constexpr int64_t kBytes = 24 << 10;
    int64_t best = 1;
    for (const int64_t block : blocks())
      if (block > 0 && block * unit < shape.sums && shape.sums % (block * unit) == 0 &&
          block * unit * shape.terms * dtype_bytes(shape.w.dtype) <= kBytes)
        best = block;
    return unit < shape.sums ? best : 0;
  }

  // Panels of weights come from beyond L2. A core reads about 8 bytes a cycle from there, and AMX multiplies
  // 1024 of them, so reading takes 128 / pixels of the time, unless it is done meanwhile; less where a core
  // multiplies fewer.
  static bool streams_weight(const Shape& shape, const Target& t) {
    return shape.w.out_channels * shape.terms * shape.down.kernel * shape.across.kernel *
               dtype_bytes(shape.w.dtype) >
           t.l2_bytes / 2;
  }
  static constexpr int64_t kMostPixels = 1024;
  static std::vector<int64_t> blocks() { return {0, 1, 2, 4, 7, 8, 14, 16, 28, 32}; }
  // Pixels of a block, with its sums: in one row they stay in L1, in several what tiles compute between the
  // rows is little.
  static constexpr int64_t kFirstPixels = 256, kFirstPixelsOfRows = 1024;
  static int64_t first_block(const Shape& shape, int64_t unit) {
    int64_t best = 0;
    const int64_t most = shape.out_height == 1 ? kFirstPixels : kFirstPixelsOfRows;
    if (shape.sums <= most) return best;
    for (const int64_t block : blocks()) {
      if (block == 0) continue;
      const int64_t sums = Blocks(shape, block, unit).sums;
      const bool whole = shape.out_height == 1 || shape.out_height % block == 0;
      const bool is_all = shape.out_height == 1 ? block * unit >= shape.out_width : block >= shape.out_height;
      if (!is_all && whole && sums < shape.sums && (sums <= most || best == 0)) best = block;
    }
    return best;
  }

  static Tensor pack_pixels(Schedule& s, const Shape& shape, const Blocks& blocks) {
    const Tensor pixels = s.tensor("pixels");
    // What tiles read beyond the last output; and rows, if there are several, are whole.
    const int64_t reach = (shape.down.kernel - 1) * shape.down.dilation / shape.down.stride * shape.row +
                          (shape.across.kernel - 1) * shape.across.dilation / shape.across.stride;
    int64_t all = std::max(shape.pixels, blocks.last + blocks.sums + reach);
    if (shape.pixels > shape.row) all = round_up(all, shape.row);
    const bool by_rows = shape.pixels_are_rows();
    const int64_t inner = by_rows ? shape.step : shape.group;
    const Tensor packed = s.pack(pixels, {{0},
                                          {1},
                                          {2},
                                          {3, inner, false, by_rows ? 1 : shape.unit.groups},
                                          {4, 1, false, all},
                                          {3, inner, true}});
    s.inline_compute(pixels);
    if (shape.lays_out() && !shape.folds) s.inline_compute(s.tensor("phases"));
    return packed;
  }

  static Tensor pack_weight(Schedule& s, const Conv2dWorkload& w, const Shape& shape,
                            const cpu::TileBlock& tiles, bool parallel) {
    const cpu::TileUnit& unit = shape.unit;
    std::vector<PackDim> dims;
    if (shape.pixels_are_rows())
      dims = {{0, unit.packed_columns(tiles), false, unit.packs_blocks ? 1 : tiles.across},
              {2},
              {3},
              {1, shape.group, false, unit.groups},
              {0, unit.packed_columns(tiles), true},
              {1, shape.group, true}};
    else
      dims = {{0, unit.packed_rows(tiles), false, unit.packs_blocks ? 1 : tiles.down},
              {2},
              {3},
              {1, shape.step},
              {0, unit.packed_rows(tiles), true},
              {1, shape.step, true}};
    const Tensor weight = s.tensor(shape.folds ? "taps" : "weight"), packed = s.pack(weight, dims);
    const bool constant = Workload(w).is_constant("weight");
    if (shape.folds) {
      s.inline_compute(weight);
      if (constant) s.precompute(packed);
    }
    if (parallel && !s.refused() && !constant) s.parallel(s.axes(packed).front());
    return packed;
  }

  // The block of sums `acc` in memory, by blocks of tiles. `asks`: the loop over panels of weights whose next
  // one is asked for; null: none is.
  static void sum_by_tiles(Schedule& s, const cpu::TileUnit& unit, const Tensor& acc, const Tensor& a,
                           const Tensor& b, const cpu::TileBlock& tiles, bool by_rows, const Axis* asks) {
    const Tensor sums = s.cache_write(acc, MemoryScope::kFragment);
    const std::vector<Axis> axes = s.spatial_axes(acc);  // n, q and oc
    if (s.refused()) return;
    Axis row = axes[1], column = axes[2], tile;
    const SplitAxes parts =
        by_rows ? s.split(row, tiles.rows * tiles.down) : s.split(column, unit.columns * tiles.across);
    (by_rows ? row : column) = parts.inner;
    tile = parts.outer;
    s.reorder({tile, row, column});
    s.compute_at(sums, tile);
    cpu::sum_in_tiles(
        s, unit, sums, a, b, tiles,
        asks != nullptr ? std::optional(cpu::NextPanel{*asks, tile, /*of_a=*/!by_rows}) : std::nullopt);
    cpu::by_tiles(s, {}, {row, column}, {tiles.rows, unit.columns}, cpu::tile_store(unit, acc, tiles));
  }

  // Loops of the packed pixels.
  static void lay_out_pixels(Schedule& s, const Tensor& packed, const Shape& shape, bool parallel) {
    const std::vector<Axis> axes = s.axes(packed);  // n, phase, phase, ic, q, ic inside
    if (s.refused()) return;
    const Axis column = shape.pixels > shape.row ? s.split(axes[4], shape.row).inner : axes[4];
    const int64_t together = side_by_side(shape);
    if (together > 1 && (shape.pixels_are_rows() || !shape.folds)) {
      cpu::vectorize_by(s, axes[5], std::min(together, s.extent(axes[5])));
    } else {
      const Axis pixel = s.split(column, std::min(kStrip, s.extent(column))).inner;
      s.vectorize(axes[5]);
      s.vectorize_rows(pixel);
    }
    if (parallel) s.parallel(s.fuse({axes[0], axes[1], axes[2], axes[3]}));
  }
  // Terms of a pixel that lie side by side.
  static int64_t side_by_side(const Shape& shape) {
    if (shape.folds)
      return shape.unit.groups > 1 && shape.w.dilation[1] == 1 ? std::min(shape.fold.slot, shape.step) : 1;
    return is_channels_last(shape.w.layout) ? shape.step : channel_block(shape.w.layout);
  }

  // Loops of the lines: planes are woven, else vectors copy them.
  static void lay_out_lines(Schedule& s, const Shape& shape, bool parallel) {
    const auto [n, line, element] = s.axes<3>(s.tensor("lines"));
    if (is_planar(shape.w.layout) && shape.fold.channels > 1) {
      const auto [column, channel] = s.split(element, shape.fold.channels);
      const Axis pixel = s.split(column, kStrip).inner;
      s.vectorize(channel);
      s.vectorize_rows(pixel);
    } else {
      s.vectorize(s.split(element, kMostCopied).inner);
    }
    if (parallel) s.parallel(s.fuse({n, line}));
  }

  static constexpr int64_t kStrip = 16;       // pixels that are woven at a time
  static constexpr int64_t kMostCopied = 64;  // elements that are copied at a time
};

}  // namespace

const AnyTemplate& conv2d_tile_cpu() {
  static const Conv2dTileCpu instance;
  return instance;
}

}  // namespace tuner
