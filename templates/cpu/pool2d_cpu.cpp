// pool2d_cpu: maximum and average pooling on any CPU with vectors; data and output in one layout.
//
//   out[n, c, oh, ow] = max or average over kh, kw of data[n, c, oh*sh + kh - top, ow*sw + kw - left]
//
// Blocked layouts: vectors are blocks of channels. NHWC: `vectors` vectors of channels together.
//
//   parallel n, channel block, oh       (NHWC: n, oh, channel block)
//     for ow_outer
//       for kh                          if inside the image
//         unrolled kw, ow_inner         if inside the image, decided ahead: only border tiles skip anything
//           vectorized channel
//       write the tile
//
// NCHW: vectors are pixels of a row of the output, masked where a window leaves the image:
//
//   parallel n, c, block of rows
//     for ow_outer
//       for kh, kw                      kw unrolled when `unroll_kw` is set
//         unrolled oh_inner             if inside the image, decided ahead
//           vectorized ow_inner
//       write the tile
//
// or, for one window an image (global pooling), pixels of the window:
//
//   parallel n, c
//     each lane its own pixels, then all lanes
//
// Declines types other than float32, but for maxima of bytes in NCHW and NHWC.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/cpu_images.h"
#include "templates/cpu/cpu_rows.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {
namespace {

struct Pool2dKnobs {
  SplitKnob tile_ow;
  ChoiceKnob tile_oh;
  ChoiceKnob vectors;
  FlagKnob unroll_kw;
};

class Pool2dCpu final : public ScheduleTemplate<Pool2dWorkload, Pool2dKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "pool2d_cpu"; }
  int version() const override { return 2; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Pool2dWorkload& w, const Target& t) const override {
    return cpu::supports_pooling(t, w);
  }

  Pool2dKnobs declare(ConfigSpace& space, const Pool2dWorkload& w, const Target& t) const override {
    const bool by_channels = !is_planar(w.layout), global = cpu::pools_whole_images(w);
    const int64_t lanes = by_channels ? 1 : cpu::pixels_of_vector(t, w);
    const int64_t width = is_channels_last(w.layout) ? t.f32_lanes() : channel_block(w.layout);
    // Elements of accumulators, beside one vector that is read.
    const int64_t most = std::max<int64_t>((t.vector_registers() - 1) * t.f32_lanes() / width, 1);
    const bool unrolls_first = !global && w.kernel_width > 1 && w.kernel_width <= kMostUnrolled;
    Pool2dKnobs k{
        // Pixels of a tile: more are under way at once; few border tiles differ from the others.
        .tile_ow = space.split("tile_ow", w.out_width())
                       .multiples_of(lanes)
                       .at_most(global ? lanes : std::min(most, 16 * lanes))
                       .try_first(first_columns(w, t, most, lanes)),
        // Rows of a tile of pixels: sums of different rows do not wait for each other, and one mask is
        // theirs.
        .tile_oh = space.choice("tile_oh", {1, 2, 4, 7, 8})
                       .at_most(by_channels || global ? 1 : w.out_height())
                       .try_first(by_channels || global ? 1 : 4),
        // Of a step through a window that is the image; of channels in NHWC.
        .vectors = cpu::declare_vectors(space, t, columns_of_vectors(w), first_vectors(w)),
        // Which elements of a row are inside is then known where the code is written.
        .unroll_kw = space.flag("unroll_kw").try_first(unrolls_first),
    };
    // Longer bodies only compile longer.
    IntExpr stores = by_channels ? k.tile_ow.inner() : k.tile_ow.inner() / lanes * k.tile_oh;
    if (is_channels_last(w.layout)) stores = stores * k.vectors;
    // The tile is in registers, beside what is read.
    if (channel_block(w.layout) == 1) space.require(stores + 2 <= t.vector_registers());
    space.require(!k.unroll_kw || stores * w.kernel_width <= kMaxBody);
    if (global || w.kernel_width == 1) space.require(k.unroll_kw == 0);
    return k;
  }

  Program compute(const Pool2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Pool2dWorkload& w, const Target& t, const Pool2dKnobs& k,
                const Config& c) const override {
    if (cpu::pools_whole_images(w))
      pool_images(s, t, c[k.vectors] * t.f32_lanes());
    else
      pool_windows(s, w, t, k, c);
  }

 private:
  static constexpr int64_t kMostUnrolled = 7;
  static constexpr int64_t kMaxBody = 128;  // vector operations in one unrolled body

  // What the vectors of a step are of: pixels of a whole image, or channels that lie side by side.
  static int64_t columns_of_vectors(const Pool2dWorkload& w) {
    if (is_channels_last(w.layout))
      return ceil_div(w.channels * dtype_bytes(w.dtype), dtype_bytes(DType::kFloat32));
    return cpu::pools_whole_images(w) ? w.kernel_height * w.kernel_width : 1;
  }
  static int64_t first_vectors(const Pool2dWorkload& w) {
    // The sums of one pixel would wait for each other.
    return is_channels_last(w.layout) && w.out_width() < 4 ? 8 : 2;
  }
  static int64_t first_columns(const Pool2dWorkload& w, const Target& t, int64_t most, int64_t lanes) {
    if (is_planar(w.layout)) return 2 * lanes;
    if (is_channels_last(w.layout)) most = (t.vector_registers() - 2) / first_vectors(w);
    return std::min<int64_t>(8, most);
  }

  static void pool_windows(Schedule& s, const Pool2dWorkload& w, const Target& t, const Pool2dKnobs& k,
                           const Config& c) {
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(acc, MemoryScope::kRegister);
    cpu::ImageAxes image = cpu::image_axes(s, out, w.layout);
    const std::vector<Axis> own = s.spatial_axes(acc);  // in the order of out
    const auto [kh, kw] = s.reduce_axes<2>(acc);
    if (s.refused()) return;
    const bool by_channels = !is_planar(w.layout);
    const auto [ow_outer, ow_inner] = s.split(image.w, c[k.tile_ow].inner);
    Axis row_block = image.h;
    if (!by_channels) {
      const auto [oh_outer, oh_inner] = s.split(image.h, c[k.tile_oh]);
      s.reorder({oh_outer, ow_outer, oh_inner, ow_inner});
      s.unroll(oh_inner);
      row_block = oh_outer;
    }
    if (is_channels_last(w.layout)) {
      const auto [block, channel] = s.split(image.c, c[k.vectors] * cpu::channels_of_vector(t, w));
      s.reorder({image.n, image.h, block, ow_outer, ow_inner, channel});
      image.c = block;
      image.in_block = channel;
    }
    s.compute_at(acc, ow_outer);
    s.vectorize(by_channels ? image.in_block : ow_inner);
    if (by_channels) s.unroll(ow_inner);

    std::vector<Axis> order = {kh, kw};
    order.insert(order.end(), own.begin(), own.end());
    s.reorder(order);
    s.decompose_reduction(acc, kh);
    s.skip_zeros(acc);
    if (c[k.unroll_kw]) s.unroll(kw);
    s.unroll(is_channels_last(w.layout) || !by_channels ? own[2] : own[3]);
    s.vectorize(own.back());
    if (t.threads <= 1) return;
    s.parallel(is_channels_last(w.layout) ? s.fuse({image.n, row_block, image.c})
                                          : s.fuse({image.n, image.c, row_block}));
  }

  static void pool_images(Schedule& s, const Target& t, int64_t wide) {
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    const auto [kh, kw] = s.reduce_axes<2>(acc);
    s.fuse({kh, kw});
    const Tensor lanes = cpu::sums_of_lanes(s, acc, wide);
    const auto [n, channel, oh, ow] = s.axes<4>(out);
    cpu::compute_total(s, acc, lanes, ow);
    if (t.threads > 1) s.parallel(s.fuse({n, channel}));
  }
};

}  // namespace

const AnyTemplate& pool2d_cpu() {
  static const Pool2dCpu instance;
  return instance;
}

}  // namespace tuner
