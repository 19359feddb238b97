// conv2d_direct_cpu: direct convolution on any CPU with vectors.
//
//   out[n, oc, oh, ow] = act(sum over ic, kh, kw of data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left]
//                                                   * weight[oc, ic, kh, kw] + bias[oc] + residual[...])
//
//   weight packed in panels of NR channels, [OC/NR][IC/c][KH][KW][c][NR], NR a tile or a vector of them:
//       by the packing entry when constant, else by a stage before
//   parallel n, oh_block, oc_outer, oh_outer
//     for ow_outer
//       for ic_outer, kh                 rows of the window that lie in the padding are passed over,
//         for kw, ic_inner               columns too: tiles at the border are code of their own, so that
//           unrolled oh_inner, ow_inner  nothing is padded and no term is multiplied by 0
//             unrolled oc_vector         one broadcast of data times each vector of the weights: one
//               vectorized lane          accumulator register each
//       write the tile: the epilogue; to NCHW transposed in registers
//
// With unroll_kw, kw is innermost, around the tile. data and out may each be in any layout: data is read
// where it lies, one element at a time. Serves stride, padding, dilation, groups; tiles need not divide the
// output. Declines depthwise convolution (a template of its own).
//
// bfloat16 and int8: ic counts groups of D = 2 or 4 channels, side by side, and a lane adds the dot product
// of one:
//   weight packed [OC/NR][KH][KW][IC/D][NR][D], read in that order: all channels of a tap in one pass
//   data packed   [N][IC/D][H][W][D], where it is NCHW: by a stage before; zeros fill up the last group. In
//                 NHWC groups lie side by side; a stage before fills up the last one, if it is not whole
#include <algorithm>

#include "compiler_core/te/te.h"
#include "templates/cpu/conv2d_cpu_tile.h"
#include "templates/cpu/cpu_images.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {

using namespace conv2d_cpu;

namespace {

struct Conv2dDirectKnobs {
  SplitKnob tile_oc, tile_oh, tile_ow, block_ic;
  ChoiceKnob block_oh, unroll_ic;
  FlagKnob narrow_panels, unroll_kw, next_panel;
};

class Conv2dDirectCpu final : public ScheduleTemplate<Conv2dWorkload, Conv2dDirectKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_direct_cpu"; }
  int version() const override { return 3; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (cpu::dot_group(w.dtype) == 0) return declined("needs float32, bfloat16 or int8, got ", w.dtype);
    if (w.groups > 1 && w.groups == w.in_channels && w.groups == w.out_channels)
      return declined("needs more than one channel in a group, got groups = ", w.groups, " of ",
                      w.in_channels, " channels");
    if (const int64_t dot = cpu::dot_group(w.dtype); w.groups > 1 && w.in_channels / w.groups % dot != 0)
      return declined("needs a multiple of ", dot, " ", w.dtype, " channels in a group, got ",
                      w.in_channels / w.groups);
    return supported();
  }

  Conv2dDirectKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const Shape shape(w, t);
    const int64_t registers = t.vector_registers();
    const Tile first = first_tile(shape, registers - cpu::spare_registers(t, shape.dot));
    const int64_t pixels = w.out_height() * w.out_width();
    const bool first_asks = cpu::asks_ahead_first(pixels) && first.vectors * shape.lanes < shape.out_group &&
                            first.oh * first.ow < pixels;
    Conv2dDirectKnobs k{
        // Output channels of a tile: whole vectors. More use each broadcast of data more often.
        .tile_oc = space.split("tile_oc", shape.out_group)
                       .multiples_of(shape.lanes)
                       .at_most(4 * shape.lanes)
                       .try_first(first.vectors * shape.lanes),
        // Pixels of a tile, tile_oh x tile_ow. More use each vector of weights more often; too many spill to
        // the stack. One row a tile needs least code at the borders.
        .tile_oh = space.split("tile_oh", w.out_height()).at_most(7).try_first(first.oh),
        .tile_ow = space.split("tile_ow", w.out_width()).at_most(registers - 2).try_first(first.ow),
        // Input channels (groups of them) of one pass over the window. Few: their pixels stay in L1 from tap
        // to tap; many: inner loops are long.
        .block_ic = space.split("block_ic", shape.in_group)
                        .multiples_of(shape.in_block)
                        .divisors_only()
                        .try_first(shape.dot > 1 ? shape.in_group
                                                 : std::max<int64_t>(shape.in_block, 64 / shape.in_block)),
        // Rows of tiles that all channels of out pass over before the next rows: data stay in the cache
        // against the weights of a panel. 0: all rows.
        .block_oh = space.choice("block_oh", {0, 1, 2, 4, 8, 16}).try_first(0),
        // Shares the loop's own instructions; the code grows.
        .unroll_ic = space.choice("unroll_ic", {1, 2, 4}).try_first(first_unroll(shape, first)),
        // Weights packed a vector wide in place of a tile wide: as many streams as vectors, which the
        // prefetchers follow faster when the weights come from the outer caches.
        .narrow_panels = space.flag("narrow_panels").try_first(false),
        // kw innermost: neighbouring taps read the same pixels, loaded once while registers are left.
        .unroll_kw = space.flag("unroll_kw").try_first(false),
        // The weights of the next panel are asked for while this one is used.
        .next_panel = space.flag("next_panel").try_first(first_asks),
    };
    const IntExpr channels = k.tile_oc.inner(), rows = k.tile_oh.inner(), columns = k.tile_ow.inner();
    const IntExpr vectors = channels / shape.lanes, accumulators = rows * columns * vectors;
    // Accumulators, the weights and one broadcast must fit the registers.
    space.require(accumulators + vectors + 1 <= registers);
    // Longer code only compiles longer.
    const IntExpr body = accumulators * k.unroll_ic;
    space.require(body * (k.unroll_kw * (w.kernel_width - 1) + 1) <= kMaxBody);
    space.require(body * shape.bodies<IntExpr>(channels, rows, columns, k.unroll_kw) <= kMaxKernel);
    // Tiles of a row as equal as can be, never a small rest; so the rows.
    space.require(ceil_div(w.out_width(), k.tile_ow.outer()) == columns);
    space.require(ceil_div(w.out_height(), k.tile_oh.outer()) == rows);
    if (w.groups > 1) space.require(shape.out_group % channels == 0);
    space.require(channels % shape.out_block == 0 || shape.out_block % channels == 0);
    if (shape.dot > 1) space.require(k.block_ic.outer() == 1);
    // One spelling for "all rows".
    space.require(k.block_oh < k.tile_oh.outer());
    if (w.kernel_width == 1) space.require(k.unroll_kw == 0);
    space.require(!k.narrow_panels || vectors >= 2);
    if (!cpu::may_ask_ahead(pixels)) space.require(k.next_panel == 0);
    space.require(!k.next_panel || k.tile_oc.outer() >= 2);
    space.require(!k.next_panel || k.tile_oh.outer() * k.tile_ow.outer() >= 2);
    // Whole blocks only.
    if (shape.in_block > 1)
      space.require(shape.in_block % k.unroll_ic == 0);
    else
      space.require(k.block_ic.inner() % k.unroll_ic == 0);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override {
    return conv2d_of_filled(w, cpu::dot_group(w.dtype));
  }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2dDirectKnobs& k,
                const Config& c) const override {
    const Shape shape(w, t);
    const bool parallel = t.threads > 1;
    if (pads(w)) s.inline_compute(s.tensor("padded"));
    const int64_t panel = c[k.narrow_panels] ? shape.lanes : c[k.tile_oc].inner;
    Tensor panels;
    if (shape.dot > 1) {
      if (is_planar(w.layout))
        cpu::group_channels(s, s.tensor(fills(w) ? "filled" : "data"), shape.dot, parallel);
      if (fills(w)) fill_channels(s, w, parallel);
      panels = lay_out_groups(s, w, panel, shape.dot, c[k.unroll_kw], parallel);
    } else {
      panels = lay_out_weight(s, w, panel, c[k.block_ic].inner, c[k.unroll_kw], parallel);
    }

    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(acc, MemoryScope::kRegister);
    const OutAxes o = split_out(s, out, w.out_layout, shape, c[k.tile_oc].inner);
    const auto [oh_outer, oh_inner] = s.split(o.oh, c[k.tile_oh].inner);
    const auto [ow_outer, ow_inner] = s.split(o.ow, c[k.tile_ow].inner);
    std::vector<Axis> outer;
    if (c[k.block_oh] > 0) {
      const auto [block, row] = s.split(oh_outer, c[k.block_oh]);
      outer = {o.n, block, o.oc, row};
    } else {
      outer = {o.n, o.oc, oh_outer};
    }
    std::vector<Axis> order = outer;
    order.push_back(ow_outer);
    order.push_back(oh_inner);
    const bool rows_of_pixels = shape.planar_out;
    if (rows_of_pixels)
      order.insert(order.end(), {o.vector, o.lane, ow_inner});
    else
      order.insert(order.end(), {ow_inner, o.vector, o.lane});
    s.reorder(order);
    s.compute_at(acc, ow_outer);
    s.unroll(oh_inner);
    s.unroll(o.vector);
    if (!rows_of_pixels) s.unroll(ow_inner);
    s.vectorize(rows_of_pixels ? ow_inner : o.lane);
    if (rows_of_pixels && shape.lanes > 1) s.vectorize_rows(o.lane);
    accumulate(s, acc, shape, k, c, pads(w));
    if (c[k.next_panel])
      s.prefetch_next(panels, acc, o.oc, c[k.tile_oh].outer >= c[k.tile_ow].outer ? outer.back() : ow_outer);
    if (parallel) s.parallel(s.fuse(outer));
  }

 private:
  static constexpr int64_t kMostFilled = 64;  // bytes or words of a pixel that are copied at once

  // Where lanes are taken several channels are written out, if the code stays short and they divide the
  // block.
  static int64_t first_unroll(const Shape& shape, const Tile& first) {
    const int64_t body = first.vectors * first.oh * first.ow;
    const int64_t bodies = shape.bodies<int64_t>(first.vectors * shape.lanes, first.oh, first.ow, 0);
    int64_t block = shape.in_block;
    if (block == 1) block = shape.in_group;
    if (shape.in_block == 1 && shape.dot == 1)
      for (block = std::min<int64_t>(block, 64); shape.in_group % block != 0;) --block;
    int64_t unroll = cpu::first_unroll(shape.broadcasts, body, block);
    while (block % unroll != 0 || (unroll > 1 && unroll * body * bodies > kMaxKernel)) unroll /= 2;
    return unroll;
  }

  // Whether the last group of channels is not whole.
  static bool fills(const Conv2dWorkload& w) {
    return w.groups == 1 && w.in_channels % cpu::dot_group(w.dtype) != 0;
  }

  // The image with whole groups of channels: where it is grouped by a copy, that copy fills them up.
  static void fill_channels(Schedule& s, const Conv2dWorkload& w, bool parallel) {
    const Tensor filled = s.tensor("filled");
    if (is_planar(w.layout)) return s.inline_compute(filled);
    const cpu::ImageAxes image = cpu::image_axes(s, filled, w.layout);
    s.vectorize(s.split(image.c, kMostFilled).inner);
    if (parallel) s.parallel(s.fuse({image.n, image.h}));
  }

  struct OutAxes {
    Axis n, oc, oh, ow, vector, lane;
  };
  // The channels of out as tiles, vectors of a tile and lanes.
  static OutAxes split_out(Schedule& s, const Tensor& out, std::string_view layout, const Shape& shape,
                           int64_t channels) {
    const cpu::ImageAxes image = cpu::image_axes(s, out, layout);
    OutAxes o = {.n = image.n, .oc = image.c, .oh = image.h, .ow = image.w};
    Axis inside;
    int64_t lanes = shape.lanes;
    if (shape.out_block == 1) {
      const auto [outer, inner] = s.split(image.c, channels);
      o.oc = outer;
      inside = inner;
    } else {
      lanes = std::min(lanes, shape.out_block);
      if (channels < shape.out_block) {
        const auto [part, inner] = s.split(image.in_block, channels);
        s.reorder({o.n, o.oc, part, o.oh, o.ow, inner});
        o.oc = s.fuse({o.oc, part});
        inside = inner;
      } else {
        const auto [outer, block] = s.split(image.c, channels / shape.out_block);
        s.reorder({o.n, outer, o.oh, o.ow, block, image.in_block});
        o.oc = outer;
        inside = s.fuse({block, image.in_block});
      }
    }
    const SplitAxes vectors = s.split(inside, lanes);
    o.vector = vectors.outer;
    o.lane = vectors.inner;
    return o;
  }

  static Tensor lay_out_weight(Schedule& s, const Conv2dWorkload& w, int64_t panel, int64_t block_ic,
                               bool kw_innermost, bool parallel) {
    std::vector<PackDim> dims = {{0, panel}, {1, block_ic}, {2}};
    if (!kw_innermost) dims.push_back({3});
    if (block_ic > 1) dims.push_back({1, block_ic, true});
    if (kw_innermost) dims.push_back({3});
    if (panel > 1) dims.push_back({0, panel, true});
    return pack_weight(s, w, dims, parallel);
  }
  static Tensor lay_out_groups(Schedule& s, const Conv2dWorkload& w, int64_t panel, int64_t dot,
                               bool kw_innermost, bool parallel) {
    std::vector<PackDim> dims = {{0, panel}, {2}};
    if (kw_innermost)
      dims.insert(dims.end(), {{1, dot}, {3}});
    else
      dims.insert(dims.end(), {{3}, {1, dot}});
    if (panel > 1) dims.push_back({0, panel, true});
    dims.push_back({1, dot, true});
    return pack_weight(s, w, dims, parallel);
  }
  static Tensor pack_weight(Schedule& s, const Conv2dWorkload& w, const std::vector<PackDim>& dims,
                            bool parallel) {
    const Tensor weight = s.tensor(fills(w) ? "filled_weight" : "weight"), packed = s.pack(weight, dims);
    const bool constant = Workload(w).is_constant("weight");
    if (fills(w)) {
      s.inline_compute(weight);
      if (constant) s.precompute(packed);
    }
    if (!s.refused() && !constant && parallel) s.parallel(s.axes(packed).front());
    return packed;
  }

  // The stage of the tile, inside its outer loops.
  static void accumulate(Schedule& s, const Tensor& acc, const Shape& shape, const Conv2dDirectKnobs& k,
                         const Config& c, bool skips) {
    const auto [n, oh, ow, oc] = s.inner_axes<4>(acc);
    auto [ic, kh, kw] = s.reduce_axes<3>(acc);
    const auto [vector, lane] = s.split(oc, shape.lanes);
    Axis in_group;
    if (shape.dot > 1) {
      const SplitAxes groups = s.split(ic, shape.dot);
      ic = groups.outer;
      in_group = groups.inner;
    }
    const auto [ic_outer, ic_inner] = s.split(ic, c[k.block_ic].inner);
    const auto [ic_block, ic_in_block] =
        s.split(ic_inner, shape.in_block > 1 ? shape.in_block : c[k.unroll_ic]);
    std::vector<Axis> order = {ic_outer, kh};
    if (!c[k.unroll_kw]) order.push_back(kw);
    order.push_back(ic_block);
    Axis ic_unrolled = ic_in_block;
    if (shape.in_block > 1) {
      const SplitAxes parts = s.split(ic_in_block, c[k.unroll_ic]);
      order.push_back(parts.outer);
      ic_unrolled = parts.inner;
    }
    order.push_back(ic_unrolled);
    if (c[k.unroll_kw]) order.push_back(kw);
    order.insert(order.end(), {oh, ow, vector, lane});
    if (shape.dot > 1) order.push_back(in_group);
    s.reorder(order);
    s.decompose_reduction(acc, ic_outer);
    if (skips) s.skip_zeros(acc);
    s.unroll(ic_unrolled);
    if (c[k.unroll_kw]) s.unroll(kw);
    s.unroll(oh);
    s.unroll(ow);
    s.unroll(vector);
    if (shape.dot > 1) s.dot(in_group);
    if (shape.lanes > 1) s.vectorize(lane);
  }
};

}  // namespace

const AnyTemplate& conv2d_direct_cpu() {
  static const Conv2dDirectCpu instance;
  return instance;
}

}  // namespace tuner
