// conv2d_1x1_channels_cpu: 1x1 convolution on any CPU: image times weights, vectors of output channels.
//
//   out[n, oc, p] = act(sum over ic of data[n, ic, p] * weight[oc, ic] + bias[oc] + residual[n, oc, p])
//
//   weight packed in panels of NR channels, [OC/NR][IC][NR], NR a tile or a vector of them:
//       by the packing entry when constant, else by a stage before
//   with a stride: picked[n, ic, p] = the pixels of data that count
//   parallel n, block of pixels, panel of channels
//     for tile of MR pixels in block
//       sums over ic in registers      (cpu_product.h: one broadcast of a pixel, vectors of channels)
//       write the tile: epilogue; to NCHW transposed in registers
//
// bfloat16 and int8: ic counts groups of 2 or 4 channels, a dot product each; weights are packed in groups,
// [OC/NR][IC/D][NR][D], and so is data, [N][IC/D][P][D], where it is NCHW: by a stage before. Blocked data
// has its groups side by side, and so has NHWC; there they must be whole.
//
// Serves all layouts in and out. Pixels of an image count as one axis, so tiles run across its
// rows: 49 pixels are tiles of 13, 13, 13 and 10. Declines kernels other than 1x1, padding and groups.
#include <algorithm>
#include <vector>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/conv2d_1x1.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct Conv2d1x1ChannelsKnobs {
  SplitKnob tile_p, tile_oc;
  ChoiceKnob block_p, unroll_ic;
  FlagKnob narrow_panels, next_panel;
};

class Conv2d1x1ChannelsCpu final : public ScheduleTemplate<Conv2dWorkload, Conv2d1x1ChannelsKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_1x1_channels_cpu"; }
  int version() const override { return 2; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (const Support shape = supports_1x1(w, t); !shape.yes) return shape;
    if (cpu::dot_group(w.dtype) == 0) return declined("needs float32, bfloat16 or int8, got ", w.dtype);
    if (const int64_t block = channel_block(w.out_layout); block > 1 && block % t.f32_lanes() != 0)
      return declined("needs whole vectors of ", t.f32_lanes(), " channels, got out_layout ", w.out_layout);
    if (const int64_t group = cpu::dot_group(w.dtype);
        is_channels_last(w.layout) && w.in_channels % group != 0)
      return declined("needs a multiple of ", group, " ", w.dtype, " channels in NHWC, got ", w.in_channels);
    return supported();
  }

  Conv2d1x1ChannelsKnobs declare(ConfigSpace& space, const Conv2dWorkload& w,
                                 const Target& t) const override {
    const int64_t pixels = w.out_height() * w.out_width(), lanes = lanes_of(w, t);
    const int64_t group = cpu::dot_group(w.dtype);
    // Blocks of the output are written whole.
    const int64_t whole = std::max(lanes, channel_block(w.out_layout));
    // Pixels of one channel lie side by side in a planar image, channels of one pixel in the others.
    const cpu::Columns in{lanes, whole, cpu::broadcasts_of(t, is_planar(w.layout))};
    const auto [rows, channels] =
        cpu::first_tile(pixels, w.out_channels, in, t.vector_registers() - cpu::spare_registers(t, group));
    Conv2d1x1ChannelsKnobs k{
        // Pixels of a tile. More use each vector of weights more often; too many spill to the stack.
        .tile_p = space.split("tile_p", pixels).at_most(t.vector_registers()).try_first(rows),
        // Channels of a tile: whole vectors. More use each broadcast of a pixel more often.
        .tile_oc =
            space.split("tile_oc", w.out_channels).multiples_of(whole).at_most(8 * lanes).try_first(channels),
        // Tiles of pixels done with one panel of weights before the next: they stay in L2. 0: all pixels.
        .block_p = space.choice("block_p", {0, 1, 2, 4, 8, 16}).try_first(0),
        // Shares the loop's own instructions; the code grows.
        .unroll_ic = space.choice("unroll_ic", {1, 2, 4})
                         .try_first(cpu::first_unroll(in.broadcasts, rows * channels / lanes,
                                                      ceil_div(w.in_channels, group))),
        // Panels a vector wide in place of a tile wide: as many streams as vectors, which the prefetchers
        // follow faster when the weights come from the outer caches.
        .narrow_panels = space.flag("narrow_panels").try_first(false),
        // The weights of the next panel are asked for while this one is used.
        .next_panel =
            space.flag("next_panel")
                .try_first(cpu::asks_ahead_first(pixels) && rows < pixels && channels < w.out_channels),
    };
    cpu::require_tile(space, k.tile_p, k.tile_oc, {lanes, whole, cpu::broadcasts_of(t, true)},
                      t.vector_registers(), k.unroll_ic);
    space.require(k.unroll_ic <= ceil_div(w.in_channels, group));
    space.require(k.block_p < k.tile_p.outer());
    space.require(!k.narrow_panels || k.tile_oc.inner() > lanes);
    if (!cpu::may_ask_ahead(pixels)) space.require(k.next_panel == 0);
    space.require(!k.next_panel || k.tile_oc.outer() >= 2);
    space.require(!k.next_panel || (k.tile_p.outer() >= 2 && k.block_p != 1));
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override {
    return pixels_math(w, /*channels_innermost=*/true);
  }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2d1x1ChannelsKnobs& k,
                const Config& c) const override {
    const int64_t lanes = lanes_of(w, t), channels = c[k.tile_oc].inner, group = cpu::dot_group(w.dtype);
    const Tensor data = pick_pixels(s, w, t);
    if (group > 1 && is_planar(w.layout)) cpu::group_channels(s, data, group, t.threads > 1);
    const Tensor panels =
        cpu::pack_blocks(s, s.tensor("weight"), 0, 0, c[k.narrow_panels] ? lanes : channels, group);
    if (s.refused()) return;
    if (!Workload(w).is_constant("weight") && t.threads > 1) s.parallel(s.axes(panels).front());

    const PixelAxes out = pixel_axes(s, s.tensor("out"), w.out_layout);
    const auto [rows, row] = s.split(out.p, c[k.tile_p].inner);
    const auto [block, tile] = s.split(rows, c[k.block_p] == 0 ? c[k.tile_p].outer : c[k.block_p]);
    const int64_t out_block = channel_block(w.out_layout);
    const auto [panel, inside] = s.split(out.c, channels / out_block);
    const auto [vector, lane] = s.split(out_block > 1 ? out.in_block : inside, lanes);
    if (out_block > 1)
      s.reorder({block, panel, tile, row, inside, vector, lane});
    else if (is_channels_last(w.out_layout))
      s.reorder({block, panel, tile, row, vector, lane});
    else
      s.reorder({block, panel, tile, vector, lane, row});
    cpu::sum_in_registers(s, s.tensor("acc"), tile, lanes, reduce_splits(w, c[k.unroll_ic]), group);
    if (c[k.next_panel]) s.prefetch_next(panels, s.tensor("acc"), panel, tile);
    s.unroll(vector);
    if (!is_planar(w.out_layout)) {
      s.unroll(row);
      if (out_block > 1) s.unroll(inside);
      if (lanes > 1) s.vectorize(lane);
    } else {
      s.vectorize(row);
      s.vectorize_rows(lane);
    }
    if (t.threads > 1) s.parallel(s.fuse({out.n, block, panel}));
  }

 private:
  // A single channel has nothing to be a vector of.
  static int64_t lanes_of(const Conv2dWorkload& w, const Target& t) {
    return w.out_channels == 1 ? 1 : t.f32_lanes();
  }
  // Blocks of the input first (in groups), so that an address is a sum of loop variables.
  static std::vector<int64_t> reduce_splits(const Conv2dWorkload& w, int64_t unroll) {
    const int64_t in_block = channel_block(w.layout) / cpu::dot_group(w.dtype);
    return in_block > 1 ? std::vector<int64_t>{in_block, unroll} : std::vector<int64_t>{unroll};
  }
};

}  // namespace

const AnyTemplate& conv2d_1x1_channels_cpu() {
  static const Conv2d1x1ChannelsCpu instance;
  return instance;
}

}  // namespace tuner
