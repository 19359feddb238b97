// depthwise_conv2d_nhwc_cuda: convolution of each channel with kernels of its own, on any NVIDIA GPU, NHWC.
//
//   out[n, oh, ow, oc] = act(sum over kh, kw of data[n, oh*sh + kh*dh - top, ow*sw + kw*dw - left, oc / m]
//                                               * weight[oc, 0, kh, kw] + bias[oc])      m = OC / IC
//
// A few multiply-adds for each element read: memory is the limit. The channels of a pixel lie side by side,
// so neighbouring threads take neighbouring channels, a vector each, and everything is read and written in
// whole lines. What windows share is read again through the first cache.
//
//   block: `threads_c` vectors of channels x a tile of rows x columns of one image        [n in blockIdx.z]
//     threads: threads_y x threads_x x threads_c, each inner_y x inner_x pixels of `vector` channels
//       for kh                                 unrolled by `unroll_kh`
//         a row of input -> registers, zeros in the padding
//         unrolled kw, tile of the thread      one multiply-add each
//       write the tile: bias, activation
//
// Serves groups = in_channels with any channel multiplier, stride, padding, dilation; float32, bfloat16 and
// float16 with float32 sums, int8 with int32 sums. Constant weights are packed ahead, channels innermost.
// Declines other groups and layouts.
#include <algorithm>
#include <array>

#include "compiler_core/base/int_math.h"
#include "compiler_core/te/te.h"
#include "templates/cuda/cuda_schedule.h"
#include "templates/cuda/cuda_templates.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using cuda::kWarp;
using cuda::power_of_two_at_least;
using cuda::reach;

struct DepthwiseConv2dNhwcKnobs {
  ChoiceKnob vector, threads_c, threads_y, threads_x, inner_y, inner_x;
  FlagKnob unroll_kh, channels_first;
  ChoiceKnob min_blocks;
};

bool has_packed_weight(const Conv2dWorkload& w) { return Workload(w).is_constant("weight"); }
int64_t multiplier(const Conv2dWorkload& w) { return w.out_channels / w.groups; }

// Channels that one access moves: as many as 16 bytes hold and the channels of a pixel are a multiple of.
int64_t widest_vector(const Conv2dWorkload& w) {
  if (multiplier(w) > 1) return 1;
  int64_t width = std::min<int64_t>(8, 16 / dtype_bytes(w.dtype));
  while (w.out_channels % width != 0) width /= 2;
  return width;
}

class DepthwiseConv2dNhwcCuda final : public ScheduleTemplate<Conv2dWorkload, DepthwiseConv2dNhwcKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "depthwise_conv2d_nhwc_cuda"; }
  int version() const override { return 1; }
  bool serves_channels_last() const override { return true; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (!is_channels_last(w.layout)) return declined("needs layout NHWC, got ", w.layout);
    if (!is_channels_last(w.out_layout)) return declined("needs out_layout NHWC, got ", w.out_layout);
    if (w.groups != w.in_channels)
      return declined("needs groups = in_channels (", w.in_channels, "), got ", w.groups);
    if (w.groups == 1) return declined("needs more than one channel; one is an ordinary convolution");
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    if (reach(1, w.kernel_width, 1, w.dilation[1]) > kMaxRow)
      return declined("needs a kernel that reaches over at most ", kMaxRow, " columns, got ",
                      reach(1, w.kernel_width, 1, w.dilation[1]));
    return supported();
  }

  DepthwiseConv2dNhwcKnobs declare(ConfigSpace& space, const Conv2dWorkload& w,
                                   const Target& t) const override {
    const First first = first_config(w);
    DepthwiseConv2dNhwcKnobs k{
        // Channels of one access: long ones save instructions, short ones leave more threads.
        .vector = space.choice("vector", {1, 2, 4, 8}).at_most(widest_vector(w)).try_first(first.vector),
        // Threads along channels: whole lines of memory. Then along rows and columns.
        .threads_c = space.choice("threads_c", {1, 2, 4, 8, 16, 32, 64}).try_first(first.threads_c),
        .threads_y = space.choice("threads_y", {1, 2, 4, 8, 16, 32}).try_first(first.threads_y),
        .threads_x = space.choice("threads_x", {1, 2, 4, 8, 16, 32}).try_first(first.threads_x),
        // Pixels of a thread: neighbours share what they read of the input.
        .inner_y = space.choice("inner_y", {1, 2, 3, 4}).try_first(first.inner_y),
        .inner_x = space.choice("inner_x", {1, 2, 4, 7, 8}).try_first(first.inner_x),
        .unroll_kh = space.flag("unroll_kh").try_first(first_unrolls(w, first)),
        // Neighbouring blocks of the grid lie along the channels of a tile, or along rows and columns.
        .channels_first = space.flag("channels_first").try_first(true),
        // Blocks that should fit a multiprocessor: bounds the registers of a thread.
        .min_blocks = space.choice("min_blocks", {1, 2, 3, 4, 6, 8}).try_first(1),
    };
    constrain(space, w, t, k);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override;

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target&, const DepthwiseConv2dNhwcKnobs& k,
                const Config& c) const override {
    const Tensor acc = s.tensor("acc"), out = s.tensor("out"), padded = s.tensor("padded"),
                 filter = s.tensor("filter");
    s.set_scope(acc, MemoryScope::kRegister);
    const Tensor rows = s.cache_read(padded, MemoryScope::kRegister, acc);
    const Tensor weights = s.cache_read(filter, MemoryScope::kRegister, acc);
    s.inline_compute(padded);
    if (has_packed_weight(w))
      s.precompute(filter);
    else
      s.inline_compute(filter);

    const auto [n, oh, ow, oc] = s.axes<4>(out);
    const auto [oh_block, oh_in_block] = s.split(oh, c[k.threads_y] * c[k.inner_y]);
    const auto [ow_block, ow_in_block] = s.split(ow, c[k.threads_x] * c[k.inner_x]);
    const auto [oc_block, oc_in_block] = s.split(oc, c[k.threads_c] * c[k.vector]);
    const auto [oh_thread, y] = s.split(oh_in_block, c[k.inner_y]);
    const auto [ow_thread, x] = s.split(ow_in_block, c[k.inner_x]);
    const auto [oc_thread, channel] = s.split(oc_in_block, c[k.vector]);
    const std::array<Axis, 3> grid = c[k.channels_first] ? std::array<Axis, 3>{oh_block, ow_block, oc_block}
                                                         : std::array<Axis, 3>{oc_block, oh_block, ow_block};
    s.reorder({grid[0], grid[1], grid[2], oh_thread, ow_thread, oc_thread, y, x, channel});
    const Axis tiles = s.rename(s.fuse(grid), "tile");
    const Axis thread = s.rename(s.fuse({oh_thread, ow_thread, oc_thread}), "thread");
    cuda::bind_grid(s, w.batch > 1 ? n : Axis{}, {}, tiles);
    s.bind(thread, LoopKind::kThreadX);
    s.compute_at(acc, thread);
    s.unroll(s.rename(y, "y"));
    s.unroll(s.rename(x, "x"));
    cuda::vectorize_by(s, channel, c[k.vector]);
    accumulate(s, acc, rows, weights, c[k.unroll_kh], c[k.vector]);
    if (c[k.min_blocks] > 1) s.launch_bounds(static_cast<int>(c[k.min_blocks]));
  }

 private:
  // A default config; values of the knobs of the same names.
  struct First {
    int64_t vector = 1, threads_c = 1, threads_y = 1, threads_x = 1, inner_y = 1, inner_x = 1;
  };
  static constexpr int64_t kMaxRow = 64;        // columns that a kernel reaches over: they are in registers
  static constexpr int64_t kMaxRegisters = 96;  // of a row of input
  static constexpr int64_t kMaxBlock = 128;     // rows or columns of a block

  static void constrain(ConfigSpace& space, const Conv2dWorkload& w, const Target& t,
                        const DepthwiseConv2dNhwcKnobs& k);
  static void accumulate(Schedule& s, const Tensor& acc, const Tensor& rows, const Tensor& weights,
                         bool unroll_kh, int64_t vector);
  static First first_config(const Conv2dWorkload& w);
  static bool first_unrolls(const Conv2dWorkload& w, const First& first) {
    return w.kernel_height > 1 &&
           first.vector * first.inner_y * first.inner_x * w.kernel_height * w.kernel_width <= 512;
  }
};

// The math of the workload over an input that is padded further: with zeros for whatever a tile may read past
// the last pixel.
Program DepthwiseConv2dNhwcCuda::compute(const Conv2dWorkload& w) const {
  using te::Indices;
  const DType sums = sum_dtype(w.dtype);
  te::Builder b("depthwise_conv2d", sums);
  const int64_t top = w.padding[0], left = w.padding[1];
  const Buffer data = b.input("data", {w.batch, w.in_height, w.in_width, w.in_channels}, left_dtype(w.dtype));
  const std::vector<int64_t> weights = {w.out_channels, 1, w.kernel_height, w.kernel_width};
  const Buffer weight =
      has_packed_weight(w) ? b.constant("weight", weights, w.dtype) : b.input("weight", weights, w.dtype);
  const Epilogue epilogue = declare_unpacked_epilogue(b, w);
  const int64_t rows = reach(w.out_height() + kMaxBlock, w.kernel_height, w.stride[0], w.dilation[0]);
  const int64_t columns = reach(w.out_width() + kMaxBlock, w.kernel_width, w.stride[1], w.dilation[1]);
  const Buffer padded =
      b.compute("padded", {w.batch, rows, columns, w.in_channels},
                [&](const Indices& i) {
                  const Expr row = i[1] - top, column = i[2] - left;
                  Expr inside = row < w.in_height && column < w.in_width;
                  if (top > 0) inside = inside && row >= 0;
                  if (left > 0) inside = inside && column >= 0;
                  return select(inside, load(data, {i[0], row, column, i[3]}), zero_of(data->dtype));
                },
                BufferRole::kIntermediate, {"n", "row", "column", "ic"});
  const Buffer filter = b.compute("filter", {w.kernel_height, w.kernel_width, w.out_channels},
                                  [&](const Indices& i) {
                                    return load(weight, {i[2], 0, i[0], i[1]});
                                  },
                                  BufferRole::kIntermediate, {"kh", "kw", "oc"});
  const Buffer acc =
      b.reduce("acc", {w.batch, w.out_height(), w.out_width(), w.out_channels},
               {{"kh", w.kernel_height}, {"kw", w.kernel_width}}, ReduceOp::kSum,
               [&](const Indices& i, const Indices& r) {
                 return cast(sums, load(padded, {i[0], i[1] * w.stride[0] + r[0] * w.dilation[0],
                                                 i[2] * w.stride[1] + r[1] * w.dilation[1],
                                                 floor_div(i[3], multiplier(w))})) *
                        cast(sums, load(filter, {r[0], r[1], i[3]}));
               },
               BufferRole::kIntermediate, {"n", "oh", "ow", "oc"});
  b.compute("out", {w.batch, w.out_height(), w.out_width(), w.out_channels},
            [&](const Indices& i) { return finished(epilogue, load(acc, i), i[3], i); }, BufferRole::kOutput,
            {"n", "oh", "ow", "oc"});
  return b.finish();
}

void DepthwiseConv2dNhwcCuda::constrain(ConfigSpace& space, const Conv2dWorkload& w, const Target& t,
                                        const DepthwiseConv2dNhwcKnobs& k) {
  const int64_t oc = w.out_channels, oh = w.out_height(), ow = w.out_width();
  const IntExpr threads = k.threads_c * k.threads_y * k.threads_x;
  const IntExpr block_y = k.threads_y * k.inner_y, block_x = k.threads_x * k.inner_x,
                block_c = k.threads_c * k.vector;
  const bool many = w.batch * oc * oh * ow >= cuda::kManyElements;
  space.require(threads % (many ? kWarp * cuda::kSchedulers : kWarp) == 0);
  space.require(threads <= 1024);
  // No block more than half beside out, as far as a block of whole warps can be that narrow.
  space.require(block_c < std::max<int64_t>(2 * oc, kWarp + 1));
  space.require(block_y < std::clamp<int64_t>(2 * oh, kWarp + 1, kMaxBlock + 1));
  space.require(block_x < std::clamp<int64_t>(2 * ow, kWarp + 1, kMaxBlock + 1));
  // A row of input in registers for each kh, a vector of weights, and the accumulators.
  const IntExpr row = k.vector * reach(k.inner_y, 1, w.stride[0], w.dilation[0]) *
                      reach(k.inner_x, w.kernel_width, w.stride[1], w.dilation[1]);
  space.require(row <= std::max(kMaxRegisters, reach(1, w.kernel_width, 1, w.dilation[1])));
  space.require(row + (k.inner_y * k.inner_x + 1) * k.vector + cuda::kOtherRegisters <=
                cuda::register_limit(t, threads, k.min_blocks));
  space.require(k.vector * k.inner_y * k.inner_x * w.kernel_width *
                    (k.unroll_kh * (w.kernel_height - 1) + 1) <=
                cuda::kMaxBody);
  if (w.kernel_height == 1) space.require(k.unroll_kh == 0);
}

// The sum of a thread: a row of input in registers for each kh, a vector of weights for each kw.
void DepthwiseConv2dNhwcCuda::accumulate(Schedule& s, const Tensor& acc, const Tensor& rows,
                                         const Tensor& weights, bool unroll_kh, int64_t vector) {
  const auto [n, y, x, oc] = s.inner_axes<4>(acc);
  const auto [kh, kw] = s.reduce_axes<2>(acc);
  s.reorder({kh, kw, y, x, oc});
  s.decompose_reduction(acc, kh);
  if (unroll_kh) s.unroll(kh);
  s.unroll(kw);
  s.unroll(y);
  s.unroll(x);
  s.unroll(oc);
  s.compute_at(rows, kh);
  s.compute_at(weights, kw);
  if (s.refused()) return;
  for (const Tensor& copy : {rows, weights}) {
    const std::vector<Axis> axes = s.spatial_axes(copy);
    for (const Axis& axis : axes)
      if (axis.var != axes.back().var) s.unroll(axis);
    cuda::vectorize_by(s, axes.back(), vector);
  }
}

// Threads along the channels first, then columns, then rows, up to 128; a few pixels each where enough blocks
// are left for all multiprocessors.
DepthwiseConv2dNhwcCuda::First DepthwiseConv2dNhwcCuda::first_config(const Conv2dWorkload& w) {
  constexpr int64_t kThreads = 128;
  const int64_t oh = w.out_height(), ow = w.out_width();
  First first;
  first.vector = std::min<int64_t>(widest_vector(w), 4);
  const int64_t elements = w.batch * w.out_channels * oh * ow / first.vector;
  if (ow >= 8 && elements >= 4 * kThreads * cuda::kMultiprocessors) first.inner_x = 4;
  const auto row = [&] {
    return first.vector * reach(first.inner_x, w.kernel_width, w.stride[1], w.dilation[1]);
  };
  if (row() > kMaxRegisters / 2) first.inner_x = 1;
  while (row() > kMaxRegisters && first.vector > 1) first.vector /= 2;
  // All of them busy, if lines of memory stay whole.
  const int64_t vectors = ceil_div(w.out_channels, first.vector);
  first.threads_c = vectors % 32 == 0   ? 32
                    : vectors % 16 == 0 ? 16
                    : vectors % 8 == 0  ? 8
                                        : power_of_two_at_least(vectors, kWarp);
  first.threads_x =
      power_of_two_at_least(ceil_div(ow, first.inner_x), std::min<int64_t>(32, kThreads / first.threads_c));
  first.threads_y =
      power_of_two_at_least(oh, std::min<int64_t>(32, kThreads / (first.threads_c * first.threads_x)));
  const bool many = w.batch * w.out_channels * oh * ow >= cuda::kManyElements;
  const int64_t least = many ? kWarp * cuda::kSchedulers : kWarp;
  while (first.threads_c * first.threads_x * first.threads_y < least) {
    int64_t& narrow = first.threads_x < kWarp / first.inner_x ? first.threads_x : first.threads_y;
    narrow *= 2;
  }
  return first;
}

}  // namespace

const AnyTemplate& depthwise_conv2d_nhwc_cuda() {
  static const DepthwiseConv2dNhwcCuda instance;
  return instance;
}

}  // namespace tuner
