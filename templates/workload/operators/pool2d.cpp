#include "templates/workload/operators/pool2d.h"

#include <algorithm>
#include <limits>

#include "compiler_core/base/integer_types.h"
#include "compiler_core/graph/pool_window.h"
#include "compiler_core/te/te.h"
#include "templates/workload/parts/checks.h"
#include "templates/workload/parts/operator.h"
#include "templates/workload/parts/rounding.h"

namespace tuner {
namespace {

using te::Indices;

constexpr std::string_view kPoolingNames[] = {"max", "average"};

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

  // Where a window's element lies in the image, and where that is in a buffer whose other dimensions are
  // those of i.
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
    if (!is_float(w_.dtype)) return select(all, value, int_imm(range_of(w_.dtype).first, w_.dtype));
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

// Each window has an element of the image.
Status check_windows(const Pool2dWorkload& w) {
  constexpr std::string_view kSides[] = {"padding[0] (top)", "padding[1] (left)", "padding[2] (bottom)",
                                         "padding[3] (right)"};
  for (size_t i = 0; i < 2; ++i) {
    const graph::PoolWindow along{.extent = i == 0 ? w.in_height : w.in_width,
                                  .kernel = i == 0 ? w.kernel_height : w.kernel_width,
                                  .stride = w.stride[i],
                                  .before = w.padding[i],
                                  .behind = w.padding[i + 2],
                                  .windows = i == 0 ? w.out_height() : w.out_width()};
    RETURN_IF_ERROR(check_pool_window(
        along, {std::string(kSides[i]), std::string(kSides[i + 2]), i == 0 ? "rows" : "columns"}));
  }
  return Status::ok();
}

class Pool2dFacts final : public OperatorFacts<Pool2dWorkload> {
 public:
  void describe(Pool2dWorkload& w, WorkloadFields& f) const override {
    f.shape({.json = "data", .order = "[batch, channels, height, width]"},
            {{"n", "data[0] (batch)", w.batch},
             {"c", "data[1] (channels)", w.channels},
             {"ih", "data[2] (height)", w.in_height},
             {"iw", "data[3] (width)", w.in_width}});
    if (f.reads_shapes()) w.kernel_height = w.in_height, w.kernel_width = w.in_width;  // unless said: global
    f.shape({.json = "kernel", .order = "[height, width]", .required = false},
            {{"kh", "kernel[0] (height)", w.kernel_height}, {"kw", "kernel[1] (width)", w.kernel_width}});
    f.pair({.word = "stride"}, w.stride);
    f.sides({.word = "pad", .json = "padding"}, w.padding);
    f.choice_of({.word = "pooling"}, kPoolingNames, w.pooling);
    f.flag({.word = "include_pad", .json = "count_include_pad", .may_lack = true}, w.count_include_pad);
    static constexpr DType kServed[] = {DType::kFloat32, DType::kInt8, DType::kUInt8};
    f.type({.word = "dtype"}, w.dtype, kServed, DType::kFloat32);
    f.layout({.word = "layout"}, w.layout, "NCHW");
  }

  Status check(const Pool2dWorkload& w) const override {
    const int64_t height = w.in_height + w.padding[0] + w.padding[2],
                  width = w.in_width + w.padding[1] + w.padding[3];
    if (height < w.kernel_height)
      return invalid_argument("data[2] (height): ", height, " with padding, expected at least ",
                              w.kernel_height, ", the rows of the kernel");
    if (width < w.kernel_width)
      return invalid_argument("data[3] (width): ", width, " with padding, expected at least ", w.kernel_width,
                              ", the columns of the kernel");
    RETURN_IF_ERROR(check_windows(w));
    if (w.count_include_pad && w.pooling == Pooling::kMax)
      return invalid_argument("count_include_pad: expected only with pooling average, found it with max");
    if (w.dtype == DType::kInt8 || w.dtype == DType::kUInt8) {
      if (w.pooling != Pooling::kMax)
        return invalid_argument("dtype: expected float32 with pooling average, found ", w.dtype);
    } else {
      RETURN_IF_ERROR(float32_only(w.dtype));
    }
    RETURN_IF_ERROR(check_layout("layout", w.layout, "", w.channels));
    RETURN_IF_ERROR(shape_fits("data", {w.batch, w.channels, height, width}, w.dtype));
    return countable({w.batch, w.channels, w.out_height(), w.out_width(), w.kernel_height, w.kernel_width});
  }

  Program math(const Pool2dWorkload& w) const override { return pool2d_in(PoolOrder::kTogether, w); }
  // The largest of numbers is one of them; an average errs as its sum does, divided, and by what a mean may.
  Tolerance tolerance(const Pool2dWorkload& w) const override {
    if (w.pooling == Pooling::kMax) return {0, 0};
    const int64_t terms = w.kernel_height * w.kernel_width;
    return {std::max(4 * kRounding, value_sum_error(terms) / static_cast<double>(terms)), kRelativeTolerance};
  }

  int64_t flops(const Pool2dWorkload& w) const override {
    return w.batch * w.channels * w.out_height() * w.out_width() * w.kernel_height * w.kernel_width;
  }
  // Windows may leave out elements of the image, but every output is written.
  double least_bytes(const Pool2dWorkload& w) const override {
    double n = dtype_bytes(w.dtype);
    for (const int64_t factor : {w.batch, w.channels, w.out_height(), w.out_width()})
      n *= static_cast<double>(factor);
    return n;
  }

  TaskShape shape(const Pool2dWorkload& w) const override {
    return {str(w.kOp, " pooling=", pooling_name(w.pooling), " dtype=", dtype_name(w.dtype),
                " layout=", w.layout),
            {{"n", w.batch},
             {"c", w.channels},
             {"oh", w.out_height()},
             {"ow", w.out_width()},
             {"kh", w.kernel_height},
             {"kw", w.kernel_width},
             {"sh", w.stride[0]},
             {"sw", w.stride[1]},
             {"pad", 1 + *std::ranges::max_element(w.padding)}}};
  }
  std::string shape_name(const Pool2dWorkload& w) const override {
    return str(w.batch, "x", w.channels, "x", w.in_height, "x", w.in_width, "_", w.kernel_height, "x",
               w.kernel_width);
  }
};

}  // namespace

std::string_view pooling_name(Pooling p) { return kPoolingNames[static_cast<size_t>(p)]; }

const OperatorFacts<Pool2dWorkload>& Pool2dWorkload::facts() {
  static const Pool2dFacts facts;
  return facts;
}

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

}  // namespace tuner
