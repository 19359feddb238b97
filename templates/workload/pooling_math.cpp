// The math of pooling.
#include <limits>

#include "compiler_core/te/te.h"
#include "templates/workload/workload_math.h"

namespace tuner {
namespace {

using te::Indices;

// Elements of the image that a window along one dimension has: its end less its beginning, both clamped.
Expr count_inside(const Expr& out, int64_t stride, int64_t before, int64_t after, int64_t kernel,
                  int64_t extent) {
  const Expr begin = out * stride - before, end = begin + kernel;
  return (after > 0 ? min(end, Expr(extent)) : end) - (before > 0 ? max(begin, Expr(0)) : begin);
}

}  // namespace

// Elements beyond the image are those a select replaces by what changes nothing, so that a schedule may skip
// them.
Program math_of(const Pool2dWorkload& w) {
  te::Builder b("pool2d", w.dtype);
  const auto [top, left, bottom, right] = w.padding;
  const bool is_max = w.pooling == Pooling::kMax;
  const Expr nothing = float_imm(is_max ? -std::numeric_limits<double>::infinity() : 0, w.dtype);
  const Buffer data = b.input("data", image_shape(w.layout, w.batch, w.channels, w.in_height, w.in_width));
  const std::vector<int64_t> shape =
      image_shape(w.layout, w.batch, w.channels, w.out_height(), w.out_width());
  std::vector<std::string> names = {"n", "c", "oh", "ow"};
  if (is_channels_last(w.layout)) names = {"n", "oh", "ow", "c"};
  const size_t row = is_channels_last(w.layout) ? 1 : 2, column = row + 1;
  if (shape.size() > 4) names.push_back("cb");
  const Buffer acc = b.reduce(
      "acc", shape, {{"kh", w.kernel_height}, {"kw", w.kernel_width}},
      is_max ? ReduceOp::kMax : ReduceOp::kSum,
      [&](const Indices& i, const Indices& r) {
        Indices from = i;
        from[row] = i[row] * w.stride[0] + r[0] - top;
        from[column] = i[column] * w.stride[1] + r[1] - left;
        std::vector<Expr> inside;  // only the sides that are padded are asked about
        if (top > 0) inside.push_back(from[row] >= 0);
        if (bottom > 0) inside.push_back(from[row] < w.in_height);
        if (left > 0) inside.push_back(from[column] >= 0);
        if (right > 0) inside.push_back(from[column] < w.in_width);
        const Expr value = load(data, from);
        if (inside.empty()) return value;
        Expr all = inside[0];
        for (size_t k = 1; k < inside.size(); ++k) all = all && inside[k];
        return select(all, value, nothing);
      },
      BufferRole::kIntermediate, names);
  const bool same_count = w.count_include_pad || top + left + bottom + right == 0;
  b.compute(
      "out", shape,
      [&](const Indices& i) {
        const Expr all = load(acc, i);
        if (is_max) return all;
        if (same_count)
          return all * float_imm(1.0 / static_cast<double>(w.kernel_height * w.kernel_width), w.dtype);
        // Factors, not a division of each element: one depends on the row alone, and the other is known ahead
        // where a tile of the row is.
        const Expr one = float_imm(1, w.dtype);
        const Expr rows = count_inside(i[row], w.stride[0], top, bottom, w.kernel_height, w.in_height),
                   columns = count_inside(i[column], w.stride[1], left, right, w.kernel_width, w.in_width);
        return all * (one / cast(w.dtype, rows) * (one / cast(w.dtype, columns)));
      },
      BufferRole::kOutput, names);
  return b.finish();
}

}  // namespace tuner
