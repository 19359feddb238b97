// depthwise_conv2d_dot_cpu: convolution of each channel of an NCHW image by itself, in bfloat16 and int8: dot
// products along the rows of the window.
//
//   out[n, c, p] = act(sum over kh, g of dot(woven[phase of kh, g, p + rows before kh], weight[c, kh, g]) +
//   bias[c] + ...)
//
//   weight filled with zeros to whole groups of D = 2 or 4 taps of a row: by the packing entry when constant
//   parallel n, c, block of rows
//     for phase, g, row
//       vectorized pixel, tap         woven: at each pixel the D taps of group g that the window has there,
//                                     zeros in the padding: one load of a row, one shuffle, one store
//     for tile of pixels
//       unrolled kh, g                sums in registers: a dot product for each vector of pixels
//         unrolled vector
//           vectorized pixel
//       write the tile
//
// Pixels p count along all rows of the image, so that vectors are full also where rows are shorter than they
// are. What the windows of row r read with tap kh is row r*stride + kh*dilation of the image: rows of one
// remainder by the stride (a phase) are woven in order, and then the taps of kh are those of row 0, some rows
// further. Declines blocked channels (depthwise_conv2d_cpu serves them) and float32.
#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "templates/cpu/conv2d_cpu_tile.h"
#include "templates/cpu/cpu_product.h"
#include "templates/cpu/cpu_templates.h"
#include "templates/workload/parts/product_math.h"

namespace tuner {

using namespace conv2d_cpu;

namespace {

using te::Indices;

// Each row of woven pixels is written out: longer ones only compile longer.
constexpr int64_t kMostColumns = 256;

struct DepthwiseConv2dDotKnobs {
  SplitKnob tile_p, block_rows;
};

// The image as it is woven.
struct Woven {
  explicit Woven(const Conv2dWorkload& w)
      : dot(cpu::dot_group(w.dtype)),
        groups(ceil_div(w.kernel_width, dot)),
        phases(std::min(w.stride[0], (w.kernel_height - 1) * w.dilation[0] + 1)),
        rows_before_last((w.kernel_height - 1) * w.dilation[0] / w.stride[0]),
        columns(w.out_width()),
        pixels(w.out_height() * w.out_width()) {}
  // Pixels of a phase, with those that the last tile only reads.
  int64_t extent(int64_t longest_tile) const {
    return (ceil_div(pixels + longest_tile, columns) + rows_before_last) * columns;
  }
  int64_t dot, groups, phases, rows_before_last, columns, pixels;
};

constexpr int64_t kLongestTile = 512;

Buffer filled_weight(te::Builder& b, const Conv2dWorkload& w, const Buffer& weight, int64_t width) {
  if (width == w.kernel_width) return weight;
  return b.compute("filled_weight", {w.out_channels, 1, w.kernel_height, width}, [&](const Indices& i) {
    return select(i[3] < w.kernel_width, load(weight, i), zero_of(w.dtype));
  });
}

class DepthwiseConv2dDotCpu final : public ScheduleTemplate<Conv2dWorkload, DepthwiseConv2dDotKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return "depthwise_conv2d_dot_cpu"; }
  int version() const override { return 1; }

  Support supports(const Conv2dWorkload& w, const Target& t) const override {
    if (!t.is_cpu()) return needs_target("a CPU", t);
    if (cpu::dot_group(w.dtype) <= 1) return declined("needs bfloat16 or int8, got ", w.dtype);
    if (w.groups != w.in_channels)
      return declined("needs groups = ", w.in_channels, " channels, got ", w.groups);
    if (w.out_channels != w.in_channels)
      return declined("needs 1 output channel in a group, got ", w.out_channels / w.groups);
    if (w.layout != "NCHW" || w.out_layout != "NCHW")
      return declined("needs NCHW in and out, got ", w.layout, " and ", w.out_layout);
    // Tiles run across rows of the woven image, where analysis/in_place.h cannot tell the elements apart.
    if (w.accumulate) return declined("has no accumulate; depthwise_conv2d_cpu serves it");
    if (w.out_width() > kMostColumns)
      return declined("needs at most ", kMostColumns, " columns of out, got ", w.out_width());
    return supported();
  }

  DepthwiseConv2dDotKnobs declare(ConfigSpace& space, const Conv2dWorkload& w,
                                  const Target& t) const override {
    const Woven woven(w);
    const int64_t lanes = t.f32_lanes(), taps = w.kernel_height * woven.groups;
    const int64_t most =
        std::max<int64_t>(std::min({t.vector_registers() - 4, kMaxBody / taps, kLongestTile / lanes}), 1);
    const int64_t rows = first_rows(w, woven), vectors = ceil_div(rows * woven.columns, lanes);
    DepthwiseConv2dDotKnobs k{
        // Pixels of a tile: they share the weights. Whole vectors.
        .tile_p = space.split("tile_p", woven.pixels)
                      .multiples_of(lanes)
                      .at_most(most * lanes)
                      .try_first(ceil_div(vectors, ceil_div(vectors, most)) * lanes),
        // Rows whose pixels are woven before their sums: they stay in L1, but rows where blocks meet are
        // woven twice.
        .block_rows = space.split("block_rows", w.out_height()).divisors_only().try_first(rows),
    };
    // Tiles as equal as can be.
    const IntExpr tile = k.tile_p.inner() / lanes,
                  all = ceil_div(k.block_rows.inner() * woven.columns, lanes);
    space.require(ceil_div(all, ceil_div(all, tile)) == tile);
    // A tile of the whole image has no place of its own in a block.
    space.require(k.tile_p.inner() < woven.pixels || k.block_rows.inner() == w.out_height());
    return k;
  }

  Program compute(const Conv2dWorkload& w) const override {
    const Woven in(w);
    const DType sums = sum_dtype(w.dtype);
    te::Builder b("conv2d", sums);
    const auto argument = [&](const std::string& name, std::vector<int64_t> shape, DType dtype) {
      return Workload(w).is_constant(name) ? b.constant(name, std::move(shape), dtype)
                                           : b.input(name, std::move(shape), dtype);
    };
    const Buffer data =
        argument("data", {w.batch, w.in_channels, w.in_height, w.in_width}, left_dtype(w.dtype));
    const Buffer plain = argument("weight", {w.out_channels, 1, w.kernel_height, w.kernel_width}, w.dtype);
    const std::vector<int64_t> out_shape{w.batch, w.out_channels, in.pixels};
    const Epilogue epilogue = declare_epilogue(b, w, w.out_channels, out_shape);
    const Buffer weight = filled_weight(b, w, plain, in.groups * in.dot);
    const Buffer woven =
        b.compute("woven", {w.batch, w.in_channels, in.phases, in.groups, in.extent(kLongestTile), in.dot},
                  [&](const Indices& i) { return woven_element(w, in, data, i); }, BufferRole::kIntermediate,
                  {"n", "c", "phase", "g", "q", "tap"});
    const Buffer acc =
        b.reduce("acc", {w.batch, w.out_channels, in.pixels},
                 {{"kh", w.kernel_height}, {"kw", in.groups * in.dot}}, ReduceOp::kSum,
                 [&](const Indices& i, const Indices& r) {
                   const Expr row = r[0] * w.dilation[0];
                   const Expr from = load(
                       woven, {i[0], i[1], floor_mod(row, w.stride[0]), floor_div(r[1], in.dot),
                               i[2] + floor_div(row, w.stride[0]) * in.columns, floor_mod(r[1], in.dot)});
                   return cast(sums, from) * cast(sums, load(weight, {i[1], 0, r[0], r[1]}));
                 },
                 BufferRole::kIntermediate, {"n", "c", "p"});
    b.compute("out", out_shape, [&](const Indices& i) { return finished(epilogue, load(acc, i), i[1], i); },
              BufferRole::kOutput, {"n", "c", "p"});
    return b.finish();
  }

  void schedule(Schedule& s, const Conv2dWorkload& w, const Target& t, const DepthwiseConv2dDotKnobs& k,
                const Config& c) const override {
    const Woven in(w);
    const int64_t lanes = t.f32_lanes(), rows = c[k.block_rows].inner;
    const bool parallel = t.threads > 1;
    const Tensor acc = s.tensor("acc"), out = s.tensor("out"), woven = s.tensor("woven");
    if (w.kernel_width % in.dot != 0) {
      const Tensor filled = s.tensor("filled_weight");
      if (Workload(w).is_constant("weight"))
        s.precompute(filled);
      else if (parallel)
        s.parallel(s.axes<4>(filled)[0]);
    }
    s.set_scope(acc, MemoryScope::kRegister);
    const auto [n, channel, p] = s.axes<3>(out);
    const auto [block, in_block] = s.split(p, rows * in.columns);
    const auto [tile, in_tile] = s.split(in_block, c[k.tile_p].inner);
    s.compute_at(acc, tile);
    s.compute_at(woven, block);
    cpu::vectorize_by(s, in_tile, lanes);
    accumulate(s, acc, in, lanes);
    weave(s, woven, in);
    if (parallel) s.parallel(s.fuse({n, channel, block}));
  }

 private:
  // Rows of a block that fills half of a small L1.
  static int64_t first_rows(const Conv2dWorkload& w, const Woven& in) {
    constexpr int64_t kBytes = 24 << 10;
    const int64_t fit = kBytes / (in.columns * in.groups * in.phases * 4) - in.rows_before_last;
    int64_t rows = std::clamp<int64_t>(fit, 1, w.out_height());
    while (w.out_height() % rows != 0) --rows;
    return rows;
  }

  static Expr woven_element(const Conv2dWorkload& w, const Woven& in, const Buffer& data, const Indices& i) {
    const Expr zero = zero_of(data->dtype), tap = i[3] * in.dot + i[5];
    const Expr row = floor_div(i[4], in.columns) * w.stride[0] + i[2] - w.padding[0],
               column = floor_mod(i[4], in.columns) * w.stride[1] + tap * w.dilation[1] - w.padding[1];
    // Whether the row is inside is one question for all lanes.
    return select(row >= 0 && row < w.in_height,
                  select(column >= 0 && column < w.in_width && tap < w.kernel_width,
                         load(data, {i[0], i[1], row, column}), zero),
                  zero);
  }

  static void accumulate(Schedule& s, const Tensor& acc, const Woven& in, int64_t lanes) {
    const auto [n, channel, p] = s.inner_axes<3>(acc);
    const auto [kh, kw] = s.reduce_axes<2>(acc);
    const auto [vector, lane] = s.split(p, lanes);
    const auto [group, tap] = s.split(kw, in.dot);
    s.reorder({kh, group, vector, lane, tap});
    s.decompose_reduction(acc, kh);
    s.unroll(kh);
    s.unroll(group);
    s.unroll(vector);
    s.dot(tap);
    if (lanes > 1) s.vectorize(lane);
  }

  static void weave(Schedule& s, const Tensor& woven, const Woven& in) {
    const std::vector<Axis> axes = s.axes(woven);
    if (s.refused()) return;
    const auto [row, column] = s.split(axes[4], in.columns);
    const Axis inside = s.fuse({column, axes[5]});
    constexpr int64_t kLanes = 64;
    const auto [piece, lane] = s.split(inside, std::min(kLanes, in.columns * in.dot));
    s.unroll(piece);
    s.vectorize(lane);
    // Few rows are written out: none asks whether it lies in the padding.
    constexpr int64_t kMostWrittenOut = 40;
    if (s.extent(axes[2]) * s.extent(axes[3]) * s.extent(row) * s.extent(piece) > kMostWrittenOut) return;
    s.unroll(axes[2]);
    s.unroll(axes[3]);
    s.unroll(row);
  }
};

}  // namespace

const AnyTemplate& depthwise_conv2d_dot_cpu() {
  static const DepthwiseConv2dDotCpu instance;
  return instance;
}

}  // namespace tuner
