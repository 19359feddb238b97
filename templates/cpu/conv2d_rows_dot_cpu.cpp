// conv2d_rows_dot_cpu: convolution of few channels in int8, the first layer of a network: dot products along
// the rows of the window.
//
//   out[n, oc, oh, ow] = act(sum over ic, kh, g of dot(padded[n, ic, oh*sh + kh*dh, ow*sw + group g of kw],
//                                                      weight[oc, ic, kh, g]) + bias[oc] + residual[...])
//
//   weight filled with zeros to whole groups of 4 taps of a row, packed [OC/NR][IC][KH][KW/4][NR][4]: by the
//   packing
//       entry when constant
//   parallel n, ic, row of the padded image
//     vectorized column               the image between zeros: no tile asks about its border
//   parallel n, oh, panel of channels
//     for tile of pixels in the row
//       for ic, kh
//         unrolled g, pixel           one broadcast of 4 neighbours times each vector of the weights: one
//                                     accumulator
//           unrolled vector           register each
//             vectorized lane
//       write the tile: the epilogue; to NCHW transposed in registers
//
// A 7x7 window of 3 channels is 42 dot products a sum; with 3 of 4 channels in each it would be 49. What the
// last group of a row reads beyond the window is multiplied by zero, so infinities would show: bfloat16 is
// declined. Serves stride, padding, dilation of rows, NCHW and blocks of channels out.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {
namespace {

using te::Indices;

struct Conv2dRowsDotKnobs {
  SplitKnob tile_oc, tile_ow;
};

// The window's rows, and the image as they read it.
struct Rows {
  explicit Rows(const Conv2dWorkload& w)
      : dot(cpu::dot_group(w.dtype)),
        groups(ceil_div(w.kernel_width, dot)),
        height((w.out_height() - 1) * w.stride[0] + (w.kernel_height - 1) * w.dilation[0] + 1),
        width((w.out_width() - 1) * w.stride[1] + groups * dot) {}
  int64_t dot, groups, height, width;
};

class Conv2dRowsDotCpu final : public ScheduleTemplate<Conv2dWorkload, Conv2dRowsDotKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "conv2d_rows_dot_cpu"; }
  int version() const override { return 1; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (w.dtype != DType::kInt8) return declined("needs int8, got ", w.dtype);
    if (w.groups != 1) return declined("needs groups = 1, got ", w.groups);
    if (w.dilation[1] != 1) return declined("needs taps side by side, got dilation ", w.dilation[1]);
    if (w.layout != "NCHW") return declined("needs layout NCHW, got ", w.layout);
    if (const int64_t block = channel_block(w.out_layout); block > 1 && block % t.f32_lanes() != 0)
      return declined("needs whole vectors of ", t.f32_lanes(), " channels, got out_layout ", w.out_layout);
    const Rows in(w);
    const int64_t along_rows = w.in_channels * in.groups,
                  along_channels = w.kernel_width * ceil_div(w.in_channels, in.dot);
    if (along_rows < along_channels) return supported();
    if (along_rows == along_channels && w.in_channels % in.dot != 0) return supported_as_second();
    return declined("needs fewer dot products along a row than along channels, got ", along_rows, " and ",
                    along_channels);
  }

  Conv2dRowsDotKnobs declare(ConfigSpace& space, const Conv2dWorkload& w, const Target& t) const override {
    const int64_t lanes = lanes_of(w, t), whole = std::max(lanes, channel_block(w.out_layout));
    const int64_t registers = t.vector_registers();
    const auto [pixels, channels] = cpu::first_tile(w.out_width(), w.out_channels, {lanes, whole},
                                                    registers - cpu::spare_registers(t, 4));
    Conv2dRowsDotKnobs k{
        // Output channels of a tile: whole vectors. More use each broadcast of pixels more often.
        .tile_oc =
            space.split("tile_oc", w.out_channels).multiples_of(whole).at_most(8 * lanes).try_first(channels),
        // Pixels of a tile. More use each vector of weights more often; too many spill to the stack.
        .tile_ow = space.split("tile_ow", w.out_width()).at_most(registers).try_first(pixels),
    };
    cpu::require_tile(space, k.tile_ow, k.tile_oc, {lanes, whole}, registers, 1);
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override {
    const Rows in(w);
    const DType sums = sum_dtype(w.dtype);
    te::Builder b("conv2d", sums);
    const auto argument = [&](const std::string& name, std::vector<int64_t> shape, DType dtype) {
      return Workload(w).is_constant(name) ? b.constant(name, std::move(shape), dtype)
                                           : b.input(name, std::move(shape), dtype);
    };
    const Buffer data =
        argument("data", {w.batch, w.in_channels, w.in_height, w.in_width}, left_dtype(w.dtype));
    const Buffer weight =
        argument("weight", {w.out_channels, w.in_channels, w.kernel_height, w.kernel_width}, w.dtype);
    const std::vector<int64_t> out_shape =
        image_shape(w.out_layout, w.batch, w.out_channels, w.out_height(), w.out_width());
    const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, out_shape);
    const Buffer filled =
        b.compute("filled_weight", {w.out_channels, w.in_channels, w.kernel_height, in.groups * in.dot},
                  [&](const Indices& i) {
                    return select(i[3] < w.kernel_width, load(weight, i), zero_of(weight->dtype));
                  });
    const Buffer padded = b.compute(
        "padded", {w.batch, w.in_channels, in.height, in.width},
        [&](const Indices& i) {
          const Expr row = i[2] - w.padding[0], column = i[3] - w.padding[1], zero = zero_of(data->dtype);
          // Whether the row is inside is one question for all lanes.
          return select(
              row >= 0 && row < w.in_height,
              select(column >= 0 && column < w.in_width, load(data, {i[0], i[1], row, column}), zero), zero);
        },
        BufferRole::kIntermediate, {"n", "ic", "ph", "pw"});
    const Buffer acc = b.reduce(
        "acc", {w.batch, w.out_height(), w.out_width(), w.out_channels},
        {{"ic", w.in_channels}, {"kh", w.kernel_height}, {"kw", in.groups * in.dot}}, ReduceOp::kSum,
        [&](const Indices& i, const Indices& r) {
          const Expr from = load(
              padded, {i[0], r[0], i[1] * w.stride[0] + r[1] * w.dilation[0], i[2] * w.stride[1] + r[2]});
          return cast(sums, from) * cast(sums, load(filled, {i[3], r[0], r[1], r[2]}));
        },
        BufferRole::kIntermediate, {"n", "oh", "ow", "oc"});
    const int64_t block = channel_block(w.out_layout);
    std::vector<std::string> names{"n", "oc", "oh", "ow"};
    if (block > 1) names.emplace_back("ocb");
    b.compute(
        "out", out_shape,
        [&](const Indices& i) {
          const Expr oc = block == 1 ? i[1] : i[1] * block + i[4];
          return finished(epilogue, load(acc, {i[0], i[2], i[3], oc}), oc, i);
        },
        BufferRole::kOutput, names);
    return b.finish();
  }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const Conv2dRowsDotKnobs& k,
                const Config& c) const override {
    const int64_t lanes = lanes_of(w, t), channels = c[k.tile_oc].inner, block = channel_block(w.out_layout);
    const bool parallel = t.threads > 1;
    pad(s, s.tensor("padded"), parallel);
    pack_weight(s, w, channels, parallel);
    if (s.refused()) return;

    const std::vector<Axis> axes = s.axes(s.tensor("out"));  // n, oc, oh, ow[, oc in its block]
    const auto [panel, inside] = s.split(axes[1], channels / block);
    const auto [tile, pixel] = s.split(axes[3], c[k.tile_ow].inner);
    const auto [vector, lane] = s.split(block > 1 ? axes[4] : inside, lanes);
    std::vector<Axis> order{axes[0], axes[2], panel, tile};
    if (block > 1)
      order.insert(order.end(), {pixel, inside, vector, lane});
    else
      order.insert(order.end(), {vector, lane, pixel});
    s.reorder(order);
    accumulate(s, s.tensor("acc"), tile, lanes);
    s.unroll(vector);
    if (block > 1) {
      s.unroll(pixel);
      s.unroll(inside);
      if (lanes > 1) s.vectorize(lane);
    } else {
      s.vectorize(pixel);
      s.vectorize_rows(lane);
    }
    if (parallel) s.parallel(s.fuse({axes[0], axes[2], panel}));
  }

 private:
  // A single channel has nothing to be a vector of.
  static int64_t lanes_of(const Conv2dWorkload& w, const Target& t) {
    return w.out_channels == 1 ? 1 : t.f32_lanes();
  }

  static void pad(Schedule& s, const Tensor& padded, bool parallel) {
    const auto [n, ic, row, column] = s.axes<4>(padded);
    if (s.refused()) return;
    constexpr int64_t kLanes = 64;
    const auto [piece, lane] = s.split(column, std::min(kLanes, s.extent(column)));
    // Few pieces of a row are written out: each then knows which of its columns the image has.
    constexpr int64_t kMostWrittenOut = 16;
    if (s.extent(piece) <= kMostWrittenOut) s.unroll(piece);
    s.vectorize(lane);
    if (parallel) s.parallel(s.fuse({n, ic, row}));
  }

  static void pack_weight(Schedule& s, const Conv2dWorkload& w, int64_t panel, bool parallel) {
    const int64_t dot = cpu::dot_group(w.dtype);
    const Tensor filled = s.tensor("filled_weight");
    std::vector<PackDim> dims = {{0, panel}, {1}, {2}, {3, dot}};
    if (panel > 1) dims.push_back({0, panel, true});
    dims.push_back({3, dot, true});
    const Tensor packed = s.pack(filled, dims);
    s.inline_compute(filled);
    if (s.refused()) return;
    if (Workload(w).is_constant("weight"))
      s.precompute(packed);
    else if (parallel)
      s.parallel(s.axes(packed).front());
  }

  static void accumulate(Schedule& s, const Tensor& acc, const Axis& tile, int64_t lanes) {
    if (s.refused()) return;
    s.set_scope(acc, MemoryScope::kRegister);
    s.compute_at(acc, tile);
    const auto [n, oh, ow, oc] = s.inner_axes<4>(acc);
    const auto [ic, kh, kw] = s.reduce_axes<3>(acc);
    const auto [group, tap] = s.split(kw, cpu::dot_group(DType::kInt8));
    const auto [vector, lane] = s.split(oc, lanes);
    s.reorder({ic, kh, group, ow, vector, lane, tap});
    s.decompose_reduction(acc, ic);
    s.unroll(group);
    s.unroll(ow);
    s.unroll(vector);
    s.dot(tap);
    if (lanes > 1) s.vectorize(lane);
  }
};

}  // namespace

const AnyTemplate& conv2d_rows_dot_cpu() {
  static const Conv2dRowsDotCpu instance;
  return instance;
}

}  // namespace tuner
