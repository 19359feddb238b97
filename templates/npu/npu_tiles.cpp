#include "templates/npu/npu_tiles.h"

#include <algorithm>
#include <array>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_family.h"

namespace tuner::npu_tiles {

std::vector<int64_t> equal_tiles(int64_t extent, int64_t unit, int64_t most) {
  std::vector<int64_t> tiles;
  for (int64_t parts = 1;; parts += std::max<int64_t>(1, parts / 4)) {
    const int64_t tile = round_up(ceil_div(extent, parts), unit);
    if (tile <= most && (tiles.empty() || tile < tiles.back())) tiles.push_back(tile);
    if (tile <= unit || (tile <= 8 && !tiles.empty())) break;
  }
  return tiles;
}

std::vector<int64_t> dividing_tiles(int64_t extent, int64_t unit, int64_t most) {
  std::vector<int64_t> tiles;
  for (int64_t tile = std::min(extent, most) / unit * unit; tile >= unit; tile -= unit)
    if (extent % tile == 0) tiles.push_back(tile);
  return tiles;
}

int64_t at_most(const std::vector<int64_t>& tiles, int64_t most) {
  for (const int64_t tile : tiles)
    if (tile <= most) return tile;
  return tiles.back();
}

int64_t tables_bytes(int64_t channels, const npu::Machine& m) {
  return 8 * round_up(channels, m.array_columns);
}

Support serves_convolution(const Conv2dWorkload& w, const Target& t) {
  if (!is_npu(t)) return needs_target("an NPU", t);
  if (!is_channels_last(w.layout) || !is_channels_last(w.out_layout))
    return declined("needs layout and out_layout NHWC, got ", w.layout, " and ", w.out_layout);
  if (!Workload(w).is_constant("weight")) return declined("needs a constant weight, which it packs ahead");
  if (Workload(w).is_constant("data")) return declined("packs no constant data");
  return serves_product(w, w.out_channels, machine_of(t));
}

std::string intrinsic(const char* what, const npu::Machine& m) {
  return str("npu.", what, ".", dtype_name(DType::kUInt8), ".", m.array_rows, "x", m.array_columns);
}

namespace {

// Rows (columns) of the padded image that whole tiles of out read.
int64_t needed(int64_t extent, int64_t tile, int64_t stride, int64_t kernel, int64_t dilation) {
  return reach(round_up(extent, tile), stride, kernel, dilation);
}

}  // namespace

Tensor tiled_image(Schedule& s, const Conv2dWorkload& w, const ImageTile& tile) {
  const bool has_border = w.padding != std::array<int64_t, 4>{};
  const Tensor plain = s.tensor(has_border ? "padded" : "data");
  // One multiple of what is needed: as large as that, unless the image is larger.
  const auto at_least = [](int64_t extent, int64_t wanted) { return wanted > extent ? wanted : 1; };
  const int64_t height = w.in_height + w.padding[0] + w.padding[2],
                width = w.in_width + w.padding[1] + w.padding[3];
  const int64_t rows = needed(w.out_height(), tile.h, w.stride[0], w.kernel_height, w.dilation[0]),
                columns = needed(w.out_width(), tile.w, w.stride[1], w.kernel_width, w.dilation[1]);
  const Tensor image = s.pack(plain, {{0},
                                      {1, 1, false, at_least(height, rows)},
                                      {2, 1, false, at_least(width, columns)},
                                      {3, 1, false, tile.channels}});
  if (has_border) s.inline_compute(plain);
  return image;
}

OutLoops tile_out(Schedule& s, const Tensor& out, const OutTile& tile) {
  const auto [n, oh, ow, oc] = s.axes<4>(out);
  const auto [h_tile, h] = s.split(oh, tile.h);
  const auto [w_tile, column] = s.split(ow, tile.w);
  const auto [channel_tile, channel] = s.split(oc, tile.channels);
  s.reorder({n, h_tile, w_tile, channel_tile, h, column, channel});
  return {s.fuse({h_tile, w_tile}), channel_tile};
}

WindowKnobs declare_windows(ConfigSpace& space, const WindowTiles& tiles, const WindowTile& first,
                            int64_t out_height, int64_t out_width) {
  WindowKnobs k{
      // Rows and columns of a tile of pixels. A row of results is one instruction.
      .tile_h = space.choice("tile_h", tiles.h).try_first(first.h),
      .tile_w = space.choice("tile_w", tiles.w).try_first(first.w),
      // Channels that are loaded at once: more make longer bursts.
      .tile_c = space.choice("tile_c", tiles.c).try_first(first.c),
      // Tiles on their way: more hide more of DRAM, for room.
      .stages = space.choice("stages", {1, 2, 3, 4}).try_first(first.stages),
  };
  space.require(k.stages <= ceil_div(out_height, k.tile_h) * ceil_div(out_width, k.tile_w));
  return k;
}

void stream(Schedule& s, const std::vector<Tensor>& operands, const Streams& streams) {
  const Axis at = streams.several_terms ? streams.terms : streams.inner;
  std::vector<Tensor> streamed;
  for (const Tensor& operand : operands) {
    const bool stays = streams.resident && operand.buffer == streams.panel.buffer;
    s.compute_at(operand, stays ? streams.outer : at);
    if (!stays) streamed.push_back(operand);
  }
  if (streams.stages > 1) s.pipeline(streamed, at, streams.stages);
  if (streams.resident && streams.panel_stages > 1)
    s.pipeline({streams.panel}, streams.outer, streams.panel_stages);
}

}  // namespace tuner::npu_tiles
