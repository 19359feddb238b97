// depthwise_conv2d_npu: depthwise convolution of 8 bits on the NPU's vector unit, NHWC, requantised on the
// way out.
//
//   out[n, oh, ow, c] = T(clamp(round(act(float32(sum + bias[c]) * scale[c]))) + zero_point)
//   sum = sum over kh, kw of data[n, oh*sh + kh*dh - top, ow*sw + kw*dw - left, c] * weight[c, 0, kh, kw]
//
//   for n, tile of channels
//     load weights of these channels
//     for tile of pixels                       `stages` of them on their way
//       load the image's part with its border  zeros beyond the image
//       for block of C channels, row
//         for column, kh, kw: npu.channels     one instruction
//       store the tile
//
// Weights are packed ahead: [block of C channels][kh][kw][C], so they have to be constant. Serves one channel
// per group.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "templates/npu/npu_templates.h"
#include "templates/npu/npu_tiles.h"

namespace tuner {
namespace {

constexpr int64_t kMostTaps = 15;          // of one instruction, in each direction
constexpr int64_t kMostPixelStride = 255;  // words from tap to tap in a row

struct DepthwiseNpuKnobs {
  ChoiceKnob tile_h, tile_w, tile_c, stages;
};

class DepthwiseConv2dNpu final : public ScheduleTemplate<Conv2dWorkload, DepthwiseNpuKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "depthwise_conv2d_npu"; }
  int version() const override { return 1; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (const Support image = npu_tiles::serves_convolution(w, t); !image.yes) return image;
    const npu::Machine m = machine_of(t);
    if (w.groups < 2 || w.groups != w.in_channels || w.groups != w.out_channels)
      return declined("needs as many groups as channels in and out, got ", w.groups, " of ", w.in_channels,
                      " and ", w.out_channels);
    if (std::max(w.kernel_height, w.kernel_width) > kMostTaps)
      return declined("needs kernels of at most ", kMostTaps, ", got ", w.kernel_height, " and ",
                      w.kernel_width);
    const int64_t least = (npu_tiles::reach<int64_t>(1, w.stride[0], w.kernel_height, w.dilation[0]) *
                               npu_tiles::reach<int64_t>(1, w.stride[1], w.kernel_width, w.dilation[1]) +
                           w.kernel_height * w.kernel_width) *
                              m.array_columns +
                          npu_tiles::tables_bytes(w.out_channels, m);
    if (least > m.scratchpad_bytes) return declined("needs a scratchpad of ", least, " bytes");
    return supported();
  }

  DepthwiseNpuKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const npu::Machine m = machine_of(t);
    const int64_t columns = m.array_columns, taps = w.kernel_height * w.kernel_width;
    const int64_t room = m.scratchpad_bytes - npu_tiles::tables_bytes(w.out_channels, m);
    const int64_t farthest = std::max(w.stride[1], w.dilation[1]);
    const std::vector<int64_t> tiles_h = npu_tiles::equal_tiles(w.out_height(), 1, m.accumulator_rows()),
                               tiles_w = npu_tiles::equal_tiles(
                                   w.out_width(), 1, std::min(npu_tiles::kMostRows, m.accumulator_rows())),
                               tiles_c = npu_tiles::equal_tiles(
                                   w.out_channels, columns,
                                   std::max(columns, kMostPixelStride * m.bank_bytes / farthest));
    const auto pixels = [&](const auto& h, const auto& wide) {
      return npu_tiles::reach(h, w.stride[0], w.kernel_height, w.dilation[0]) *
             npu_tiles::reach(wide, w.stride[1], w.kernel_width, w.dilation[1]);
    };
    int64_t h = tiles_h.front(), wide = tiles_w.front(), c = npu_tiles::at_most(tiles_c, 4 * columns);
    const auto fits = [&](int64_t stages) {
      return c * (stages * pixels(h, wide) + taps) <= room &&
             stages * h * wide * (c / columns) <= m.accumulator_rows() &&
             npu_tiles::reach(wide, w.stride[1], w.kernel_width, w.dilation[1]) * c * w.dilation[0] <=
                 npu_tiles::kMostRowStride * m.bank_bytes;
    };
    for (auto* tile : {&h, &wide, &c}) {
      const std::vector<int64_t>& tiles = tile == &h ? tiles_h : tile == &wide ? tiles_w : tiles_c;
      while (!fits(2) && *tile != tiles.back()) *tile = npu_tiles::at_most(tiles, *tile - 1);
    }
    const int64_t loops = ceil_div(w.out_height(), h) * ceil_div(w.out_width(), wide);
    DepthwiseNpuKnobs k{
        // Rows and columns of a tile of pixels. A row of results is one instruction.
        .tile_h = space.choice("tile_h", tiles_h).try_first(h),
        .tile_w = space.choice("tile_w", tiles_w).try_first(wide),
        // Channels that are loaded at once: more make longer bursts.
        .tile_c = space.choice("tile_c", tiles_c).try_first(c),
        // Tiles on their way: more hide more of DRAM, for room.
        .stages = space.choice("stages", {1, 2, 3, 4}).try_first(fits(2) && loops > 1 ? 2 : 1),
    };
    space.require(k.tile_h * k.tile_w * (k.tile_c / columns) <= m.accumulator_rows());
    space.require(k.stages <= ceil_div(w.out_height(), k.tile_h) * ceil_div(w.out_width(), k.tile_w));
    space.require(k.tile_c * (k.stages * pixels(IntExpr(k.tile_h), IntExpr(k.tile_w)) + taps) <= room);
    space.require(npu_tiles::reach(IntExpr(k.tile_w), w.stride[1], w.kernel_width, w.dilation[1]) * k.tile_c *
                      w.dilation[0] <=
                  npu_tiles::kMostRowStride * m.bank_bytes);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const DepthwiseNpuKnobs& k,
                const Config& c) const override {
    const int64_t columns = machine_of(t).array_columns, tile_c = c[k.tile_c];
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    const Tensor image = npu_tiles::tiled_image(s, w, {c[k.tile_h], c[k.tile_w], tile_c});
    const Tensor packed = s.pack(s.tensor("weight"),
                                 {{0, columns, false, tile_c / columns}, {1}, {2}, {3}, {0, columns, true}});
    const Tensor weight = s.cache_read(packed, MemoryScope::kShared, acc);
    if (s.refused()) return;
    s.set_scope(image, MemoryScope::kShared);
    s.set_scope(acc, MemoryScope::kFragment);

    const auto [n, oh, ow, oc] = s.axes<4>(out);
    const auto [h_tile, h] = s.split(oh, c[k.tile_h]);
    const auto [w_tile, column] = s.split(ow, c[k.tile_w]);
    const auto [c_tile, channel] = s.split(oc, tile_c);
    s.reorder({n, h_tile, w_tile, c_tile, h, column, channel});
    const Axis pixel_tile = s.fuse({h_tile, w_tile});
    s.reorder({c_tile, pixel_tile});
    s.compute_at(acc, pixel_tile);
    const std::vector<Axis> sums = s.spatial_axes(acc), terms = s.reduce_axis_list(acc);
    if (s.refused()) return;
    const auto [block, lane] = s.split(sums[3], columns);
    s.reorder({terms[0], block, sums[1], sums[2], terms[1], terms[2], lane});
    s.decompose_reduction(acc, terms[0]);
    s.tensorize(lane, str("npu.channels.", dtype_name(left_dtype(w.dtype)), ".", columns));
    s.compute_at(image, pixel_tile);
    s.compute_at(weight, c_tile);
    if (c[k.stages] > 1) s.pipeline({image}, pixel_tile, c[k.stages]);
  }
};

}  // namespace

const AnyTemplate& depthwise_conv2d_npu() {
  static const DepthwiseConv2dNpu instance;
  return instance;
}

}  // namespace tuner
