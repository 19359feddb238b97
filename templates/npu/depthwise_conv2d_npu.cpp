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

class DepthwiseConv2dNpu final : public ScheduleTemplate<Conv2dWorkload, npu_tiles::WindowKnobs> {
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

  npu_tiles::WindowKnobs declare(ConfigSpace& space, const Conv2dWorkload& w,
                                 const Target& t) const override {
    const npu::Machine m = machine_of(t);
    const int64_t columns = m.array_columns, taps = w.kernel_height * w.kernel_width;
    const int64_t room = m.scratchpad_bytes - npu_tiles::tables_bytes(w.out_channels, m);
    const int64_t farthest = std::max(w.stride[1], w.dilation[1]);
    const npu_tiles::WindowTiles tiles{
        .h = npu_tiles::equal_tiles(w.out_height(), 1, m.accumulator_rows()),
        .w = npu_tiles::equal_tiles(w.out_width(), 1, std::min(npu_tiles::kMostRows, m.accumulator_rows())),
        .c = npu_tiles::equal_tiles(w.out_channels, columns,
                                    std::max(columns, kMostPixelStride * m.bank_bytes / farthest))};
    const auto pixels = [&](const auto& h, const auto& wide) {
      return npu_tiles::reach(h, w.stride[0], w.kernel_height, w.dilation[0]) *
             npu_tiles::reach(wide, w.stride[1], w.kernel_width, w.dilation[1]);
    };
    const auto fits = [&](const npu_tiles::WindowTile& t) {
      return t.c * (t.stages * pixels(t.h, t.w) + taps) <= room &&
             t.stages * t.h * t.w * (t.c / columns) <= m.accumulator_rows() &&
             npu_tiles::reach(t.w, w.stride[1], w.kernel_width, w.dilation[1]) * t.c * w.dilation[0] <=
                 npu_tiles::kMostRowStride * m.bank_bytes;
    };
    npu_tiles::WindowTile first = npu_tiles::fitting(
        {tiles.h.front(), tiles.w.front(), npu_tiles::at_most(tiles.c, 4 * columns), 2}, tiles, fits);
    if (!fits(first) || ceil_div(w.out_height(), first.h) * ceil_div(w.out_width(), first.w) < 2)
      first.stages = 1;
    const npu_tiles::WindowKnobs k =
        npu_tiles::declare_windows(space, tiles, first, w.out_height(), w.out_width());
    space.require(k.tile_h * k.tile_w * (k.tile_c / columns) <= m.accumulator_rows());
    space.require(k.tile_c * (k.stages * pixels(IntExpr(k.tile_h), IntExpr(k.tile_w)) + taps) <= room);
    space.require(npu_tiles::reach(IntExpr(k.tile_w), w.stride[1], w.kernel_width, w.dilation[1]) * k.tile_c *
                      w.dilation[0] <=
                  npu_tiles::kMostRowStride * m.bank_bytes);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const npu_tiles::WindowKnobs& k,
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

    const auto [pixel_tile, c_tile] = npu_tiles::tile_out(s, out, {c[k.tile_h], c[k.tile_w], tile_c});
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
