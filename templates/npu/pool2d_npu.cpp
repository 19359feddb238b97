// pool2d_npu: maximum pooling of 8 bits on the NPU's vector unit, NHWC.
//
//   out[n, oh, ow, c] = max over kh, kw of data[n, oh*sh + kh - top, ow*sw + kw - left, c]
//
//   for n, tile of channels, tile of pixels    `stages` of them on their way
//     load the image's part with its border    the least number beyond the image
//     for row, word of channels
//       for column, kh, kw, channel: max       one instruction
//     store the tile
//
// Declines averages, and int8 with a border unless channels fill words.
#include <algorithm>
#include <array>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/integer_types.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/te/te.h"
#include "templates/npu/npu_templates.h"
#include "templates/npu/npu_tiles.h"

namespace tuner {
namespace {

// What an instruction takes, and in words: from tap to tap, and from result to result.
constexpr int64_t kMostPoolTaps = 15, kMostPoolStep = 255;

bool has_border(const Pool2dWorkload& w) { return w.padding != std::array<int64_t, 4>{}; }

// The image of a convolution with the same windows.
Conv2dWorkload windows_of(const Pool2dWorkload& w) {
  Conv2dWorkload c{.batch = w.batch,
                   .in_channels = w.channels,
                   .in_height = w.in_height,
                   .in_width = w.in_width,
                   .out_channels = w.channels,
                   .kernel_height = w.kernel_height,
                   .kernel_width = w.kernel_width};
  c.stride = w.stride;
  c.padding = w.padding;
  return c;
}

// Beyond whole tiles and channels a tile is filled up with 0, and so must the border be: with int8 it is not,
// and tiles are parts of the result without a rest.
bool needs_whole_tiles(const Pool2dWorkload& w) { return w.dtype == DType::kInt8 && has_border(w); }

// The tiles that one machine has room for: a part of the image, and of out.
struct PoolSizes {
  using Tile = npu_tiles::WindowTile;

  PoolSizes(const Pool2dWorkload& pool, const npu::Machine& machine) : p(pool), m(machine) {
    const auto some = needs_whole_tiles(p) ? npu_tiles::dividing_tiles : npu_tiles::equal_tiles;
    tiles = {.h = some(p.out_height(), 1, p.out_height()),
             .w = some(p.out_width(), 1, std::min(npu_tiles::kMostRows, p.out_width())),
             .c = some(p.channels, m.bank_bytes, kMostPoolStep * m.bank_bytes / p.stride[1])};
  }
  template <class Int>
  Int bytes(const Int& tile_h, const Int& tile_w, const Int& tile_c, const Int& stages) const {
    return tile_c * (stages * row_pixels(tile_w) * npu_tiles::reach(tile_h, p.stride[0], p.kernel_height, 1) +
                     tile_h * tile_w);
  }
  template <class Int>
  Int row_pixels(const Int& tile_w) const {
    return npu_tiles::reach(tile_w, p.stride[1], p.kernel_width, 1);
  }
  bool fits(const Tile& t) const {
    return bytes(t.h, t.w, t.c, t.stages) <= m.scratchpad_bytes &&
           row_pixels(t.w) * t.c <= npu_tiles::kMostRowStride * m.bank_bytes;
  }
  // With room for a second result, which is made while the first one is stored.
  Tile first() const {
    Tile t = npu_tiles::fitting(
        {tiles.h.front(), tiles.w.front(), npu_tiles::at_most(tiles.c, 4 * m.bank_bytes), 2}, tiles,
        [&](const Tile& tile) {
          return fits(tile) &&
                 bytes(tile.h, tile.w, tile.c, tile.stages) + tile.h * tile.w * tile.c <= m.scratchpad_bytes;
        });
    if (!fits(t) || ceil_div(p.out_height(), t.h) * ceil_div(p.out_width(), t.w) < 2) t.stages = 1;
    return t;
  }

  const Pool2dWorkload& p;
  const npu::Machine& m;
  npu_tiles::WindowTiles tiles;
};

class Pool2dNpu final : public ScheduleTemplate<Pool2dWorkload, npu_tiles::WindowKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "pool2d_npu"; }
  int version() const override { return 1; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Pool2dWorkload& w, const Target& t) const override {
    if (!is_npu(t)) return needs_target("an NPU", t);
    if (!is_channels_last(w.layout)) return declined("needs layout NHWC, got ", w.layout);
    if (w.pooling != Pooling::kMax) return declined("needs pooling max, got ", pooling_name(w.pooling));
    if (w.dtype != DType::kUInt8 && w.dtype != DType::kInt8)
      return declined("needs int8 or uint8, got ", w.dtype);
    if (const npu::Machine m = machine_of(t); needs_whole_tiles(w) && w.channels % m.bank_bytes != 0)
      return declined("needs padding 0 with int8, or a multiple of ", m.bank_bytes, " channels, got ",
                      w.channels);
    if (w.channels < 2) return declined("needs 2 channels, got ", w.channels);
    if (std::max(w.kernel_height, w.kernel_width) > kMostPoolTaps)
      return declined("needs kernels of at most ", kMostPoolTaps, ", got ", w.kernel_height, " and ",
                      w.kernel_width);
    const npu::Machine m = machine_of(t);
    const PoolSizes sizes(w, m);
    if (sizes.tiles.c.empty() || !sizes.fits({1, 1, sizes.tiles.c.back(), 1}))
      return declined("needs a scratchpad for one window, or a smaller stride");
    return supported();
  }

  npu_tiles::WindowKnobs declare(ConfigSpace& space, const Pool2dWorkload& w,
                                 const Target& t) const override {
    const npu::Machine m = machine_of(t);
    const PoolSizes sizes(w, m);
    const npu_tiles::WindowKnobs k =
        npu_tiles::declare_windows(space, sizes.tiles, sizes.first(), w.out_height(), w.out_width());
    space.require(sizes.bytes(IntExpr(k.tile_h), IntExpr(k.tile_w), IntExpr(k.tile_c), IntExpr(k.stages)) <=
                  m.scratchpad_bytes);
    space.require(sizes.row_pixels(IntExpr(k.tile_w)) * k.tile_c <= npu_tiles::kMostRowStride * m.bank_bytes);
    return k;
  }

  // With the border as a stage of its own, which is loaded.
  Program compute(const Pool2dWorkload& w) const override {
    using te::Indices;
    te::Builder b("pool2d", w.dtype);
    const Buffer data = b.input("data", {w.batch, w.in_height, w.in_width, w.channels});
    const int64_t height = w.in_height + w.padding[0] + w.padding[2],
                  width = w.in_width + w.padding[1] + w.padding[3];
    const Buffer image =
        !has_border(w) ? data
                       : b.compute("padded", {w.batch, height, width, w.channels}, [&](const Indices& i) {
                           const Expr row = i[1] - w.padding[0], column = i[2] - w.padding[1];
                           return select(row >= 0 && row < w.in_height && column >= 0 && column < w.in_width,
                                         load(data, {i[0], row, column, i[3]}),
                                         int_imm(range_of(w.dtype).first, w.dtype));
                         });
    const std::vector<int64_t> shape = {w.batch, w.out_height(), w.out_width(), w.channels};
    const std::vector<std::string> names = {"n", "oh", "ow", "c"};
    const Buffer acc = b.reduce(
        "acc", shape, {{"kh", w.kernel_height}, {"kw", w.kernel_width}}, ReduceOp::kMax,
        [&](const Indices& i, const Indices& r) {
          return load(image, {i[0], i[1] * w.stride[0] + r[0], i[2] * w.stride[1] + r[1], i[3]});
        },
        BufferRole::kIntermediate, names);
    b.compute(
        "out", shape, [&](const Indices& i) { return load(acc, i); }, BufferRole::kOutput, names);
    return b.finish();
  }

  void schedule(Schedule& s, const Pool2dWorkload& w, const Target& t, const npu_tiles::WindowKnobs& k,
                const Config& c) const override {
    const int64_t tile_c = c[k.tile_c];
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    const Tensor image = npu_tiles::tiled_image(s, windows_of(w), {c[k.tile_h], c[k.tile_w], tile_c});
    s.set_scope(image, MemoryScope::kShared);
    s.set_scope(acc, MemoryScope::kShared);

    const auto [pixel_tile, c_tile] = npu_tiles::tile_out(s, out, {c[k.tile_h], c[k.tile_w], tile_c});
    s.reorder({c_tile, pixel_tile});
    s.compute_at(acc, pixel_tile);
    const std::vector<Axis> own = s.spatial_axes(acc), taps = s.reduce_axis_list(acc);
    if (s.refused()) return;
    const auto [block, lane] = s.split(own[3], machine_of(t).bank_bytes);
    s.reorder({own[1], block, own[2], taps[0], taps[1], lane});
    s.decompose_reduction(acc, own[1]);
    s.compute_at(image, pixel_tile);
    if (c[k.stages] > 1) s.pipeline({image}, pixel_tile, c[k.stages]);
  }
};

}  // namespace

const AnyTemplate& pool2d_npu() {
  static const Pool2dNpu instance;
  return instance;
}

}  // namespace tuner
