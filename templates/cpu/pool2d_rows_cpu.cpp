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
//         vectorized ow_inner (blocked layouts, NHWC: unrolled ow_inner, vectorized channel)
//       unrolled kh, oh_inner
//         vectorized ow_inner
//       write the tile
//
// Declines types other than float32 (but for maxima of bytes in NCHW and NHWC), windows that do not overlap
// vertically, and windows too large to be written out.
#include <algorithm>

#include "compiler_core/te/te.h"
#include "templates/cpu/cpu_images.h"
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
  bool serves_channels_last() const override { return true; }

  Support supports(const Pool2dWorkload& w, const Target& t) const override {
    const Support rows = cpu::supports_pooling(t, w);
    if (!rows.yes) return rows;
    if (w.kernel_height <= w.stride[0] || w.out_height() == 1)
      return declined("needs windows that share rows, got ", w.kernel_height, " rows each and a stride of ",
                      w.stride[0], " in an output of ", w.out_height());
    if (w.kernel_width < 2 || w.kernel_width > kMostUnrolled || w.kernel_height > kMostUnrolled)
      return declined("needs windows of 2 to ", kMostUnrolled, " columns and at most ", kMostUnrolled,
                      " rows, got ", w.kernel_height, "x", w.kernel_width);
    if (most_rows(w, t) < w.kernel_height)
      return declined("needs registers for ", w.kernel_height, " rows, got ", most_rows(w, t));
    // Of vectors of channels, windows read neighbours without a shuffle: there pool2d_cpu's default is the
    // faster one (3x3, stride 2).
    return is_planar(w.layout) ? supported() : supported_as_second();
  }

  Pool2dRowsKnobs declare(ConfigSpace& space, const Pool2dWorkload& w, const Target& t) const override {
    const int64_t lanes = is_planar(w.layout) ? cpu::pixels_of_vector(t, w) : 1;
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
    const bool by_channels = !is_planar(w.layout);
    const Tensor rows = s.tensor("rows"), acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(rows, MemoryScope::kRegister);
    s.set_scope(acc, MemoryScope::kRegister);
    cpu::ImageAxes image = cpu::image_axes(s, out, w.layout);
    if (s.refused()) return;
    const auto [oh_outer, oh_inner] = s.split(image.h, c[k.tile_oh]);
    const auto [ow_outer, ow_inner] = s.split(image.w, c[k.tile_ow].inner);
    if (is_channels_last(w.layout)) {
      const auto [block, channel] = s.split(image.c, cpu::channels_of_vector(t, w));
      s.reorder({image.n, oh_outer, block, ow_outer, oh_inner, ow_inner, channel});
      image.c = block;
      image.in_block = channel;
    } else {
      s.reorder({oh_outer, ow_outer, oh_inner, ow_inner});
    }
    s.unroll(oh_inner);
    s.compute_at(acc, ow_outer);
    s.compute_at(rows, ow_outer);
    s.vectorize(by_channels ? image.in_block : ow_inner);
    if (by_channels) s.unroll(ow_inner);
    write_out(s, acc, w.layout);
    write_out(s, rows, w.layout);
    if (t.threads <= 1) return;
    s.parallel(is_channels_last(w.layout) ? s.fuse({image.n, oh_outer, image.c})
                                          : s.fuse({image.n, image.c, oh_outer}));
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
  static void write_out(Schedule& s, const Tensor& t, std::string_view layout) {
    const std::vector<Axis> own = s.spatial_axes(t);
    const auto [k] = s.reduce_axes<1>(t);
    if (s.refused()) return;
    std::vector<Axis> order = {k};
    order.insert(order.end(), own.begin(), own.end());
    s.reorder(order);
    s.decompose_reduction(t, k);
    s.skip_zeros(t);
    s.unroll(k);
    const size_t row = is_channels_last(layout) ? 1 : 2;
    s.unroll(own[row]);
    if (!is_planar(layout)) s.unroll(own[row + 1]);
    s.vectorize(own.back());
  }
};

}  // namespace

const AnyTemplate& pool2d_rows_cpu() {
  static const Pool2dRowsCpu instance;
  return instance;
}

}  // namespace tuner
