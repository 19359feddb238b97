// conv2d_npu: convolution of 8 bits on the NPU, NHWC, requantised on the way out.
//
//   out[n, oh, ow, oc] = T(clamp(round(act(float32(sum + bias[oc]) * scale[oc]))) + zero_point)
//   sum = sum over kh, kw, ic of data[n, oh*sh + kh*dh - top, ow*sw + kw*dw - left, ic] * weight[oc, ic, kh,
// kw]
//
//   for n
//     for tile of pixels (rows, columns), tile of channels      or the other way round (`order`)
//       [resident: all input channels of the outer tile's operand, loaded once]
//       for tile of ic                                          `stages` of them on their way
//         load the image's part with its border, load weights   zeros beyond the image
//         for kh, kw, block of ic, block of oc                  R x C weights, filled ahead
//           for row, column: npu.rows                           one instruction: the pixels pass the weights
//       store the tile
//
// Weights are packed ahead: [tile of oc][kh][kw][ic][oc], so they have to be constant. Channels of the image
// are filled up to rows of the array. Declines groups, other layouts, residuals, and sums of 32 bits.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "templates/npu/npu_templates.h"
#include "templates/npu/npu_tiles.h"

namespace tuner {
namespace {

struct Conv2dNpuKnobs {
  ChoiceKnob tile_h, tile_w, tile_oc, tile_ic;
  ChoiceKnob order;
  FlagKnob resident;
  ChoiceKnob panel_stages, stages;
};

using npu_tiles::reach;

// The tiles that one machine has room for.
struct Sizes {
  struct Tile {
    int64_t h, w, oc, ic, stages;
    bool resident;  // weights; then tiles of channels are outside
  };

  Sizes(const Conv2dWorkload& conv, const npu::Machine& machine) : c(conv), m(machine) {
    const auto most_rows = [&](int64_t of_instruction) {
      return std::min(of_instruction, m.accumulator_rows());
    };
    h = npu_tiles::equal_tiles(c.out_height(), 1, most_rows(npu_tiles::kMostOuter));
    w = npu_tiles::equal_tiles(c.out_width(), 1, most_rows(npu_tiles::kMostRows));
    oc = npu_tiles::equal_tiles(
        c.out_channels, m.array_columns,
        std::max(m.array_columns, std::min(widest, m.scratchpad_bytes / 2 / taps / m.array_rows)));
    ic = npu_tiles::equal_tiles(c.in_channels, m.array_rows, std::max(m.array_rows, widest / c.stride[1]));
  }

  // Of the padded image, that a tile of out reads.
  template <class Int>
  Int pixels(const Int& rows, const Int& columns) const {
    return reach(rows, c.stride[0], c.kernel_height, c.dilation[0]) *
           reach(columns, c.stride[1], c.kernel_width, c.dilation[1]);
  }

  // With half of the accumulators: the other half is stored meanwhile.
  bool fits(const Tile& t) const {
    const int64_t of_weight = t.resident ? round_up(c.in_channels, t.ic) : t.stages * t.ic;
    return t.stages * t.ic * pixels(t.h, t.w) + taps * t.oc * of_weight <= room &&
           t.stages * t.h * t.w * (t.oc / m.array_columns) <= m.accumulator_rows() &&
           reach(t.w, c.stride[1], c.kernel_width, c.dilation[1]) * t.ic * c.stride[0] <=
               npu_tiles::kMostRowStride * m.bank_bytes;
  }
  int64_t pixel_tiles(const Tile& t) const {
    return ceil_div(c.out_height(), t.h) * ceil_div(c.out_width(), t.w);
  }

  // Weights of all input channels stay, and pixels pass by; where they have no room, both come in parts of
  // the input channels.
  Tile first() const {
    const int64_t some = npu_tiles::at_most(oc, 4 * m.array_columns);
    Tile t = with_pixels({h.front(), w.front(), some, ic.front(), 2, true});
    if (fits(t)) {
      if (pixel_tiles(t) < 2) t.stages = 1, t.resident = false;
      return t;
    }
    t = with_pixels({h.front(), w.front(), some, npu_tiles::at_most(ic, 8 * m.array_rows), 2, false});
    while (!fits(t) && shrink(t.ic, ic)) continue;
    while (!fits(t) && shrink(t.oc, oc)) continue;
    if (!fits(t) || ceil_div(c.in_channels, t.ic) < 2) t.stages = 1;
    return t;
  }
  // As many pixels as fit: whole rows, or where these are long a part of one.
  Tile with_pixels(Tile t) const {
    while (!fits(t) && shrink(t.h, h)) continue;
    while (!fits(t) && shrink(t.w, w)) continue;
    return t;
  }
  static bool shrink(int64_t& tile, const std::vector<int64_t>& tiles) {
    const int64_t before = tile;
    tile = npu_tiles::at_most(tiles, tile - 1);
    return tile != before;
  }

  const Conv2dWorkload& c;
  const npu::Machine& m;
  const int64_t taps = c.kernel_height * c.kernel_width;
  const int64_t room = m.scratchpad_bytes - npu_tiles::tables_bytes(c.out_channels, m);
  const int64_t widest = npu_tiles::kMostStride * m.bank_bytes;
  std::vector<int64_t> h, w, oc, ic;
};

class Conv2dNpu final : public ScheduleTemplate<Conv2dWorkload, Conv2dNpuKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_npu"; }
  int version() const override { return 1; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (const Support image = npu_tiles::serves_convolution(w, t); !image.yes) return image;
    const npu::Machine m = machine_of(t);
    if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
    if (w.in_channels < 2) return declined("needs 2 input channels, got ", w.in_channels);
    const int64_t row = reach<int64_t>(1, w.stride[0], w.kernel_height, w.dilation[0]) *
                        reach<int64_t>(1, w.stride[1], w.kernel_width, w.dilation[1]);
    const int64_t least = row * m.array_rows +
                          w.kernel_height * w.kernel_width * m.array_rows * m.array_columns +
                          npu_tiles::tables_bytes(w.out_channels, m);
    if (least > m.scratchpad_bytes) return declined("needs a scratchpad of ", least, " bytes");
    return supported();
  }

  Conv2dNpuKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const npu::Machine m = machine_of(t);
    const Sizes sizes(w, m);
    const Sizes::Tile first = sizes.first();
    Conv2dNpuKnobs k{
        // Rows and columns of a tile of pixels: so many pass the weights once these are filled.
        .tile_h = space.choice("tile_h", sizes.h).try_first(first.h),
        .tile_w = space.choice("tile_w", sizes.w).try_first(first.w),
        // Output channels: whole blocks of the array. A pixel that is loaded serves so many.
        .tile_oc = space.choice("tile_oc", sizes.oc).try_first(first.oc),
        // Input channels that are loaded at once: more make longer bursts.
        .tile_ic = space.choice("tile_ic", sizes.ic).try_first(first.ic),
        // 0: pixels outside, weights come again and again; 1: channels outside, the image does.
        .order = space.choice("order", {0, 1}).try_first(first.resident ? 1 : 0),
        // All input channels of the outer tile's operand stay.
        .resident = space.flag("resident").try_first(first.resident),
        // Of it: the next one is loaded while this one is used.
        .panel_stages = space.choice("panel_stages", {1, 2}).try_first(1),
        // Tiles on their way: more hide more of DRAM, for room.
        .stages = space.choice("stages", {1, 2, 3, 4}).try_first(first.stages),
    };
    space.active_if(k.panel_stages, k.resident == 1);
    const IntExpr ic_tiles = ceil_div(w.in_channels, k.tile_ic),
                  oc_tiles = ceil_div(w.out_channels, k.tile_oc),
                  pixel_tiles = ceil_div(w.out_height(), k.tile_h) * ceil_div(w.out_width(), k.tile_w);
    const IntExpr inner_tiles = oc_tiles + k.order * (pixel_tiles - oc_tiles),
                  outer_tiles = pixel_tiles + k.order * (oc_tiles - pixel_tiles);
    space.require(k.tile_h * k.tile_w * (k.tile_oc / m.array_columns) <= m.accumulator_rows());
    // The pipelined loop has as many iterations as stages.
    space.require(k.stages <= (ic_tiles > 1) * ic_tiles + (ic_tiles <= 1) * inner_tiles);
    space.require(k.resident == 0 || k.panel_stages <= outer_tiles);
    // A resident panel that no second tile reads is none.
    space.require(k.resident == 0 || inner_tiles > 1);
    const IntExpr streamed = k.tile_ic * k.stages, panel = ic_tiles * k.tile_ic * k.panel_stages;
    const IntExpr of_image = streamed + k.resident * (k.order == 0) * (panel - streamed),
                  of_weight = streamed + k.resident * (k.order == 1) * (panel - streamed);
    space.require(sizes.pixels(IntExpr(k.tile_h), IntExpr(k.tile_w)) * of_image +
                      k.tile_oc * sizes.taps * of_weight <=
                  sizes.room);
    // Steps from pixel to pixel and from row to row, in bytes.
    const IntExpr pixel = k.tile_ic + k.resident * (k.order == 0) * (ic_tiles * k.tile_ic - k.tile_ic);
    space.require(pixel * w.stride[1] <= sizes.widest);
    space.require(reach(IntExpr(k.tile_w), w.stride[1], w.kernel_width, w.dilation[1]) * pixel *
                      w.stride[0] <=
                  npu_tiles::kMostRowStride * m.bank_bytes);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2dNpuKnobs& k,
                const Config& c) const override {
    const npu::Machine m = machine_of(t);
    const int64_t tile_h = c[k.tile_h], tile_w = c[k.tile_w], tile_oc = c[k.tile_oc], tile_ic = c[k.tile_ic];
    const bool channels_outside = c[k.order] == 1;
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    const Tensor image = npu_tiles::tiled_image(s, w, {tile_h, tile_w, tile_ic});
    const Tensor packed = s.pack(s.tensor("weight"),
                                 {{0, tile_oc, false}, {2}, {3}, {1, 1, false, tile_ic}, {0, tile_oc, true}});
    const Tensor weight = s.cache_read(packed, MemoryScope::kShared, acc);
    if (s.refused()) return;
    const std::vector<Axis> reduce = s.reduce_axis_list(acc);
    s.pad_reduction(reduce[0], tile_ic);
    s.set_scope(image, MemoryScope::kShared);
    s.set_scope(acc, MemoryScope::kFragment);

    const auto [pixel_tile, oc_tile] = npu_tiles::tile_out(s, out, {tile_h, tile_w, tile_oc});
    if (channels_outside) s.reorder({oc_tile, pixel_tile});
    const Axis outer = channels_outside ? oc_tile : pixel_tile,
               inner = channels_outside ? pixel_tile : oc_tile;
    s.compute_at(acc, inner);
    const std::vector<Axis> sums = s.spatial_axes(acc), terms = s.reduce_axis_list(acc);
    if (s.refused()) return;
    const auto [ic_tile, ic] = s.split(terms[0], tile_ic);
    const auto [ic_block, lane] = s.split(ic, m.array_rows);
    const auto [oc_block, oc_lane] = s.split(sums[3], m.array_columns);
    s.reorder({ic_tile, terms[1], terms[2], ic_block, oc_block, sums[1], sums[2], oc_lane, lane});
    s.decompose_reduction(acc, ic_tile);
    s.tensorize(oc_lane, npu_tiles::intrinsic("rows", m));
    npu_tiles::stream(s, {image, weight},
                      {.outer = outer,
                       .inner = inner,
                       .terms = ic_tile,
                       .several_terms = ceil_div(w.in_channels, tile_ic) > 1,
                       .resident = c[k.resident] != 0,
                       .panel = channels_outside ? weight : image,
                       .stages = c[k.stages],
                       .panel_stages = c[k.panel_stages]});
  }
};

}  // namespace

const AnyTemplate& conv2d_npu() {
  static const Conv2dNpu instance;
  return instance;
}

}  // namespace tuner
