// depthwise_conv2d_nchw_cuda: float32 convolution of each channel with kernels of its own, on any NVIDIA GPU,
// NCHW.
//
//   out[n, oc, oh, ow] = act(sum over kh, kw of data[n, oc / m, oh*sh + kh*dh - top, ow*sw + kw*dw - left]
//                                               * weight[oc, 0, kh, kw] + bias[oc])      m = OC / IC
//
// A few multiply-adds for each element read: global memory is the limit, so each thread keeps what it reads.
//
//   block: `channels` channels x a tile of rows x columns of one image        [n in blockIdx.z]
//     threads: channels x threads_y x threads_x, each inner_y x inner_x elements
//       `shared`: all threads copy the input of the tile with its halo -> shared memory, zeros in the padding
//       for kh                                 unrolled by `unroll_kh`
//         a row of input -> registers
//         unrolled kw, tile of the thread      one multiply-add each; weights come through the read-only
//         cache
//       write the tile: bias, activation
//
// Serves groups = in_channels with any channel multiplier, stride, padding, dilation. Declines other groups
// and types other than float32.
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

struct DepthwiseConv2dNchwKnobs {
  ChoiceKnob channels, threads_y, threads_x, inner_y, inner_x;
  FlagKnob shared, unroll_kh, rows_first;
  ChoiceKnob min_blocks;
};

// Largest tile of a block in a dimension: the padded input is that much larger, so that no tile needs a
// guard.
constexpr int64_t kMaxBlock = 128;

class DepthwiseConv2dNchwCuda final : public ScheduleTemplate<Conv2dWorkload, DepthwiseConv2dNchwKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "depthwise_conv2d_nchw_cuda"; }
  int version() const override { return 1; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.groups != w.in_channels)
      return declined("needs groups = in_channels (", w.in_channels, "), got ", w.groups);
    if (w.groups == 1) return declined("needs more than one channel; one is an ordinary convolution");
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (w.out_layout != "NCHW") return declined("needs out_layout NCHW, got ", w.out_layout);
    if (reach(1, w.kernel_width, 1, w.dilation[1]) * reach(1, w.kernel_height, 1, w.dilation[0]) > kMaxKernel)
      return declined("needs a kernel that reaches over at most ", kMaxKernel, " pixels, got ",
                      reach(1, w.kernel_height, 1, w.dilation[0]), " x ",
                      reach(1, w.kernel_width, 1, w.dilation[1]));
    return supported();
  }

  DepthwiseConv2dNchwKnobs declare(ConfigSpace& space, const Conv2dWorkload& w,
                                   const Target& t) const override {
    const First first = first_config(w);
    DepthwiseConv2dNchwKnobs k{
        // Channels of a block: whole warps where images are small.
        .channels = space.choice("channels", {1, 2, 4, 8, 16, 32, 64}).try_first(first.channels),
        // Threads along rows and columns. Columns make whole lines of loads and stores.
        .threads_y = space.choice("threads_y", {1, 2, 4, 8, 16, 32}).try_first(first.threads_y),
        .threads_x = space.choice("threads_x", {1, 2, 4, 8, 16, 32, 64}).try_first(first.threads_x),
        // Elements of a thread: neighbours share what they read of the input.
        .inner_y = space.choice("inner_y", {1, 2, 3, 4, 7, 8}).try_first(first.inner_y),
        .inner_x = space.choice("inner_x", {1, 2, 4, 7, 8}).try_first(first.inner_x),
        // The input passes through shared memory, once a block; or each thread reads through the cache.
        .shared = space.flag("shared").try_first(first.shared),
        .unroll_kh = space.flag("unroll_kh").try_first(first_unrolls(w, first)),
        // Neighbouring blocks of the grid lie along the rows and columns of one channel, or along channels.
        .rows_first = space.flag("rows_first").try_first(true),
        // Blocks that should fit a multiprocessor: bounds the registers of a thread.
        .min_blocks = space.choice("min_blocks", {1, 2, 3, 4, 6, 8}).try_first(1),
    };
    constrain(space, w, t, k);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override;

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target&, const DepthwiseConv2dNchwKnobs& k,
                const Config& c) const override {
    const Tensor acc = s.tensor("acc"), out = s.tensor("out");
    Tensor input = s.tensor("padded");
    s.set_scope(acc, MemoryScope::kRegister);
    const Tensor rows = s.cache_read(input, MemoryScope::kRegister, acc);
    if (c[k.shared])
      s.set_scope(input, MemoryScope::kShared);
    else
      s.inline_compute(input);

    const auto [n, oc, oh, ow] = s.axes<4>(out);
    const auto [oc_block, oc_thread] = s.split(oc, c[k.channels]);
    const auto [oh_block, oh_in_block] = s.split(oh, c[k.threads_y] * c[k.inner_y]);
    const auto [ow_block, ow_in_block] = s.split(ow, c[k.threads_x] * c[k.inner_x]);
    const auto [oh_thread, y] = s.split(oh_in_block, c[k.inner_y]);
    const auto [ow_thread, x] = s.split(ow_in_block, c[k.inner_x]);
    const std::array<Axis, 3> grid = c[k.rows_first] ? std::array<Axis, 3>{oc_block, oh_block, ow_block}
                                                     : std::array<Axis, 3>{oh_block, ow_block, oc_block};
    s.reorder({grid[0], grid[1], grid[2], oc_thread, oh_thread, ow_thread, y, x});
    const Axis tiles = s.rename(s.fuse(grid), "tile");
    const Axis thread = s.rename(s.fuse({oc_thread, oh_thread, ow_thread}), "thread");
    cuda::bind_grid(s, w.batch > 1 ? n : Axis{}, {}, tiles);
    s.bind(thread, LoopKind::kThreadX);
    s.compute_at(acc, thread);
    s.unroll(y);
    s.rename(y, "y");
    cuda::vectorize_by(s, x, cuda::vector_width({c[k.inner_x], w.out_width()}));

    accumulate(s, acc, rows, c[k.unroll_kh]);
    if (c[k.shared]) {
      s.compute_at(input, thread);
      const auto [image, ic, row, column] = s.inner_axes<4>(input);
      cuda::share_copy(s, {ic, row, column}, threads_of(k, c), 1);
    }
    if (c[k.min_blocks] > 1) s.launch_bounds(static_cast<int>(c[k.min_blocks]));
  }

 private:
  // A default config; values of the knobs of the same names.
  struct First {
    int64_t channels = 1, threads_y = 1, threads_x = 1, inner_y = 1, inner_x = 1;
    bool shared = false;
  };
  static constexpr int64_t kMaxKernel =
      1024;  // pixels that a kernel reaches over: its halo fits shared memory
  static constexpr int64_t kMaxRegisters = 64;  // of a row of input and the accumulators

  static int64_t threads_of(const DepthwiseConv2dNchwKnobs& k, const Config& c) {
    return c[k.channels] * c[k.threads_y] * c[k.threads_x];
  }

  static void constrain(ConfigSpace& space, const Conv2dWorkload& w, const Target& t,
                        const DepthwiseConv2dNchwKnobs& k);
  static void accumulate(Schedule& s, const Tensor& acc, const Tensor& rows, bool unroll_kh);
  static First first_config(const Conv2dWorkload& w);
  static bool first_unrolls(const Conv2dWorkload& w, const First& first) {
    return w.kernel_height > 1 && first.inner_y * first.inner_x * w.kernel_height * w.kernel_width <= 512;
  }
};

// The math of the workload over an input that is padded further: with zeros for whatever a tile may read past
// the last pixel or channel. The padded input exists as tiles only.
Program DepthwiseConv2dNchwCuda::compute(const Conv2dWorkload& w) const {
  using te::Indices;
  te::Builder b("depthwise_conv2d", w.dtype);
  const int64_t top = w.padding[0], left = w.padding[1], multiplier = w.out_channels / w.groups;
  const Buffer data = b.input("data", {w.batch, w.in_channels, w.in_height, w.in_width});
  const Buffer weight = b.input("weight", {w.out_channels, 1, w.kernel_height, w.kernel_width});
  const Epilogue epilogue = declare_unpacked_epilogue(b, w);
  const int64_t rows = reach(w.out_height() + kMaxBlock, w.kernel_height, w.stride[0], w.dilation[0]);
  const int64_t columns = reach(w.out_width() + kMaxBlock, w.kernel_width, w.stride[1], w.dilation[1]);
  const Buffer padded =
      b.compute("padded", {w.batch, w.in_channels, rows, columns},
                [&](const Indices& i) {
                  const Expr row = i[2] - top, column = i[3] - left;
                  Expr inside = row < w.in_height && column < w.in_width;
                  if (top > 0) inside = inside && row >= 0;
                  if (left > 0) inside = inside && column >= 0;
                  return select(inside, load(data, {i[0], i[1], row, column}), float_imm(0));
                },
                BufferRole::kIntermediate, {"n", "ic", "row", "column"});
  const Buffer acc = b.reduce(
      "acc", {w.batch, w.out_channels, w.out_height(), w.out_width()},
      {{"kh", w.kernel_height}, {"kw", w.kernel_width}}, ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        return load(padded, {i[0], floor_div(i[1], multiplier), i[2] * w.stride[0] + r[0] * w.dilation[0],
                             i[3] * w.stride[1] + r[1] * w.dilation[1]}) *
               load(weight, {i[1], 0, r[0], r[1]});
      },
      BufferRole::kIntermediate, {"n", "oc", "oh", "ow"});
  b.compute("out", {w.batch, w.out_channels, w.out_height(), w.out_width()},
            [&](const Indices& i) { return finished(epilogue, load(acc, i), i[1], i); }, BufferRole::kOutput,
            {"n", "oc", "oh", "ow"});
  return b.finish();
}

void DepthwiseConv2dNchwCuda::constrain(ConfigSpace& space, const Conv2dWorkload& w, const Target& t,
                                        const DepthwiseConv2dNchwKnobs& k) {
  const int64_t oc = w.out_channels, oh = w.out_height(), ow = w.out_width();
  const IntExpr threads = k.channels * k.threads_y * k.threads_x;
  const IntExpr block_y = k.threads_y * k.inner_y, block_x = k.threads_x * k.inner_x;
  const bool many =
      w.batch * oc * oh * ow >= cuda::kManyElements &&
      std::min<int64_t>(oc, 64) * ceil_div(oh, 8) * ceil_div(ow, 8) >= kWarp * cuda::kSchedulers;
  space.require(threads % (many ? kWarp * cuda::kSchedulers : kWarp) == 0);
  space.require(threads <= 1024);
  // No block more than half beside out, as far as a block of whole warps can be that narrow.
  space.require(k.channels < std::clamp<int64_t>(2 * oc, kWarp + 1, 65));
  space.require(block_y < std::min(2 * oh, kMaxBlock + 1));
  space.require(block_x < std::min(2 * ow, kMaxBlock + 1));
  // A row of input in registers for each kh, and the accumulators.
  const IntExpr row = reach(k.inner_y, 1, w.stride[0], w.dilation[0]) *
                      reach(k.inner_x, w.kernel_width, w.stride[1], w.dilation[1]);
  space.require(row <= std::max(kMaxRegisters, reach(1, w.kernel_width, 1, w.dilation[1])));
  space.require(row + k.inner_y * k.inner_x + cuda::kOtherRegisters <=
                cuda::register_limit(t, threads, k.min_blocks));
  space.require(k.inner_y * k.inner_x * w.kernel_width * (k.unroll_kh * (w.kernel_height - 1) + 1) <=
                cuda::kMaxBody);
  if (w.kernel_height == 1) space.require(k.unroll_kh == 0);
  const IntExpr tile = k.channels * reach(block_y, w.kernel_height, w.stride[0], w.dilation[0]) *
                       reach(block_x, w.kernel_width, w.stride[1], w.dilation[1]);
  space.require(k.shared * tile * 4 * k.min_blocks <=
                t.shared_bytes_per_block - k.min_blocks * t.shared_bytes_reserved);
}

// The sum of a thread: a row of input in registers for each kh.
void DepthwiseConv2dNchwCuda::accumulate(Schedule& s, const Tensor& acc, const Tensor& rows, bool unroll_kh) {
  const auto [n, oc, y, x] = s.inner_axes<4>(acc);
  const auto [kh, kw] = s.reduce_axes<2>(acc);
  s.reorder({kh, kw, y, x});
  s.decompose_reduction(acc, kh);
  if (unroll_kh) s.unroll(kh);
  s.unroll(kw);
  s.unroll(y);
  s.unroll(x);
  s.compute_at(rows, kh);
  if (s.refused()) return;
  for (const Axis& axis : s.spatial_axes(rows)) s.unroll(axis);
}

// Threads along the columns first, then rows, then channels, up to 128; a few elements each where enough
// blocks are left for all multiprocessors.
DepthwiseConv2dNchwCuda::First DepthwiseConv2dNchwCuda::first_config(const Conv2dWorkload& w) {
  constexpr int64_t kThreads = 128;
  const int64_t oh = w.out_height(), ow = w.out_width();
  const int64_t elements = w.batch * w.out_channels * oh * ow;
  const bool large = elements >= 4 * kThreads * cuda::kMultiprocessors;
  First first;
  if (large && ow >= 8) first.inner_x = 4;
  if (large && oh >= 8 && elements >= 16 * kThreads * cuda::kMultiprocessors) first.inner_y = 2;
  const auto row = [&] {
    return reach(first.inner_y, 1, w.stride[0], w.dilation[0]) *
           reach(first.inner_x, w.kernel_width, w.stride[1], w.dilation[1]);
  };
  if (row() > kMaxRegisters / 2) first.inner_y = 1;
  if (row() > kMaxRegisters / 2) first.inner_x = 1;
  first.threads_x = power_of_two_at_least(ceil_div(ow, first.inner_x), 32);
  first.threads_y =
      power_of_two_at_least(ceil_div(oh, first.inner_y), std::min<int64_t>(32, kThreads / first.threads_x));
  first.channels = std::min<int64_t>(power_of_two_at_least(w.out_channels, 64),
                                     kThreads / (first.threads_x * first.threads_y));
  first.channels = std::max(first.channels, kWarp / (first.threads_x * first.threads_y));
  return first;
}

}  // namespace

const AnyTemplate& depthwise_conv2d_nchw_cuda() {
  static const DepthwiseConv2dNchwCuda instance;
  return instance;
}

}  // namespace tuner
