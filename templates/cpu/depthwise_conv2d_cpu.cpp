// depthwise_conv2d_cpu: convolution of each channel by itself, on any CPU with vectors.
//
//   out[n, c, oh, ow] = act(sum over kh, kw of data[n, c, oh*sh + kh*dh - top, ow*sw + kw*dw - left]
//                                              * weight[c, 0, kh, kw] + bias[c] + residual[...])
//
// Vectors of channels.                           NCHW in and out: vectors of pixels.
//   parallel n, c block, oh_outer                  parallel n, c, oh_outer
//     for ow_outer                                   for ow_outer
//       for kh                                         for kh
//         unrolled oh_inner, ow_inner, kw                unrolled oh_inner, kw
//           vectorized channel                             vectorized ow_inner
//       write the tile                                 write the tile
//
// Rows of the window in the padding are passed over; so are its columns, in tiles at the border that are code
// of their own, or by masks. Nothing is padded. Pixels that several taps read are loaded once a row.
// bfloat16 and int8 become float32 and int32 where they are loaded: a lane has one term a tap, so no dot
// products. Declines other than one output channel for each input channel.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/conv2d_cpu_tile.h"
#include "templates/cpu/cpu_images.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {

using namespace conv2d_cpu;

namespace {

struct DepthwiseConv2dKnobs {
  SplitKnob tile_oh, tile_ow;
  FlagKnob unroll_kh;
};

class DepthwiseConv2dCpu final : public ScheduleTemplate<Conv2dWorkload, DepthwiseConv2dKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "depthwise_conv2d_cpu"; }
  int version() const override { return 1; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (cpu::dot_group(w.dtype) == 0) return declined("needs float32, bfloat16 or int8, got ", w.dtype);
    if (w.groups != w.in_channels)
      return declined("needs groups = ", w.in_channels, " channels, got ", w.groups);
    if (w.out_channels != w.in_channels)
      return declined("needs 1 output channel in a group, got ", w.out_channels / w.groups);
    return supported();
  }

  DepthwiseConv2dKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const bool of_pixels = vectors_of_pixels(w);
    const int64_t lanes = t.f32_lanes(), registers = t.vector_registers();
    const int64_t unit = of_pixels ? lanes : 1;  // pixels of one accumulator
    const int64_t most = of_pixels ? registers / 2 * lanes : registers - 4;
    DepthwiseConv2dKnobs k{
        // Rows of a tile: they share the weights, and the pixels that several of them read if kh is unrolled.
        .tile_oh = space.split("tile_oh", w.out_height()).at_most(6).try_first(1),
        // Pixels of a row of a tile: each pixel is loaded once for all of them.
        .tile_ow = space.split("tile_ow", w.out_width())
                       .multiples_of(unit)
                       .at_most(most)
                       .try_first(first_columns(w, unit, std::min(most, 14 * unit))),
        // All taps in one body: pixels and weights are loaded once a tile; the code grows.
        .unroll_kh = space.flag("unroll_kh").try_first(false),
    };
    const IntExpr rows = k.tile_oh.inner(), columns = k.tile_ow.inner();
    const IntExpr vectors = rows * ceil_div(columns, unit);
    space.require(vectors + 4 <= registers);
    const IntExpr body = vectors * w.kernel_width * (k.unroll_kh * (w.kernel_height - 1) + 1);
    space.require(body <= kMaxBody || vectors == 1);
    space.require(body * bodies(w, rows, columns, unit) <= kMaxKernel || vectors == 1);
    // Tiles as equal as can be, never a small rest.
    if (!of_pixels) space.require(ceil_div(w.out_width(), k.tile_ow.outer()) == columns);
    space.require(ceil_div(w.out_height(), k.tile_oh.outer()) == rows);
    if (w.kernel_height == 1) space.require(k.unroll_kh == 0);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const DepthwiseConv2dKnobs& k,
                const Config& c) const override {
    const int64_t lanes = channel_lanes(w, t);
    const bool of_pixels = vectors_of_pixels(w);
    if (pads(w)) s.inline_compute(s.tensor("padded"));
    if (!of_pixels) lay_out_weight(s, w, lanes, t.threads > 1);

    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(acc, MemoryScope::kRegister);
    const OutAxes o = split_out(s, out, w, lanes);
    const auto [oh_outer, oh_inner] = s.split(o.oh, c[k.tile_oh].inner);
    const auto [ow_outer, ow_inner] = s.split(o.ow, c[k.tile_ow].inner);
    const bool rows_of_pixels = is_planar(w.out_layout);
    if (rows_of_pixels)
      s.reorder({o.n, o.channel, oh_outer, ow_outer, oh_inner, o.lane, ow_inner});
    else
      s.reorder({o.n, o.channel, oh_outer, ow_outer, oh_inner, ow_inner, o.lane});
    s.compute_at(acc, ow_outer);
    s.unroll(oh_inner);
    if (!rows_of_pixels) s.unroll(ow_inner);
    s.vectorize(rows_of_pixels ? ow_inner : o.lane);
    if (rows_of_pixels && !of_pixels) s.vectorize_rows(o.lane);

    const auto [n, oh, ow, channel] = s.inner_axes<4>(acc);
    const auto [ic, kh, kw] = s.reduce_axes<3>(acc);
    if (of_pixels)
      s.reorder({ic, kh, oh, kw, channel, ow});
    else
      s.reorder({ic, kh, oh, ow, kw, channel});
    s.decompose_reduction(acc, ic);
    if (pads(w)) s.skip_zeros(acc);
    if (c[k.unroll_kh]) s.unroll(kh);
    s.unroll(oh);
    s.unroll(kw);
    if (!of_pixels) s.unroll(ow);
    s.vectorize(of_pixels ? ow : channel);
    if (t.threads > 1) s.parallel(s.fuse({o.n, o.channel, oh_outer}));
  }

 private:
  static bool vectors_of_pixels(const Conv2dWorkload& w) {
    return is_planar(w.layout) && is_planar(w.out_layout);
  }
  // Channels of a vector: within the blocks of both layouts.
  static int64_t channel_lanes(const Conv2dWorkload& w, const Target& t) {
    int64_t lanes = t.f32_lanes();
    for (const std::string& layout : {w.layout, w.out_layout})
      if (channel_block(layout) > 1) lanes = std::min(lanes, channel_block(layout));
    return vectors_of_pixels(w) ? 1 : lanes;
  }

  // Bodies for one tile: at the border and at the end of rows and columns they are code of their own, unless
  // masks do that. Int: numbers or expressions of knobs.
  template <class Int>
  static Int bodies(const Conv2dWorkload& w, const Int& rows, const Int& columns, int64_t lanes) {
    const Int tiled = columns < w.out_width(), taps = columns / lanes * w.kernel_width;
    const Int cut_column = Int(w.out_width()) % columns != 0, cut_row = Int(w.out_height()) % rows != 0;
    const Int across = tiled * (cut_column + columns_border(w).sides()) + 1;
    // A test in front of a whole row of taps stays one.
    const Int down = Int(rows > 1 || taps < 32) * rows_border(w).sides() + 1;
    return across * (down + cut_row);
  }
  // Pixels of a row of the first tile, vectors of `lanes`: as many as fit, in tiles as equal as can be.
  static int64_t first_columns(const Conv2dWorkload& w, int64_t lanes, int64_t most) {
    for (int64_t tiles = 1;; ++tiles) {
      const int64_t pixels = ceil_div(w.out_width(), tiles);
      const int64_t columns = round_up(pixels, lanes), body = columns / lanes * w.kernel_width;
      const bool fits =
          columns <= most && body <= kMaxBody && body * bodies<int64_t>(w, 1, columns, lanes) <= kMaxKernel;
      if (fits || columns == lanes) return columns;
    }
  }

  struct OutAxes {
    Axis n, channel, oh, ow, lane;
  };
  static OutAxes split_out(Schedule& s, const Tensor& out, const Conv2dWorkload& w, int64_t lanes) {
    const cpu::ImageAxes image = cpu::image_axes(s, out, w.out_layout);
    if (channel_block(w.out_layout) == 1) {
      const auto [outer, lane] = s.split(image.c, lanes);
      return {image.n, outer, image.h, image.w, lane};
    }
    const auto [part, lane] = s.split(image.in_block, lanes);
    s.reorder({image.n, image.c, part, image.h, image.w, lane});
    return {image.n, s.fuse({image.c, part}), image.h, image.w, lane};
  }

  static void lay_out_weight(Schedule& s, const Conv2dWorkload& w, int64_t lanes, bool parallel) {
    const Tensor packed = s.pack(s.tensor("weight"), {{0, lanes}, {1}, {2}, {3}, {0, lanes, true}});
    if (s.refused() || Workload(w).is_constant("weight") || !parallel) return;
    s.parallel(s.axes(packed).front());
  }
};

}  // namespace

const AnyTemplate& depthwise_conv2d_cpu() {
  static const DepthwiseConv2dCpu instance;
  return instance;
}

}  // namespace tuner
