// depthwise_conv2d_rows_cpu: convolution of each channel by itself, of planar images (NCHW in and out), by
// overlapping windows, a row of the image at a time; on any CPU with vectors.
//
//   out[n, c, oh, ow] = act(sum over kh, kw of data[n, c, oh*sh + kh*dh - top, ow*sw + kw*dw - left]
//                                              * weight[c, 0, kh, kw] + bias[c] + residual[...])
//
//   parallel n, c
//     copy[r, phase, x] = data[n, c, r - top, x*sw + phase - left], zeros around: where `copy` is set
//     for oh_outer, ow_outer
//       for kw                                 written out with unroll_kw
//         unrolled row r of the image          loaded once, for all rows of out whose window has it
//           unrolled oh_inner
//             vectorized ow_inner
//       write the tile
//
// A tile of 4 rows and a window of 7 read 10 rows for 28 multiply-adds a vector; by taps
// (depthwise_conv2d_cpu) each multiply-add has a load of its own. Only kw is a loop, so the weights of one
// column of the window stay in registers. With a copy no sum is masked and no border is code of its own; of
// a stride the columns of one phase then lie side by side, where they would be picked out of two vectors for
// each tap.
//
// bfloat16 and int8 become float32 and int32 where they are loaded. Declines windows that share no rows.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/conv2d_cpu_tile.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"

namespace tuner {

using namespace conv2d_cpu;

namespace {

struct DepthwiseRowsKnobs {
  SplitKnob tile_oh, tile_ow;
  FlagKnob unroll_kw, copy;
};

class DepthwiseConv2dRowsCpu final : public ScheduleTemplate<Conv2dWorkload, DepthwiseRowsKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "depthwise_conv2d_rows_cpu"; }
  int version() const override { return 1; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (cpu::dot_group(w.dtype) == 0) return declined("needs float32, bfloat16 or int8, got ", w.dtype);
    if (w.groups != w.in_channels || w.out_channels != w.in_channels)
      return declined("needs one channel in and out of each group, got ", w.in_channels, " and ",
                      w.out_channels, " in ", w.groups, " groups");
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (w.out_layout != "NCHW") return declined("needs out_layout NCHW, got ", w.out_layout);
    if (w.out_height() == 1 || reach(w) < w.stride[0])
      return declined("needs windows that share rows, got ", w.kernel_height, " rows each and a stride of ",
                      w.stride[0], " in an output of ", w.out_height());
    if (w.kernel_height > kMostRows)
      return declined("needs windows of at most ", kMostRows, " rows, got ", w.kernel_height);
    // First configs were compared for windows of 5 rows and more only (tests/bench/HISTORY.md).
    return w.kernel_height < 5 ? supported_as_second() : supported();
  }

  DepthwiseRowsKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const int64_t lanes = t.f32_lanes(), registers = t.vector_registers();
    // Half a vector at the end of a row is one instruction, too, and leaves fewer lanes idle.
    const int64_t unit = std::max<int64_t>(lanes / 2, 1);
    const First first = first_of(w, lanes, unit, registers);
    DepthwiseRowsKnobs k{
        // Rows of a tile: more share the rows of the image that they read.
        .tile_oh =
            space.split("tile_oh", w.out_height()).at_most(registers - kOtherRegisters).try_first(first.rows),
        // Pixels of a row of a tile: they share the weights.
        .tile_ow = space.split("tile_ow", w.out_width())
                       .multiples_of(unit)
                       .at_most(8 * lanes)
                       .try_first(first.columns),
        // All columns of the window in one body: vectors that several taps read may stay; the code grows.
        .unroll_kw = space.flag("unroll_kw").try_first(first.unroll_kw),
        // One more pass over the image, for loads without masks.
        .copy = space.flag("copy").try_first(first.copy),
    };
    const IntExpr vectors = k.tile_oh.inner() * ceil_div(k.tile_ow.inner(), lanes);
    space.require(vectors + kOtherRegisters <= registers);
    const IntExpr body = vectors * w.kernel_height * (k.unroll_kw * (w.kernel_width - 1) + 1);
    space.require(body <= kMaxRowsBody || (vectors == 1 && k.unroll_kw == 0));
    // Without a copy, tiles at the border are code of their own.
    space.require(k.copy || body <= kMaxBody || (vectors == 1 && k.unroll_kw == 0));
    space.require(ceil_div(w.out_height(), k.tile_oh.outer()) == k.tile_oh.inner());
    if (w.kernel_width == 1) space.require(k.unroll_kw == 0);
    if (!pads(w) && w.stride[1] == 1) space.require(k.copy == 0);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override { return Workload(w).compute(); }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const DepthwiseRowsKnobs& k,
                const Config& c) const override {
    const int64_t columns = c[k.tile_ow].inner;
    Tensor copied;
    if (c[k.copy])
      copied = copy_image(s, w, round_up(w.out_width(), columns));
    else if (pads(w))
      s.inline_compute(s.tensor("padded"));

    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    s.set_scope(acc, MemoryScope::kRegister);
    const auto [n, channel, oh, ow] = s.axes<4>(out);
    const auto [oh_outer, oh_inner] = s.split(oh, c[k.tile_oh].inner);
    const auto [ow_outer, ow_inner] = s.split(ow, columns);
    s.reorder({n, channel, oh_outer, ow_outer, oh_inner, ow_inner});
    s.compute_at(acc, ow_outer);
    s.unroll(oh_inner);
    s.vectorize(ow_inner);
    accumulate(s, acc, w, c[k.unroll_kw], pads(w) && !c[k.copy]);
    if (c[k.copy] && !Workload(w).is_constant("data")) {
      s.compute_at(copied, channel);
      if (s.refused()) return;
      s.vectorize(s.split(s.axes(copied).back(), t.f32_lanes()).inner);
    }
    if (t.threads <= 1) return;
    // Whole channels have a copy of their own.
    s.parallel(c[k.copy] ? s.fuse({n, channel}) : s.fuse({n, channel, oh_outer}));
  }

 private:
  static constexpr int64_t kMostRows = 16;
  static constexpr int64_t kOtherRegisters = 3;  // for what is read
  static constexpr int64_t kFewTaps = 25, kFewStridedTaps = 50;
  static constexpr int64_t kMaxRowsBody = 420;  // multiply-adds in the code of one tile

  // Rows of the image that a window reaches over, but one.
  static int64_t reach(const Conv2dWorkload& w) { return (w.kernel_height - 1) * w.dilation[0]; }

  // The values to try first: of small windows, and of strided ones, whose taps share vectors that are taken
  // apart, all taps of a tile one vector wide; of large ones a column of taps at a time, with as many rows as
  // leave registers to its weights.
  struct First {
    int64_t rows, columns;
    bool unroll_kw, copy;
  };
  static First first_of(const Conv2dWorkload& w, int64_t lanes, int64_t unit, int64_t registers) {
    First first{.rows = 1, .columns = unit, .unroll_kw = false, .copy = false};
    const int64_t taps = w.kernel_height * w.kernel_width;
    first.unroll_kw = w.kernel_width > 1 && taps <= (w.stride[1] > 1 ? kFewStridedTaps : kFewTaps);
    first.copy = !first.unroll_kw && (pads(w) || w.stride[1] > 1);
    first.columns = std::min(round_up(w.out_width(), unit), first.unroll_kw ? lanes : 2 * lanes);
    const int64_t vectors = ceil_div(first.columns, lanes);
    const int64_t weights = first.unroll_kw ? 0 : std::min(w.kernel_height, registers / 3);
    const int64_t fit = (registers - kOtherRegisters - weights) / vectors;
    const int64_t body = vectors * (first.unroll_kw ? taps : w.kernel_height);
    const int64_t most = std::max<int64_t>(std::min(fit, (first.copy ? kMaxRowsBody : kMaxBody) / body), 1);
    first.rows = ceil_div(w.out_height(), ceil_div(w.out_height(), most));
    return first;
  }

  // Lays the image out as [n, c, row, phase, column], with the zeros around it and as many more as make
  // every tile of `columns` outputs whole. Returns the copy.
  static Tensor copy_image(Schedule& s, const Conv2dWorkload& w, int64_t columns) {
    const int64_t stride = w.stride[1];
    const int64_t wide = columns + ceil_div((w.kernel_width - 1) * w.dilation[1], stride);
    const Tensor image = s.tensor(pads(w) ? "padded" : "data");
    std::vector<PackDim> dims = {{0}, {1}, {2}};
    if (stride > 1) dims.push_back({.dim = 3, .factor = stride, .inner = true});
    dims.push_back({.dim = 3, .factor = stride, .multiple = wide});
    const Tensor copied = s.pack(image, dims);
    if (pads(w)) s.inline_compute(image);
    return copied;
  }

  static void accumulate(Schedule& s, const Tensor& acc, const Conv2dWorkload& w, bool unroll_kw,
                         bool skips) {
    const auto [n, oh, ow, channel] = s.inner_axes<4>(acc);
    const auto [ic, kh, kw] = s.reduce_axes<3>(acc);
    s.reorder({ic, kw, kh, oh, channel, ow});
    s.decompose_reduction(acc, ic);
    const Axis row = s.skew(kh, oh, w.stride[0], w.dilation[0]);
    if (skips) s.skip_zeros(acc);
    if (unroll_kw) s.unroll(kw);
    s.unroll(row);
    s.unroll(oh);
    s.vectorize(ow);
  }
};

}  // namespace

const AnyTemplate& depthwise_conv2d_rows_cpu() {
  static const DepthwiseConv2dRowsCpu instance;
  return instance;
}

}  // namespace tuner
