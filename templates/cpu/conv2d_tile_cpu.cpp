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
//                  [n][phase][phase][IC/step][q][step]   where out is blocked: the rows of tiles
//                  or in groups (AMX: of 32 bits):
//                  [n][phase][phase][IC/D][q][D]         where out is NCHW: the columns of tiles
//   weight packed  the other way around, in tiles: [OC/16][KH][KW][IC/D][16][D] or
//                  [OC/R][KH][KW][IC/step][R][step]; by the packing entry when constant
//
//   parallel n, block of pixels
//     pack the pixels that the block reads (`pack_block`; else all of them before, and panels are parallel, too)
//     for panel of channels
//       for tiles of pixels in block
//         sums over kh, kw, ic: `down` x `across` tiles, into acc, which stays in L1    (cpu_tiles.h);
//         part of the next panel is asked for meanwhile (`next_panel`)
//       write acc: the epilogue; vectors of channels (blocked) or of pixels (NCHW)
//
// Few channels of a plain image: taps count as channels (ic, kh, kw as one axis), so that steps are full.
// Declines float32 and float16, groups, targets without tiles, and what leaves most of a tile empty.
#include <algorithm>
#include <optional>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"
#include "templates/cpu/cpu_tiles.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using te::Indices;

struct Conv2dTileKnobs {
  ChoiceKnob rows, down, across, block;
  FlagKnob pack_block, next_panel;
};

// One axis of the window.
struct Taps {
  Taps(int64_t kernel_n, int64_t stride_n, int64_t dilation_n, int64_t in_n, int64_t low, int64_t out_n)
      : kernel(kernel_n),
        stride(stride_n),
        dilation(dilation_n),
        phases(kernel > 1 ? stride : 1),
        plane(out_n + (kernel - 1) * dilation / stride),
        padding(low),
        in(in_n) {}

  Expr phase(const Expr& k) const { return floor_mod(k * dilation, stride); }
  Expr distance(const Expr& k) const { return floor_div(k * dilation, stride); }
  // Where element `i` of a phase is read, and whether it is of the image; undefined: all are.
  Expr at(const Expr& phase, const Expr& i) const { return i * stride + phase - padding; }
  Expr inside(const Expr& phase, const Expr& i) const {
    Expr result;
    if (padding > 0) result = i * stride + phase >= padding;
    if ((plane - 1) * stride + phases - 1 - padding >= in) {
      const Expr below = i * stride + phase < padding + in;
      result = result.defined() ? result && below : below;
    }
    return result;
  }

  int64_t kernel, stride, dilation;
  int64_t phases, plane;  // phases that are read, and how many elements of each
  int64_t padding, in;
};

// One task, as this template sees it.
struct Shape {
  Shape(const Conv2dWorkload& task, const cpu::TileUnit& of)
      : w(flat(task)),
        unit(of),
        down(w.kernel_height, w.stride[0], w.dilation[0], w.in_height, w.padding[0], w.out_height()),
        across(w.kernel_width, w.stride[1], w.dilation[1], w.in_width, w.padding[1], w.out_width()),
        step(unit.step(w.dtype)),
        group(unit.group(w.dtype)),
        out_block(channel_block(w.out_layout)) {
    const int64_t taps = w.kernel_height * w.kernel_width;
    folds = channel_block(w.layout) == 1 && taps > 1 &&
            round_up(w.in_channels, step) * taps >= 2 * round_up(w.in_channels * taps, step);
    terms = folds ? w.in_channels * taps : w.in_channels;
    taps_down = folds ? 1 : w.kernel_height;
    taps_across = folds ? 1 : w.kernel_width;
    row = folds ? w.out_width() : across.plane;
    pixels = folds ? w.out_height() * row : down.plane * row;
    sums = (w.out_height() - 1) * row + w.out_width();
    const bool one_row = row == w.out_width();
    out_height = one_row ? 1 : w.out_height();
    out_width = one_row ? sums : w.out_width();
  }

  bool lays_out() const {
    return w.padding != std::array<int64_t, 4>{} || down.stride != 1 || across.stride != 1;
  }
  bool pixels_are_rows() const { return out_block > 1; }
  std::vector<int64_t> out_shape() const {
    return image_shape(w.out_layout, w.batch, w.out_channels, out_height, out_width);
  }

  Conv2dWorkload w;
  const cpu::TileUnit& unit;
  Taps down, across;
  int64_t step, group, out_block;
  bool folds = false;  // taps count as channels
  int64_t terms = 0;   // channels, or taps and channels, of one step after the other
  int64_t taps_down = 0, taps_across = 0;
  int64_t row = 0;                        // pixels from one row of outputs to the next
  int64_t pixels = 0, sums = 0;           // that are read, and computed, of an image and phase
  int64_t out_height = 0, out_width = 0;  // one row where rows of outputs follow each other

 private:
  // Pixels that nothing sets apart are one row.
  static Conv2dWorkload flat(Conv2dWorkload w) {
    if (w.kernel_height == 1 && w.kernel_width == 1 && w.padding == std::array<int64_t, 4>{} &&
        w.stride == std::array<int64_t, 2>{1, 1}) {
      w.in_width *= w.in_height;
      w.in_height = 1;
    }
    return w;
  }
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
  int version() const override { return 2; }

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
      return declined("needs a blocked output, got ", w.out_layout,
                      ": AArch64 has no product of signed by unsigned bytes");
    if (shape.pixels_are_rows() && w.out_channels < shape.unit.columns)
      return declined("needs ", shape.unit.columns, " output channels or more in layout ", w.out_layout,
                      ", got ", w.out_channels);
    if (shape.out_width < 2) return declined("needs 2 output columns or more, got ", shape.out_width);
    if (const int64_t few = shape.unit.few_terms(w.dtype); shape.terms <= few)
      return declined("needs more than ", few, " input channels, got ", w.in_channels);
    return supported();
  }

  Conv2dTileKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const Shape shape(w, cpu::tile_unit(t));
    const bool by_rows = shape.pixels_are_rows();
    const int64_t m = by_rows ? shape.sums : w.out_channels, n = by_rows ? w.out_channels : shape.sums;
    const std::vector<int64_t> rows = shape.unit.rows_for(m);
    const auto [down, across] =
        first_tiles(shape, ceil_div(m, rows.front()), ceil_div(n, shape.unit.columns));
    const int64_t block = first_block(shape, by_rows ? rows.front() * down : shape.unit.columns * across);
    const int64_t first_channels = by_rows ? shape.unit.columns * across : rows.front() * down;
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
        .block = space.choice("block", blocks()).try_first(block),
        // Pixels packed for each block, just before: they stay in the cache, for those that two blocks read.
        .pack_block = space.flag("pack_block").try_first(block > 0),
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
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return math(Shape(w, cpu::amx_tiles())); }
  Program compute_for(const Conv2dWorkload& w, const Target& t) const override {
    return math(Shape(w, cpu::tile_unit(t)));
  }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2dTileKnobs& k,
                const Config& c) const override {
    const Shape shape(w, cpu::tile_unit(t));
    const bool by_rows = shape.pixels_are_rows(), parallel = t.threads > 1;
    const cpu::TileBlock tiles{.rows = c[k.rows], .down = c[k.down], .across = c[k.across]};
    const int64_t channels = by_rows ? shape.unit.columns * tiles.across : tiles.rows * tiles.down,
                  unit = by_rows ? tiles.rows * tiles.down : shape.unit.columns * tiles.across;
    const Blocks blocks(shape, c[k.block], unit);
    const Tensor pixels = pack_pixels(s, shape, blocks), panels = pack_weight(s, w, shape, tiles, parallel);
    const Tensor acc = s.tensor("acc");
    s.pad_reduction(s.reduce_axes<3>(acc)[2], shape.step);

    std::vector<Axis> o = s.axes(s.tensor("out"));  // n, oc, oh, ow[, oc in its block]
    if (s.refused()) return;
    const auto [panel, channel] = s.split(o[1], channels / shape.out_block);
    const auto [row_block, row] = s.split(o[2], blocks.rows);
    const auto [column_block, column] = s.split(o[3], blocks.columns);
    if (by_rows)
      s.reorder({row_block, column_block, panel, row, column, channel, o[4]});
    else
      s.reorder({row_block, column_block, panel, channel, row, column});
    s.compute_at(acc, panel);
    if (by_rows) {
      s.unroll(channel);
      s.vectorize(o[4]);
    } else {
      cpu::vectorize_by(s, column, t.f32_lanes());  // only now: acc is as long as the columns are
    }
    sum_by_tiles(s, shape.unit, acc, by_rows ? pixels : panels, by_rows ? panels : pixels, tiles, by_rows,
                 c[k.next_panel] ? &panel : nullptr);

    std::vector<Axis> outer{o[0], row_block, column_block};
    if (c[k.pack_block])
      s.compute_at(pixels, column_block);
    else
      outer.push_back(panel);
    lay_out_pixels(s, pixels, shape, parallel && !c[k.pack_block]);
    if (parallel) s.parallel(s.fuse(outer));
  }

 private:
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

  // Panels of weights come from beyond L2. A core reads about 8 bytes a cycle from there, and AMX multiplies
  // 1024 of them, so reading takes 128 / pixels of the time, unless it is done meanwhile; less where a core
  // multiplies fewer.
  static bool streams_weight(const Shape& shape, const Target& t) {
    return shape.w.out_channels * shape.terms * shape.taps_down * shape.taps_across *
               dtype_bytes(shape.w.dtype) >
           t.l2_bytes / 2;
  }
  static constexpr int64_t kMostPixels = 1024;
  static std::vector<int64_t> blocks() { return {0, 1, 2, 4, 7, 8, 14, 16, 28, 32}; }
  // Pixels of a block that stay in L1 with their sums.
  static constexpr int64_t kFirstPixels = 256;
  static int64_t first_block(const Shape& shape, int64_t unit) {
    int64_t best = 0;
    if (shape.sums <= kFirstPixels) return best;
    for (const int64_t block : blocks()) {
      if (block == 0) continue;
      const int64_t sums = Blocks(shape, block, unit).sums;
      const bool whole = shape.out_height == 1 || shape.out_height % block == 0;
      const bool is_all = shape.out_height == 1 ? block * unit >= shape.out_width : block >= shape.out_height;
      if (!is_all && whole && sums < shape.sums && (sums <= kFirstPixels || best == 0)) best = block;
    }
    return best;
  }

  // The image, padded and apart by phases: [n, ic, phase, phase, row, column], channels as in its layout.
  static Buffer phases(te::Builder& b, const Shape& shape, const Buffer& data) {
    const Conv2dWorkload& w = shape.w;
    std::vector<int64_t> dims =
        image_shape(w.layout, w.batch, w.in_channels, shape.down.plane, shape.across.plane);
    dims.insert(dims.begin() + 2, {shape.down.phases, shape.across.phases});
    return b.compute("phases", dims, [&](const Indices& i) {
      Indices from = i;
      from.erase(from.begin() + 2, from.begin() + 4);
      from[2] = shape.down.at(i[2], i[4]);
      from[3] = shape.across.at(i[3], i[5]);
      const Expr rows = shape.down.inside(i[2], i[4]), columns = shape.across.inside(i[3], i[5]);
      const Expr value = load(data, std::move(from));
      if (!rows.defined() && !columns.defined()) return value;
      return select(!rows.defined()     ? columns
                    : columns.defined() ? rows && columns
                                        : rows,
                    value, zero_of(data->dtype));
    });
  }

  static Program math(const Shape& shape) {
    const Conv2dWorkload& w = shape.w;
    const DType sums = sum_dtype(w.dtype);
    te::Builder b("conv2d", sums);
    const auto argument = [&](const std::string& name, std::vector<int64_t> dims, DType dtype) {
      return Workload(w).is_constant(name) ? b.constant(name, std::move(dims), dtype)
                                           : b.input(name, std::move(dims), dtype);
    };
    const Buffer data = argument(
        "data", image_shape(w.layout, w.batch, w.in_channels, w.in_height, w.in_width), left_dtype(w.dtype));
    const Buffer weight =
        argument("weight", {w.out_channels, shape.terms, shape.taps_down, shape.taps_across}, w.dtype);
    const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, shape.out_shape());
    const Buffer image = shape.lays_out() ? phases(b, shape, data) : data;
    const int64_t down = shape.folds ? 1 : shape.down.phases, across = shape.folds ? 1 : shape.across.phases;
    const Buffer pixels = b.compute("pixels", {w.batch, down, across, shape.terms, shape.pixels},
                                    [&](const Indices& i) { return pixel(shape, image, i); },
                                    BufferRole::kIntermediate, {"n", "fh", "fw", "ic", "q"});
    const bool by_rows = shape.pixels_are_rows();
    std::vector<int64_t> dims{w.batch, shape.sums, w.out_channels};
    std::vector<std::string> names{"n", "q", "oc"};
    if (!by_rows) std::swap(dims[1], dims[2]), std::swap(names[1], names[2]);
    const Buffer acc = b.reduce(
        "acc", dims, {{"kh", shape.taps_down}, {"kw", shape.taps_across}, {"ic", shape.terms}},
        ReduceOp::kSum,
        [&](const Indices& i, const Indices& r) {
          const Expr &q = i[by_rows ? 1 : 2], &oc = i[by_rows ? 2 : 1];
          const Expr at = q + shape.down.distance(r[0]) * shape.row + shape.across.distance(r[1]);
          const Expr x = cast(sums, load(pixels,
                                         {i[0], shape.down.phase(r[0]), shape.across.phase(r[1]), r[2], at})),
                     y = cast(sums, load(weight, {oc, r[2], r[0], r[1]}));
          return by_rows ? x * y : y * x;
        },
        BufferRole::kIntermediate, names);
    b.compute(
        "out", shape.out_shape(),
        [&](const Indices& i) {
          const Expr oc = shape.out_block == 1 ? i[1] : i[1] * shape.out_block + i[4];
          const Expr q = i[2] * shape.row + i[3];
          return finished(epilogue, load(acc, by_rows ? Indices{i[0], q, oc} : Indices{i[0], oc, q}), oc, i);
        },
        BufferRole::kOutput,
        shape.out_block == 1 ? std::vector<std::string>{"n", "oc", "oh", "ow"}
                             : std::vector<std::string>{"n", "oc", "oh", "ow", "ocb"});
    return b.finish();
  }

  // pixels[n, phase, phase, channel, q] out of the image, or its phases.
  static Expr pixel(const Shape& shape, const Buffer& image, const Indices& i) {
    const Conv2dWorkload& w = shape.w;
    Expr ic = i[3], fh = i[1], fw = i[2], row = floor_div(i[4], shape.row),
         column = floor_mod(i[4], shape.row);
    if (shape.folds) {
      const Expr kh = floor_mod(floor_div(ic, w.kernel_width), w.kernel_height),
                 kw = floor_mod(ic, w.kernel_width);
      ic = floor_div(ic, w.kernel_height * w.kernel_width);
      fh = shape.down.phase(kh);
      fw = shape.across.phase(kw);
      row = row + shape.down.distance(kh);
      column = column + shape.across.distance(kw);
    }
    Indices at = image_index(w.layout, i[0], ic, row, column);
    if (shape.lays_out()) at.insert(at.begin() + 2, {fh, fw});
    return load(image, std::move(at));
  }

  static Tensor pack_pixels(Schedule& s, const Shape& shape, const Blocks& blocks) {
    const Tensor pixels = s.tensor("pixels");
    // What tiles read beyond the last output; and rows, if there are several, are whole.
    const int64_t reach =
        shape.folds ? 0
                    : (shape.down.kernel - 1) * shape.down.dilation / shape.down.stride * shape.row +
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
    const Tensor packed = s.pack(s.tensor("weight"), dims);
    if (parallel && !s.refused() && !Workload(w).is_constant("weight")) s.parallel(s.axes(packed).front());
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

  // Loops of the packed pixels, and of the phases where these are a stage.
  static void lay_out_pixels(Schedule& s, const Tensor& packed, const Shape& shape, bool parallel) {
    constexpr int64_t kStrip = 16, kMost = 64;
    const std::vector<Axis> axes = s.axes(packed);  // n, phase, phase, ic, q, ic inside
    if (s.refused()) return;
    const Axis column = shape.pixels > shape.row ? s.split(axes[4], shape.row).inner : axes[4];
    const int64_t in_block = channel_block(shape.w.layout);
    if (in_block > 1) {
      const int64_t lanes = std::min(in_block, s.extent(axes[5]));
      cpu::vectorize_by(s, axes[5], lanes);
    } else {
      const Axis pixel = s.split(column, std::min(kStrip, s.extent(column))).inner;
      s.vectorize(axes[5]);
      s.vectorize_rows(pixel);
    }
    if (parallel) s.parallel(s.fuse({axes[0], axes[1], axes[2], axes[3]}));
    if (!shape.folds || !shape.lays_out()) return;
    const std::vector<Axis> image = s.axes(s.tensor("phases"));
    s.vectorize(s.split(image.back(), std::min(kMost, s.extent(image.back()))).inner);
    if (parallel) s.parallel(s.fuse({image[0], image[1], image[2], image[3]}));
  }
};

}  // namespace

const AnyTemplate& conv2d_tile_cpu() {
  static const Conv2dTileCpu instance;
  return instance;
}

}  // namespace tuner
