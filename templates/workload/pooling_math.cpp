// The math of pooling.
#include <array>
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

// Which dimension of an image its rows are.
size_t row_dimension(const Pool2dWorkload& w) { return is_channels_last(w.layout) ? 1 : 2; }

// The reduction of windows. Elements beyond the image are those a select replaces by what changes nothing, so
// that a schedule may skip them.
class Windows {
 public:
  Windows(te::Builder& builder, const Pool2dWorkload& w, std::vector<std::string> names)
      : b_(builder),
        w_(w),
        row_(row_dimension(w)),
        shape_(image_shape(w.layout, w.batch, w.channels, w.out_height(), w.out_width())),
        names_(std::move(names)),
        data_(b_.input("data", image_shape(w.layout, w.batch, w.channels, w.in_height, w.in_width))) {}

  // "acc", of out's shape. All of a window in one reduction; or in two, over its columns first: "rows"
  // [.., ih with what surrounds the image, ow].
  Buffer reduced(PoolOrder order) {
    if (order == PoolOrder::kColumnsThenRows) return columns_then_rows();
    const ReduceAxes window = {{"kh", w_.kernel_height}, {"kw", w_.kernel_width}};
    return reduce("acc", shape_, window, names_, [&](const Indices& i, const Indices& r) {
      const Expr row = row_at(i[row_], r[0]), column = column_at(i[row_ + 1], r[1]);
      return within(row_inside(row), column_inside(column), load(data_, at(i, row, column)));
    });
  }

 private:
  using ReduceAxes = std::vector<te::Builder::ReduceAxis>;
  using Conditions = std::vector<Expr>;

  Buffer columns_then_rows() {
    std::vector<int64_t> shape = shape_;
    shape[row_] = w_.in_height + w_.padding[0] + w_.padding[2];
    const Buffer rows = reduce(
        "rows", shape, {{"kw", w_.kernel_width}}, named(row_, "ih"), [&](const Indices& i, const Indices& r) {
          const Expr row = i[row_] - w_.padding[0], column = column_at(i[row_ + 1], r[0]);
          return within(row_inside(row), column_inside(column), load(data_, at(i, row, column)));
        });
    return reduce("acc", shape_, {{"kh", w_.kernel_height}}, names_, [&](const Indices& i, const Indices& r) {
      return load(rows, at(i, i[row_] * w_.stride[0] + r[0], i[row_ + 1]));
    });
  }
  template <class Value>
  Buffer reduce(const char* name, const std::vector<int64_t>& shape, const ReduceAxes& over,
                const std::vector<std::string>& names, const Value& value) {
    const bool is_max = w_.pooling == Pooling::kMax;
    return b_.reduce(name, shape, over, is_max ? ReduceOp::kMax : ReduceOp::kSum, value,
                     BufferRole::kIntermediate, names);
  }
  std::vector<std::string> named(size_t dimension, const char* name) const {
    std::vector<std::string> names = names_;
    names[dimension] = name;
    return names;
  }

  // Where a window's element lies in the image, and where that is in a buffer whose other dimensions are those
  // of i.
  Expr row_at(const Expr& oh, const Expr& kh) const { return oh * w_.stride[0] + kh - w_.padding[0]; }
  Expr column_at(const Expr& ow, const Expr& kw) const { return ow * w_.stride[1] + kw - w_.padding[1]; }
  Indices at(Indices i, const Expr& row, const Expr& column) const {
    i[row_] = row;
    i[row_ + 1] = column;
    return i;
  }
  // Only the sides that are padded are asked about.
  Conditions row_inside(const Expr& row) const {
    Conditions inside;
    if (w_.padding[0] > 0) inside.push_back(row >= 0);
    if (w_.padding[2] > 0) inside.push_back(row < w_.in_height);
    return inside;
  }
  Conditions column_inside(const Expr& column) const {
    Conditions inside;
    if (w_.padding[1] > 0) inside.push_back(column >= 0);
    if (w_.padding[3] > 0) inside.push_back(column < w_.in_width);
    return inside;
  }
  Expr within(Conditions conditions, const Conditions& more, const Expr& value) const {
    conditions.insert(conditions.end(), more.begin(), more.end());
    if (conditions.empty()) return value;
    Expr all = conditions[0];
    for (size_t k = 1; k < conditions.size(); ++k) all = all && conditions[k];
    const double nothing = w_.pooling == Pooling::kMax ? -std::numeric_limits<double>::infinity() : 0;
    return select(all, value, float_imm(nothing, w_.dtype));
  }

  te::Builder& b_;
  const Pool2dWorkload& w_;
  const size_t row_;  // the dimension of the image's rows; columns come next
  const std::vector<int64_t> shape_;
  const std::vector<std::string> names_;
  const Buffer data_;
};

}  // namespace

Program pool2d_in(PoolOrder order, const Pool2dWorkload& w) {
  te::Builder b("pool2d", w.dtype);
  const std::array<int64_t, 4>& padding = w.padding;  // top, left, bottom, right
  const std::vector<int64_t> shape =
      image_shape(w.layout, w.batch, w.channels, w.out_height(), w.out_width());
  std::vector<std::string> names = {"n", "c", "oh", "ow"};
  if (is_channels_last(w.layout)) names = {"n", "oh", "ow", "c"};
  if (shape.size() > 4) names.push_back("cb");
  const size_t row = row_dimension(w), column = row + 1;
  const Buffer acc = Windows(b, w, names).reduced(order);
  const bool same_count = w.count_include_pad || padding == std::array<int64_t, 4>{};
  b.compute(
      "out", shape,
      [&](const Indices& i) {
        const Expr all = load(acc, i);
        if (w.pooling == Pooling::kMax) return all;
        if (same_count)
          return all * float_imm(1.0 / static_cast<double>(w.kernel_height * w.kernel_width), w.dtype);
        // Factors, not a division of each element: one depends on the row alone, and the other is known ahead
        // where a tile of the row is.
        const Expr one = float_imm(1, w.dtype);
        const Expr rows = count_inside(i[row], w.stride[0], padding[0], padding[2], w.kernel_height,
                                       w.in_height),
                   columns = count_inside(i[column], w.stride[1], padding[1], padding[3], w.kernel_width,
                                          w.in_width);
        return all * (one / cast(w.dtype, rows) * (one / cast(w.dtype, columns)));
      },
      BufferRole::kOutput, names);
  return b.finish();
}

Program math_of(const Pool2dWorkload& w) { return pool2d_in(PoolOrder::kTogether, w); }

}  // namespace tuner
