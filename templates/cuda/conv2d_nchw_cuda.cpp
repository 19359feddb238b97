// conv2d_nchw_cuda: direct float32 convolution on the ordinary cores of any NVIDIA GPU, NCHW.
//
//   out[n, oc, oh, ow] = act(sum over ic, kh, kw of data[n, ic, oh*sh + kh*dh - top, ow*sw + kw*dw - left]
//                                                   * weight[oc, ic, kh, kw] + bias[oc])
//
//   block: a tile of channels (f) x rows (y) x columns (x) of one image          [n in blockIdx.z]
//     threads: threads_f x threads_y x threads_x, each vthread_f x vthread_x parts of
//              inner_f x inner_y x inner_x elements
//       for step: tile_ic input channels, tile_kh x tile_kw of the kernel        [double buffered]
//         all threads copy the input with its halo -> shared [ic][row][column], zeros in the padding,
//             and the weights -> shared [ic][kh][kw][f], transposed
//         for ic, kh                             unrolled by `unroll_ic`, `unroll_kh`
//           a row of input -> registers          when `keep_rows` is set: used by every kw
//           unrolled kw
//             vectors of weights -> registers
//             unrolled tile of the thread        one multiply-add each
//       write the tile: bias, activation
//
// split_ic > 1: blockIdx.y takes a part of the input channels, sums go to global memory, and a second kernel
// adds them up: small images with many channels (7 x 7 x 512) have too few tiles for a large GPU. Serves
// stride, padding, dilation, any sizes. Constant weights are packed ahead, in the order of the shared tiles.
// Declines grouped convolution and types other than float32.
#include <algorithm>
#include <array>
#include <numeric>

#include "compiler_core/base/int_math.h"
#include "compiler_core/te/te.h"
#include "templates/cuda/conv2d_cuda_tile.h"
#include "templates/cuda/cuda_schedule.h"
#include "templates/cuda/cuda_templates.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using namespace conv2d_cuda;
using cuda::kWarp;

bool is_packed(const Conv2dWorkload& w) { return Workload(w).is_constant("weight"); }

struct Conv2dNchwKnobs {
  ChoiceKnob threads_f, threads_y, threads_x;
  ChoiceKnob inner_f, inner_y, inner_x;
  ChoiceKnob vthread_f, vthread_x;
  ChoiceKnob tile_ic, tile_kh, tile_kw;
  ChoiceKnob split_ic, unroll_ic;
  FlagKnob unroll_kh, keep_rows, pixels_in_warp, kernel_outer;
  CategoryKnob layout_weight;
  FlagKnob double_buffer;
  ChoiceKnob min_blocks;
};

class Conv2dNchwCuda final : public ScheduleTemplate<Conv2dWorkload, Conv2dNchwKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_nchw_cuda"; }
  int version() const override { return 4; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cuda()) return needs_target("a CUDA", t);
    if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
    if (w.dtype != DType::kFloat32) return declined("needs float32, got ", w.dtype);
    if (w.accumulate) return declined("has no accumulate yet: give the residual apart (\"residual\")");
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (w.out_layout != "NCHW") return declined("needs out_layout NCHW, got ", w.out_layout);
    return supported();
  }

  Conv2dNchwKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const int64_t oh = w.out_height(), ow = w.out_width();
    const Tile first = first_tile(w, t);
    Conv2dNchwKnobs k{
        // Threads of a block, over channels, rows and columns. More share each tile; too many leave no
        // registers.
        .threads_f = space.choice("threads_f", {1, 2, 4, 8, 16, 32, 64}).try_first(first.threads[kF]),
        .threads_y = space.choice("threads_y", sizes(oh, 16)).try_first(first.threads[kY]),
        .threads_x = space.choice("threads_x", sizes(ow, 32)).try_first(first.threads[kX]),
        // Elements of out a thread computes. More use each value read from shared memory more often; too
        // many spill.
        .inner_f = space.choice("inner_f", {1, 2, 4, 8}).try_first(first.inner[kF]),
        .inner_y = space.choice("inner_y", sizes(oh, 4)).try_first(first.inner[kY]),
        .inner_x = space.choice("inner_x", sizes(ow, 8)).try_first(first.inner[kX]),
        // Parts of a thread's tile that lie apart: what neighbouring threads read at once then lies side by
        // side.
        .vthread_f = space.choice("vthread_f", {1, 2}).try_first(first.vthreads[kF]),
        .vthread_x = space.choice("vthread_x", {1, 2}).try_first(first.vthreads[kX]),
        // Of one step between two barriers, against shared memory.
        .tile_ic = space.choice("tile_ic", {1, 2, 4, 8, 16, 32})
                       .at_most(std::max<int64_t>(1, 2 * w.in_channels - 1))
                       .try_first(first.ic),
        .tile_kh = space.choice("tile_kh", kernel_parts(w.kernel_height, w.dilation[0])).try_first(first.kh),
        .tile_kw = space.choice("tile_kw", kernel_parts(w.kernel_width, w.dilation[1])).try_first(first.kw),
        // Parts of the input channels in blocks of their own, for a second pass over out.
        .split_ic = space.choice("split_ic", {1, 2, 4, 8, 16, 32}).try_first(first.splits),
        // Share the loops' own instructions and let reads run ahead; the code grows.
        .unroll_ic = space.choice("unroll_ic", {1, 2, 4}).try_first(1),
        .unroll_kh = space.flag("unroll_kh").try_first(unrolls_kh(first)),
        // A row of input stays in registers for all kw.
        .keep_rows = space.flag("keep_rows").try_first(keeps_rows(w, first)),
        // Threads of a warp lie along columns and rows (stores are whole lines), or along channels (reads of
        // the input are broadcasts).
        .pixels_in_warp = space.flag("pixels_in_warp").try_first(false),
        // Steps go over the channels for each part of the kernel, or the other way round.
        .kernel_outer = space.flag("kernel_outer").try_first(false),
        // How the shared weights lie, against bank conflicts of their transposed stores.
        .layout_weight =
            space.category("layout_weight", is_packed(w) ? std::vector<std::string>{"plain"}
                                                         : std::vector<std::string>{"pad", "xor", "plain"}),
        // Loads of the next step run during the multiply-adds, for twice the shared memory.
        .double_buffer = space.flag("double_buffer").try_first(false),
        // Blocks that should fit a multiprocessor: bounds the registers of a thread.
        .min_blocks = space.choice("min_blocks", {1, 2, 3}).try_first(1),
    };
    constrain(space, w, t, k);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override;

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target&, const Conv2dNchwKnobs& k,
                const Config& c) const override {
    const Tile tile = tile_of(w, k, c);
    const Tensor packed = s.pack(s.tensor("weight"), {{1, tile.chunk},
                                                      {0, tile.block(kF)},
                                                      {1, tile.chunk, true},
                                                      {2},
                                                      {3},
                                                      {0, tile.block(kF), true, 1, is_packed(w) ? 0 : 1}});
    const Tensor data = s.tensor("padded");
    Tensor acc = s.tensor("acc"), result = s.tensor("out");
    if (s.refused()) return;
    const Axis sum = s.reduce_axes<3>(acc)[0];
    s.pad_reduction(sum, tile.chunk);
    if (tile.splits > 1) {
      const Tensor partial = s.rfactor(acc, s.split(sum, tile.chunk).outer);
      add_partials(s, acc, result, w);
      result = partial;
      acc = s.cache_write(partial, MemoryScope::kRegister);
    } else {
      s.set_scope(acc, MemoryScope::kRegister);
    }
    const Tensor weight = cuda::shared_tile(s, packed, is_packed(w), acc);
    const Tensor weight_registers = s.cache_read(weight, MemoryScope::kRegister, acc);
    const Tensor rows = c[k.keep_rows] ? s.cache_read(data, MemoryScope::kRegister, acc) : Tensor{};
    s.set_scope(data, MemoryScope::kShared);

    place_tile(s, w, result, acc, tile, c[k.pixels_in_warp]);
    const Axis step = accumulate(s, acc, weight_registers, rows, tile, k, c);
    s.compute_at(data, step);
    s.compute_at(weight, step);
    copy_data(s, data, tile.all_threads());
    if (is_packed(w)) {
      copy_packed(s, weight, tile);
    } else {
      copy_weight(s, weight, tile);
      if (c[k.layout_weight] == kPad) s.set_layout(weight, str("pad:", cuda::vector_width({tile.inner[kF]})));
      if (c[k.layout_weight] == kXor) s.set_layout(weight, "xor:4,8");
    }
    if (c[k.double_buffer]) {
      s.double_buffer(data, step);
      s.double_buffer(weight, step);
    }
    if (c[k.min_blocks] > 1) s.launch_bounds(static_cast<int>(c[k.min_blocks]));
  }

 private:
  static constexpr int64_t kPad = 0,
                           kXor = 1;  // positions in the list of layout_weight, if nothing is packed

  static void constrain(ConfigSpace& space, const Conv2dWorkload& w, const Target& t,
                        const Conv2dNchwKnobs& k);
  static void constrain_blocks(ConfigSpace& space, const Conv2dWorkload& w, const Conv2dNchwKnobs& k);
  static Tile tile_of(const Conv2dWorkload& w, const Conv2dNchwKnobs& k, const Config& c);
  static void place_tile(Schedule& s, const Conv2dWorkload& w, const Tensor& result, const Tensor& acc,
                         const Tile& tile, bool pixels_in_warp);
  static Axis accumulate(Schedule& s, const Tensor& acc, const Tensor& weight_registers, const Tensor& rows,
                         const Tile& tile, const Conv2dNchwKnobs& k, const Config& c);
  static void copy_data(Schedule& s, const Tensor& data, int64_t threads);
  static void copy_weight(Schedule& s, const Tensor& weight, const Tile& tile);
  static void copy_packed(Schedule& s, const Tensor& weight, const Tile& tile);
  static void add_partials(Schedule& s, const Tensor& acc, const Tensor& out, const Conv2dWorkload& w);
};

// Index `i` of a padded dimension as one of the input; `inside` holds where that is one. Without padding
// behind the input, what lies there meets sums that nobody stores: then it is the last element again, without
// a condition.
Expr padded_index(const Expr& i, int64_t before, int64_t behind, int64_t extent, Expr& inside) {
  const Expr index = i - before;
  if (before > 0) inside = inside && index >= 0;
  if (behind == 0) return repeated_at_edge(index, extent, 1);
  inside = inside && index < extent;
  return index;
}

// The math of the workload over an input that is padded further, for whatever a tile may read past the last
// pixel or channel: with zeros where they are needed. The padded input exists as shared tiles only.
Program Conv2dNchwCuda::compute(const Conv2dWorkload& w) const {
  using te::Indices;
  te::Builder b("conv2d", w.dtype);
  const int64_t top = w.padding[0], left = w.padding[1];
  const Buffer data = b.input("data", {w.batch, w.in_channels, w.in_height, w.in_width});
  const std::vector<int64_t> weights = {w.out_channels, w.in_channels, w.kernel_height, w.kernel_width};
  const Buffer weight = is_packed(w) ? b.constant("weight", weights) : b.input("weight", weights);
  const Epilogue epilogue = declare_unpacked_epilogue(b, w);
  const int64_t rows = reach(w.out_height() + kMaxBlock, w.kernel_height, w.stride[0], w.dilation[0]);
  const int64_t columns = reach(w.out_width() + kMaxBlock, w.kernel_width, w.stride[1], w.dilation[1]);
  const Buffer padded =
      b.compute("padded", {w.batch, w.in_channels + kMaxTileIc * kMaxSplits, rows, columns},
                [&](const Indices& i) {
                  Expr inside = i[1] < w.in_channels;
                  const Expr row = padded_index(i[2], top, w.padding[2], w.in_height, inside);
                  const Expr column = padded_index(i[3], left, w.padding[3], w.in_width, inside);
                  return select(inside, load(data, {i[0], i[1], row, column}), float_imm(0));
                },
                BufferRole::kIntermediate, {"n", "ic", "row", "column"});
  const Buffer acc =
      b.reduce("acc", {w.batch, w.out_height(), w.out_width(), w.out_channels},
               {{"ic", w.in_channels}, {"kh", w.kernel_height}, {"kw", w.kernel_width}}, ReduceOp::kSum,
               [&](const Indices& i, const Indices& r) {
                 return load(padded, {i[0], r[0], i[1] * w.stride[0] + r[1] * w.dilation[0],
                                      i[2] * w.stride[1] + r[2] * w.dilation[1]}) *
                        load(weight, {i[3], r[0], r[1], r[2]});
               },
               BufferRole::kIntermediate, {"n", "oh", "ow", "oc"});
  b.compute("out", {w.batch, w.out_channels, w.out_height(), w.out_width()},
            [&](const Indices& i) {
              return finished(epilogue, load(acc, {i[0], i[2], i[3], i[1]}), i[1], i);
            },
            BufferRole::kOutput, {"n", "oc", "oh", "ow"});
  return b.finish();
}

void Conv2dNchwCuda::constrain(ConfigSpace& space, const Conv2dWorkload& w, const Target& t,
                               const Conv2dNchwKnobs& k) {
  constrain_blocks(space, w, k);
  const IntExpr threads = k.threads_f * k.threads_y * k.threads_x;
  const IntExpr block_f = k.vthread_f * k.threads_f * k.inner_f;
  const IntExpr pixels = k.vthread_x * k.inner_y * k.inner_x;
  // Accumulators, operands, loads under way, and the rest.
  space.require(k.vthread_f * k.inner_f * pixels + kOperandRegisters +
                    k.double_buffer * (kStagedInput + kStagedWeights) + cuda::kOtherRegisters <=
                cuda::register_limit(t, threads, k.min_blocks));
  space.require(!k.keep_rows || reach(k.inner_y, 1, w.stride[0], w.dilation[0]) *
                                        reach(k.inner_x, k.tile_kw, w.stride[1], w.dilation[1]) *
                                        k.vthread_x <=
                                    kRowRegisters);
  // Half of the shared memory for each of the tiles, of as many blocks as are wished for; the weights are
  // padded by a vector.
  const int64_t room = t.shared_bytes_per_block / 4 / 2;
  const InputBound bound = input_bound(w, room);
  const IntExpr input =
      k.tile_ic * max(k.threads_y * k.inner_y * k.vthread_x * k.threads_x * k.inner_x, bound.least);
  const IntExpr weights = k.tile_ic * k.tile_kh * k.tile_kw * block_f;
  space.require(input * (k.double_buffer + 1) * k.min_blocks <= room / bound.factor);
  space.require(weights * (k.double_buffer + 1) * k.min_blocks <= room / 5 * 4);
  space.require(!k.double_buffer || input * bound.factor <= threads * kStagedInput);
  space.require(!k.double_buffer || weights <= threads * kStagedWeights);
  space.require(k.vthread_f * k.inner_f * pixels * k.tile_kw * k.unroll_ic *
                    (k.unroll_kh * (k.tile_kh - 1) + 1) <=
                cuda::kMaxBody);
  space.require(k.tile_ic % k.unroll_ic == 0);
  space.require(!k.unroll_kh || k.tile_kh > 1);
  space.require(!k.keep_rows || k.tile_kw > 1);
  space.require(!k.kernel_outer || k.tile_kh < w.kernel_height || k.tile_kw < w.kernel_width);
  if (!is_packed(w))
    space.require(k.layout_weight != kXor || (block_f % 32 == 0 && block_f <= w.out_channels));
  // Each part has steps to do, and one spelling for each number of parts.
  const IntExpr steps = ceil_div(w.in_channels, k.tile_ic);
  space.require(ceil_div(steps, ceil_div(steps, k.split_ic)) == k.split_ic);
  space.require(!k.double_buffer || steps > k.split_ic);
}

void Conv2dNchwCuda::constrain_blocks(ConfigSpace& space, const Conv2dWorkload& w, const Conv2dNchwKnobs& k) {
  const int64_t oc = w.out_channels, oh = w.out_height(), ow = w.out_width();
  const IntExpr threads = k.threads_f * k.threads_y * k.threads_x;
  const IntExpr block_f = k.vthread_f * k.threads_f * k.inner_f;
  space.require(threads % thread_granule(w) == 0);
  space.require(threads <= 1024);
  // No block more than half beside out, as far as a warp can be that narrow, and no part of a thread's tile
  // wholly beside it.
  space.require(block_f < (oc == 1 ? 2 : std::clamp<int64_t>(2 * oc, kWarp + 1, 513)));
  space.require(k.threads_y * k.inner_y < std::min(2 * oh, kMaxBlock + 1));
  space.require(k.vthread_x * k.threads_x * k.inner_x < std::min(2 * ow, kMaxBlock + 1));
  space.require(k.vthread_f == 1 || k.threads_f * k.inner_f < oc);
  space.require(k.vthread_x == 1 || k.threads_x * k.inner_x < ow);
  // More than one thread of a tiny image is at work.
  if (oc * oh * ow > 1 && oc <= 8 && oh <= 4 && ow <= 8)
    space.require(k.inner_f < oc || k.inner_y < oh || k.inner_x < ow);
}

Tile Conv2dNchwCuda::tile_of(const Conv2dWorkload& w, const Conv2dNchwKnobs& k, const Config& c) {
  Tile tile{};
  tile.vthreads = {c[k.vthread_f], 1, c[k.vthread_x]};
  tile.threads = {c[k.threads_f], c[k.threads_y], c[k.threads_x]};
  tile.inner = {c[k.inner_f], c[k.inner_y], c[k.inner_x]};
  tile.ic = c[k.tile_ic], tile.kh = c[k.tile_kh], tile.kw = c[k.tile_kw];
  tile.splits = c[k.split_ic];
  tile.chunk = ceil_div(ceil_div(w.in_channels, tile.ic), tile.splits) * tile.ic;
  return tile;
}

// The loops of `result` (out, or the sums of parts) become grid, threads, and the tile of a thread; `acc` is
// computed in it.
void Conv2dNchwCuda::place_tile(Schedule& s, const Conv2dWorkload& w, const Tensor& result, const Tensor& acc,
                                const Tile& tile, bool pixels_in_warp) {
  const std::vector<Axis> axes = s.axes(result);
  if (s.refused()) return;
  const bool parts = tile.splits > 1;  // then [part, n, oh, ow, oc], else [n, oc, oh, ow]
  const std::array<Axis, 3> image =
      parts ? std::array<Axis, 3>{axes[4], axes[2], axes[3]} : std::array<Axis, 3>{axes[1], axes[2], axes[3]};
  std::array<Axis, 3> block, strip, thread, element;
  for (size_t d = 0; d < 3; ++d) {
    const SplitAxes blocks = s.split(image[d], tile.block(d));
    const SplitAxes strips = s.split(blocks.inner, tile.threads[d] * tile.inner[d]);
    const SplitAxes threads = s.split(strips.inner, tile.inner[d]);
    block[d] = blocks.outer, strip[d] = strips.outer, thread[d] = threads.outer, element[d] = threads.inner;
  }
  // The last axis of `result` is contiguous.
  const std::array<Axis, 3> inner = parts ? std::array<Axis, 3>{element[kY], element[kX], element[kF]}
                                          : std::array<Axis, 3>{element[kF], element[kY], element[kX]};
  const std::array<Axis, 3> threads = pixels_in_warp
                                          ? std::array<Axis, 3>{thread[kF], thread[kY], thread[kX]}
                                          : std::array<Axis, 3>{thread[kY], thread[kX], thread[kF]};
  s.reorder({block[kF], block[kY], block[kX], strip[kF], strip[kX], strip[kY], threads[0], threads[1],
             threads[2], inner[0], inner[1], inner[2]});
  const Axis tiles = s.rename(s.fuse(block), "tile");
  const Axis all_threads = s.rename(s.fuse(threads), "thread");
  cuda::bind_grid(s, w.batch > 1 ? axes[parts ? 1 : 0] : Axis{}, parts ? axes[0] : Axis{}, tiles);
  s.bind(strip[kF], LoopKind::kVirtualThread);
  s.bind(strip[kX], LoopKind::kVirtualThread);
  s.bind(all_threads, LoopKind::kThreadX);
  s.compute_at(acc, all_threads);
  s.rename(strip[kF], "f_part");
  s.rename(strip[kX], "x_part");
  s.unroll(inner[0]);
  s.unroll(inner[1]);
  s.rename(inner[0], parts ? "y" : "f");
  s.rename(inner[1], parts ? "x" : "y");
  cuda::vectorize_by(s, inner[2],
                     parts ? cuda::vector_width({tile.inner[kF], w.out_channels})
                           : cuda::vector_width({tile.inner[kX], w.out_width()}));
}

// The sum inside the tile of a thread. Returns the loop over steps.
Axis Conv2dNchwCuda::accumulate(Schedule& s, const Tensor& acc, const Tensor& weight_registers,
                                const Tensor& rows, const Tile& tile, const Conv2dNchwKnobs& k,
                                const Config& c) {
  const std::vector<Axis> spatial = s.spatial_axes(acc);  // [part,] n, oh, ow, oc
  const auto [ic, kh, kw] = s.reduce_axes<3>(acc);
  if (s.refused()) return {};
  const Axis &y = spatial[spatial.size() - 3], &x = spatial[spatial.size() - 2], &f = spatial.back();
  const auto [ic_outer, ic_tile] = s.split(ic, tile.ic);
  const auto [kh_outer, kh_inner] = s.split(kh, tile.kh);
  const auto [kw_outer, kw_inner] = s.split(kw, tile.kw);
  const auto [ic_step, ic_unrolled] = s.split(ic_tile, c[k.unroll_ic]);
  const std::array<Axis, 3> outer = c[k.kernel_outer] ? std::array<Axis, 3>{kh_outer, kw_outer, ic_outer}
                                                      : std::array<Axis, 3>{ic_outer, kh_outer, kw_outer};
  s.reorder({outer[0], outer[1], outer[2], ic_step, ic_unrolled, kh_inner, kw_inner, y, x, f});
  const Axis step = s.fuse(outer);
  s.decompose_reduction(acc, step);
  s.unroll(ic_unrolled);
  if (c[k.unroll_kh]) s.unroll(kh_inner);
  s.unroll(kw_inner);
  s.unroll(y);
  s.unroll(x);
  s.unroll(f);
  if (c[k.keep_rows]) {
    s.compute_at(rows, kh_inner);
    if (s.refused()) return {};
    for (const Axis& axis : s.spatial_axes(rows)) s.unroll(axis);
  }
  s.compute_at(weight_registers, kw_inner);
  if (s.refused()) return {};
  cuda::vectorize_by(s, s.spatial_axes(weight_registers).back(), cuda::vector_width({tile.inner[kF]}));
  s.rename(ic_step, "ic_group");
  s.rename(ic_unrolled, "ic_in_group");
  s.rename(kh_inner, "kh");
  s.rename(kw_inner, "kw");
  return s.rename(step, "step");
}

void Conv2dNchwCuda::copy_data(Schedule& s, const Tensor& data, int64_t threads) {
  if (s.refused()) return;
  const auto [n, ic, row, column] = s.inner_axes<4>(data);
  cuda::share_copy(s, {ic, row, column}, threads, 1);
}

void Conv2dNchwCuda::copy_weight(Schedule& s, const Tensor& weight, const Tile& tile) {
  if (s.refused()) return;
  const std::vector<Axis> axes = s.spatial_axes(weight);  // part, block, ic, kh, kw, f
  const size_t f = axes.size() - 1;
  const int64_t strip = std::gcd(tile.ic * tile.kh * tile.kw, kStrip);
  const auto [outer, inner] = s.split(s.fuse({axes[f - 3], axes[f - 2], axes[f - 1]}), strip);
  cuda::share_rows(s, outer, axes[f], inner, tile.all_threads(), 1);
}

// What was packed lies as the tile does: rows of channels, one after the other.
void Conv2dNchwCuda::copy_packed(Schedule& s, const Tensor& weight, const Tile& tile) {
  if (s.refused()) return;
  const std::vector<Axis> axes = s.spatial_axes(weight);  // part, block, ic, kh, kw, f
  const std::vector<Axis> row(axes.end() - 4, axes.end());
  cuda::share_copy(s, row, tile.all_threads(), cuda::vector_width({tile.block(kF)}));
}

// out = act(sum of the parts + bias), elementwise: a kernel of its own. Threads lie along channels, as the
// sums do.
void Conv2dNchwCuda::add_partials(Schedule& s, const Tensor& acc, const Tensor& out,
                                  const Conv2dWorkload& w) {
  constexpr int64_t kThreads = 128;
  const auto [n, oc, oh, ow] = s.axes<4>(out);
  if (s.refused()) return;
  s.set_scope(acc, MemoryScope::kRegister);
  int64_t channels = kWarp;
  while (channels < kThreads && channels < w.out_channels) channels *= 2;
  const auto [oc_block, oc_thread] = s.split(oc, channels);
  const auto [ow_block, ow_thread] = s.split(ow, kThreads / channels);
  s.reorder({oh, ow_block, oc_block, ow_thread, oc_thread});
  cuda::bind_grid(s, w.batch > 1 ? n : Axis{}, {}, s.fuse({oh, ow_block, oc_block}));
  s.bind(ow_thread, LoopKind::kThreadY);
  s.bind(oc_thread, LoopKind::kThreadX);
  s.compute_at(acc, oc_thread);
  if (s.refused()) return;
  const auto [part] = s.reduce_axes<1>(acc);
  s.decompose_reduction(acc, part);
  s.unroll(part);
}

}  // namespace

const AnyTemplate& conv2d_nchw_cuda() {
  static const Conv2dNchwCuda instance;
  return instance;
}

}  // namespace tuner
