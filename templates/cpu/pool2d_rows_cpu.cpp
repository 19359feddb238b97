// pool2d_rows_cpu: pooling by overlapping windows on any CPU with vectors, a row of the image at a time.
//
//   rows[n, c, ih, ow] = max or sum over kw of data[n, c, ih - top, ow*sw + kw - left]
//   out[n, c, oh, ow]  = max or average over kh of rows[n, c, oh*sh + kh, ow]
//
// The windows of neighbouring rows of the output share what `rows` holds: for 3x3 with stride 1 and a tile of
// 4 rows, 20 operations in place of 36.
//
//   parallel n, c, block of rows
//     for ow_outer
//       unrolled rows of the image, kw       if inside, decided ahead
//         vectorized ow_inner (blocked layouts: unrolled ow_inner, vectorized channel)
//       unrolled kh, oh_inner
//         vectorized ow_inner
//       write the tile
//
// Declines types other than float32, windows that do not overlap vertically, and windows too large to be
// written out.
#include <algorithm>

#include "compiler_core/te/te.h"
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct Pool2dRowsKnobs {
  SplitKnob tile_ow;
  ChoiceKnob tile_oh;
};

class Pool2dRowsCpu final : public ScheduleTemplate<Pool2dWorkload, Pool2dRowsKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "pool2d_rows_cpu"; }
  int version() const override { return 1; }

  Support supports(const Pool2dWorkload& w, const Target& t) const override {
    const Support rows = cpu::supports_rows(t, w.dtype);
    if (!rows.yes) return rows;
    if (w.kernel_height <= w.stride[0] || w.out_height() == 1)
      return declined("needs windows that share rows, got ", w.kernel_height, " rows each and a stride of ",
                      w.stride[0], " in an output of ", w.out_height());
    if (w.kernel_width < 2 || w.kernel_width > kMostUnrolled || w.kernel_height > kMostUnrolled)
      return declined("needs windows of 2 to ", kMostUnrolled, " columns and at most ", kMostUnrolled,
                      " rows, got ", w.kernel_height, "x", w.kernel_width);
    if (most_rows(w, t) < w.kernel_height)
      return declined("needs registers for ", w.kernel_height, " rows, got ", most_rows(w, t));
    // Of blocks, windows read neighbours without a shuffle: there pool2d_cpu's default is the faster one
    // (3x3, stride 2).
    return channel_block(w.layout) > 1 ? supported_as_second() : supported();
  }

  Pool2dRowsKnobs declare(ConfigSpace& space, const Pool2dWorkload& w, const Target& t) const override {
    const int64_t lanes = channel_block(w.layout) > 1 ? 1 : t.f32_lanes();
    const int64_t fit =
        (most_rows(w, t) - w.kernel_height) / w.stride[0] + 1;  // rows of the output, a pixel wide
    Pool2dRowsKnobs k{
        .tile_ow =
            space.split("tile_ow", w.out_width()).multiples_of(lanes).at_most(8 * lanes).try_first(lanes),
        // More rows share more; they take registers.
        .tile_oh = space.choice("tile_oh", {1, 2, 3, 4, 6, 8, 12, 14, 16})
                       .at_most(w.out_height())
                       .try_first(std::min<int64_t>(fit, 4)),
    };
    const IntExpr vectors = k.tile_ow.inner() / lanes * registers_of_pixel(w, t);
    const IntExpr rows = (k.tile_oh - 1) * w.stride[0] + w.kernel_height;
    // The rows of the image stay in registers, beside the sums and what is read.
    space.require(rows * vectors + kOtherRegisters <= t.vector_registers());
    space.require(rows * vectors * w.kernel_width <= kMaxBody);
    return k;
  }

  Program compute(const Pool2dWorkload& w) const override {
    return pool2d_in(PoolOrder::kColumnsThenRows, w);
  }

  void schedule(Schedule& s, const Pool2dWorkload& w, const Target& t, const Pool2dRowsKnobs& k,
                const Config& c) const override {
    const bool by_channels = channel_block(w.layout) > 1;
    const Tensor rows = s.tensor("rows"), acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(rows, MemoryScope::kRegister);
    s.set_scope(acc, MemoryScope::kRegister);
    const std::vector<Axis> axes = s.axes(out);  // n, c, oh, ow[, channel of a block]
    if (s.refused()) return;
    const auto [oh_outer, oh_inner] = s.split(axes[2], c[k.tile_oh]);
    const auto [ow_outer, ow_inner] = s.split(axes[3], c[k.tile_ow].inner);
    s.reorder({oh_outer, ow_outer, oh_inner, ow_inner});
    s.unroll(oh_inner);
    s.compute_at(acc, ow_outer);
    s.compute_at(rows, ow_outer);
    s.vectorize(by_channels ? axes[4] : ow_inner);
    if (by_channels) s.unroll(ow_inner);
    write_out(s, acc, by_channels);
    write_out(s, rows, by_channels);
    if (t.threads > 1) s.parallel(s.fuse({axes[0], axes[1], oh_outer}));
  }

 private:
  static constexpr int64_t kMostUnrolled = 7;
  static constexpr int64_t kMaxBody = 256;       // vector operations in one unrolled body
  static constexpr int64_t kOtherRegisters = 2;  // for what is read

  // Registers that the channels of a block take; of pixels one.
  static int64_t registers_of_pixel(const Pool2dWorkload& w, const Target& t) {
    return std::max<int64_t>(channel_block(w.layout) / t.f32_lanes(), 1);
  }
  // Rows of the image that fit the registers in the narrowest tile.
  static int64_t most_rows(const Pool2dWorkload& w, const Target& t) {
    return (t.vector_registers() - kOtherRegisters) / registers_of_pixel(w, t);
  }

  // A reduction over one side of the windows, all of it in registers.
  static void write_out(Schedule& s, const Tensor& t, bool by_channels) {
    const std::vector<Axis> own = s.spatial_axes(t);
    const auto [k] = s.reduce_axes<1>(t);
    if (s.refused()) return;
    std::vector<Axis> order = {k};
    order.insert(order.end(), own.begin(), own.end());
    s.reorder(order);
    s.decompose_reduction(t, k);
    s.skip_zeros(t);
    s.unroll(k);
    s.unroll(own[2]);
    if (by_channels) s.unroll(own[3]);
    s.vectorize(own.back());
  }
};

}  // namespace

const AnyTemplate& pool2d_rows_cpu() {
  static const Pool2dRowsCpu instance;
  return instance;
}

}  // namespace tuner
