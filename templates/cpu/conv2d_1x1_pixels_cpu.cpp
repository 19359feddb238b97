// conv2d_1x1_pixels_cpu: 1x1 convolution of plain images (NCHW in and out) on any CPU: weights times image,
// vectors of pixels.
//
//   out[n, oc, p] = act(sum over ic of weight[oc, ic] * data[n, ic, p] + bias[oc] + residual[n, oc, p])
//
//   weight packed in strips of MR channels, [OC/MR][IC][MR], by the packing entry when constant
//   with a stride: picked[n, ic, p] = the pixels of data that count
//   parallel n, block of channels, panel of NR pixels
//     data[n, ic, p] of the panel side by side, [IC][NR], when `pack_data` is set
//     for tile of MR channels in block
//       sums over ic in registers      (cpu_product.h: one broadcast of the weights, vectors of pixels)
//       write the tile: the epilogue
//
// bfloat16: weights become float32 as they are packed, each vector of pixels where it is loaded (as in
// matmul_cpu). Declines int8, kernels other than 1x1, padding, groups and blocked layouts.
#include <algorithm>
#include <array>

#include "templates/cpu/conv2d_1x1.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct Conv2d1x1PixelsKnobs {
  SplitKnob tile_oc, tile_p;
  ChoiceKnob block_oc, unroll_ic;
  FlagKnob pack_data;
};

class Conv2d1x1PixelsCpu final : public ScheduleTemplate<Conv2dWorkload, Conv2d1x1PixelsKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_1x1_pixels_cpu"; }
  int version() const override { return 1; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (const Support shape = supports_1x1(w, t); !shape.yes) return shape;
    if (w.dtype != DType::kFloat32 && w.dtype != DType::kBFloat16)
      return declined("needs float32 or bfloat16, got ", w.dtype);
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (w.out_layout != "NCHW") return declined("needs out_layout NCHW, got ", w.out_layout);
    return supported();
  }

  Conv2d1x1PixelsKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const int64_t pixels = w.out_height() * w.out_width(), lanes = lanes_of(w, t);
    const cpu::Columns in{lanes, lanes, cpu::broadcasts_of(t, true)};
    const auto [channels, columns] = cpu::first_tile(w.out_channels, pixels, in, t.vector_registers());
    Conv2d1x1PixelsKnobs k{
        // Channels of a tile. More use each vector of pixels more often; too many spill to the stack.
        .tile_oc = space.split("tile_oc", w.out_channels).at_most(t.vector_registers()).try_first(channels),
        // Pixels of a tile: whole vectors. More use each broadcast of a weight more often.
        .tile_p = space.split("tile_p", pixels).multiples_of(lanes).at_most(8 * lanes).try_first(columns),
        // Tiles of channels done with one panel of pixels before the next. 0: all, so that a panel is read
        // from the outer caches once; 1: a strip of weights is.
        .block_oc = space.choice("block_oc", {0, 1, 2, 4, 8, 16}).try_first(0),
        // Shares the loop's own instructions; the code grows.
        .unroll_ic =
            space.choice("unroll_ic", {1, 2, 4})
                .try_first(cpu::first_unroll(in.broadcasts, channels * columns / lanes, w.in_channels)),
        // Pixels of a panel side by side: one stream in place of one a channel, for a copy of the panel.
        .pack_data = space.flag("pack_data").try_first(w.out_channels >= 4 * channels),
    };
    cpu::require_tile(space, k.tile_oc, k.tile_p, in, t.vector_registers(), k.unroll_ic);
    space.require(k.unroll_ic <= w.in_channels);
    space.require(k.block_oc < k.tile_oc.outer());
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override {
    return pixels_math(w, /*channels_innermost=*/false, widens(w));
  }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2d1x1PixelsKnobs& k,
                const Config& c) const override {
    const int64_t lanes = lanes_of(w, t), columns = c[k.tile_p].inner;
    const Tensor data = pick_pixels(s, w, t);
    const Tensor weight = s.tensor(widens(w) ? "wide" : "weight");
    const Tensor strips = cpu::pack_blocks(s, weight, 0, 0, c[k.tile_oc].inner);
    if (widens(w)) s.inline_compute(weight);
    if (widens(w) && Workload(w).is_constant("weight")) s.precompute(strips);
    if (s.refused()) return;
    if (!Workload(w).is_constant("weight") && t.threads > 1) s.parallel(s.axes(strips).front());
    Tensor panels;
    if (c[k.pack_data]) panels = cpu::pack_blocks(s, data, 1, 2, columns);

    const auto [n, oc, p] = s.axes<3>(s.tensor("out"));
    if (s.refused()) return;
    const auto [strip, channel] = s.split(oc, c[k.tile_oc].inner);
    const auto [block, tile] = s.split(strip, c[k.block_oc] == 0 ? c[k.tile_oc].outer : c[k.block_oc]);
    const auto [panel, column] = s.split(p, columns);
    const auto [vector, lane] = s.split(column, lanes);
    s.reorder({block, panel, tile, channel, vector, lane});
    cpu::sum_in_registers(s, s.tensor("acc"), tile, lanes, std::array{c[k.unroll_ic]});
    s.unroll(channel);
    s.unroll(vector);
    if (lanes > 1) s.vectorize(lane);
    if (c[k.pack_data] && !Workload(w).is_constant("data")) {
      s.compute_at(panels, panel);
      if (s.refused()) return;
      cpu::vectorize_by(s, s.axes(panels).back(), lanes);
    }
    if (t.threads > 1) s.parallel(s.fuse({n, block, panel}));
  }

 private:
  static bool widens(const Conv2dWorkload& w) { return w.dtype != DType::kFloat32; }
  // A single pixel has nothing to be a vector of.
  static int64_t lanes_of(const Conv2dWorkload& w, const Target& t) {
    return w.out_height() * w.out_width() == 1 ? 1 : t.f32_lanes();
  }
};

}  // namespace

const AnyTemplate& conv2d_1x1_pixels_cpu() {
  static const Conv2d1x1PixelsCpu instance;
  return instance;
}

}  // namespace tuner
