#include "tuner/extract/operators.h"

#include <algorithm>
#include <numeric>

namespace tuner {
namespace {

using Shape = std::vector<int64_t>;

Served declined(std::string reason) { return {.workload = {}, .reason = std::move(reason)}; }

// Of a valid workload; what validate() says otherwise.
Served checked(Workload workload) {
  if (const Status valid = validate(workload); !valid) return declined(valid.message());
  return {.workload = std::move(workload), .reason = {}};
}

// Why tensors cannot be computed with, or nothing.
std::string unfit(const GraphView& view, std::initializer_list<std::string> names) {
  for (const std::string& name : names) {
    const GraphTensor& t = view.tensor(name);
    if (!t.shape) return "its shape is not known";
    if (std::find(t.shape->begin(), t.shape->end(), 0) != t.shape->end()) return "an extent is 0";
    if (t.type != "float32")
      return str("element type ", t.type.empty() ? "not known" : t.type, ", float32 is served");
  }
  return {};
}

const Shape& shape(const GraphView& view, const std::string& name) { return *view.tensor(name).shape; }

// How a window moves: kernel, stride, dilation and padding in two dimensions; one-dimensional ones get a
// height of 1.
struct Window {
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  std::array<int64_t, 4> padding{0, 0, 0, 0};
};

// nullopt: attributes of other lengths than the image has dimensions.
std::optional<Window> window_of(const GraphNode& n, const Shape& image, const Shape& kernel) {
  const size_t dims = image.size();
  if (dims < 1 || dims > 2 || kernel.size() != dims) return std::nullopt;
  const Shape ones(dims, 1), zeros(2 * dims, 0);
  const Shape stride = n.integers("strides").value_or(ones),
              dilation = n.integers("dilations").value_or(ones);
  Shape pads = n.integers("pads").value_or(zeros);
  if (stride.size() != dims || dilation.size() != dims || pads.size() != 2 * dims) return std::nullopt;
  for (size_t d = 0; d < dims; ++d)
    if (stride[d] < 1 || dilation[d] < 1 || kernel[d] < 1 || kernel[d] > INT32_MAX ||
        dilation[d] > INT32_MAX || stride[d] > INT32_MAX)
      return std::nullopt;
  const std::string automatic = n.word("auto_pad", "NOTSET");
  for (size_t d = 0; d < dims && automatic != "NOTSET"; ++d) {
    pads[d] = pads[dims + d] = 0;
    if (automatic == "VALID") continue;
    const int64_t out = (image[d] + stride[d] - 1) / stride[d];
    const int64_t reach = (out - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1;
    const int64_t all = std::max<int64_t>(0, reach - image[d]);
    pads[d] = automatic == "SAME_LOWER" ? (all + 1) / 2 : all / 2;
    pads[dims + d] = all - pads[d];
  }
  Window w;
  for (size_t d = 0; d < dims; ++d) {
    const size_t to = 2 - dims + d;
    w.kernel[to] = kernel[d], w.stride[to] = stride[d], w.dilation[to] = dilation[d];
    w.padding[to] = pads[d], w.padding[2 + to] = pads[dims + d];
  }
  return w;
}

Shape tail(const Shape& s, size_t from) {
  return {s.begin() + static_cast<std::ptrdiff_t>(std::min(from, s.size())), s.end()};
}

// An axis counted from the front; -1 when there is no such.
int64_t axis_of(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  return axis >= -n && axis < n ? (axis + n) % n : -1;
}

}  // namespace

int64_t product_of(const Shape& s, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t d = first; d < last; ++d)
    if (__builtin_mul_overflow(n, s[d], &n)) return INT64_MAX;
  return n;
}

Served conv_of(const GraphView& view, const GraphNode& n) {
  const std::string data = n.input(0), weight = n.input(1);
  if (const std::string why = unfit(view, {data, weight}); !why.empty()) return declined(why);
  const Shape &x = shape(view, data), &w = shape(view, weight);
  if (x.size() != w.size() || x.size() < 3) return declined("data and weight of different ranks");
  if (x.size() > 4) return declined(str(x.size() - 2, " spatial dimensions, 1 and 2 are served"));
  const std::optional<Window> window = window_of(n, tail(x, 2), tail(w, 2));
  if (!window) return declined("strides, pads or dilations that do not fit the image");
  Conv2dWorkload c{.batch = x[0],
                   .in_channels = x[1],
                   .in_height = x.size() == 4 ? x[2] : 1,
                   .in_width = x.back(),
                   .out_channels = w[0],
                   .kernel_height = window->kernel[0],
                   .kernel_width = window->kernel[1],
                   .stride = window->stride,
                   .padding = window->padding,
                   .dilation = window->dilation,
                   .groups = n.integer("group", 1)};
  for (const int64_t p : c.padding)
    if (p < 0) return declined("negative padding (cropping)");
  if (c.groups < 1 || c.in_channels % c.groups != 0 || w[1] != c.in_channels / c.groups)
    return declined("groups that do not fit the channels");
  c.bias = !n.input(2).empty();
  if (view.tensor(weight).constant) c.constant = {"weight"};
  return checked(c);
}

std::optional<std::array<int64_t, 4>> zero_padding_of(const GraphView& view, const GraphNode& n) {
  if (n.op != "Pad" || n.word("mode", "constant") != "constant" || !n.input(3).empty()) return std::nullopt;
  if (n.number("value", 0) != 0) return std::nullopt;
  if (!n.input(2).empty() && view.tensor(n.input(2)).scalar.value_or(1) != 0) return std::nullopt;
  const std::optional<Shape> pads =
      n.input(1).empty() ? n.integers("pads") : view.tensor(n.input(1)).integers;
  if (!pads || pads->size() != 8) return std::nullopt;
  const Shape& p = *pads;
  for (const int64_t each : p)
    if (each < 0) return std::nullopt;
  if (p[0] != 0 || p[1] != 0 || p[4] != 0 || p[5] != 0) return std::nullopt;
  return std::array{p[2], p[3], p[6], p[7]};
}

Served matmul_of(const GraphView& view, const GraphNode& n) {
  if (const std::string why = unfit(view, {n.input(0), n.input(1)}); !why.empty()) return declined(why);
  Shape a = shape(view, n.input(0)), b = shape(view, n.input(1));
  if (a.empty() || b.empty()) return declined("a scalar operand");
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  const int64_t batch_a = product_of(a, 0, a.size() - 2), batch_b = product_of(b, 0, b.size() - 2);
  MatmulWorkload w{.m = a[a.size() - 2], .n = b.back(), .k = a.back()};
  if (b[b.size() - 2] != w.k) return declined("operands that do not fit together");
  if (batch_b == 1) {
    // The same b for every matrix of a: their rows stand one below the other.
    if (__builtin_mul_overflow(w.m, batch_a, &w.m)) return declined("too large");
  } else if (Shape(a.begin(), a.end() - 2) == Shape(b.begin(), b.end() - 2)) {
    w.batch = batch_a;
  } else {
    return declined("batches that are broadcast");
  }
  if (view.tensor(n.input(1)).constant) w.constant = {"b"};
  return checked(w);
}

Served gemm_of(const GraphView& view, const GraphNode& n) {
  if (const std::string why = unfit(view, {n.input(0), n.input(1)}); !why.empty()) return declined(why);
  const Shape &a = shape(view, n.input(0)), &b = shape(view, n.input(1));
  if (a.size() != 2 || b.size() != 2) return declined("operands that are no matrices");
  const bool ta = n.integer("transA", 0) != 0, tb = n.integer("transB", 0) != 0;
  const bool constant = view.tensor(n.input(1)).constant;
  MatmulWorkload w{
      .m = a[ta ? 1 : 0], .n = b[tb ? 0 : 1], .k = a[ta ? 0 : 1], .transpose_a = ta, .transpose_b = tb};
  if (b[tb ? 1 : 0] != w.k) return declined("operands that do not fit together");
  if (n.number("alpha", 1) != 1 && !constant) return declined("alpha other than 1");
  const std::string c = n.input(2);
  if (!c.empty()) {
    const GraphTensor& t = view.tensor(c);
    const double beta = n.number("beta", 1);
    const bool is_row = t.shape && (t.elements() == w.n || t.elements() == 1) &&
                        (t.shape->empty() || t.shape->back() == t.elements());
    if (beta == 1 && t.shape && !t.constant && *t.shape == Shape{w.m, w.n} && w.m > 1)
      w.residual = true;
    else if (is_row && (beta == 1 || t.constant))
      w.bias = true;
    else
      return declined("a C that is neither a bias nor a residual");
  }
  if (constant) w.constant = {"b"};
  return checked(w);
}

Served pool_of(const GraphView& view, const GraphNode& n) {
  if (const std::string why = unfit(view, {n.input(0), n.outputs.empty() ? "" : n.outputs[0]}); !why.empty())
    return declined(why);
  const Shape &x = shape(view, n.input(0)), &y = shape(view, n.outputs[0]);
  if (x.size() != 3 && x.size() != 4) return declined(str(x.size(), "-dimensional data, images are served"));
  if (n.outputs.size() > 1 && !n.outputs[1].empty()) return declined("indices wanted beside the values");
  const Shape image = tail(x, 2);
  const bool global = n.op.starts_with("Global");
  const std::optional<Shape> kernel = global ? std::optional(image) : n.integers("kernel_shape");
  const std::optional<Window> window = kernel ? window_of(n, image, *kernel) : std::nullopt;
  if (!window) return declined("kernel_shape, strides or pads that do not fit the image");
  if (window->dilation != std::array<int64_t, 2>{1, 1}) return declined("dilation");
  Pool2dWorkload p{.batch = x[0],
                   .channels = x[1],
                   .in_height = x.size() == 4 ? x[2] : 1,
                   .in_width = x.back(),
                   .kernel_height = window->kernel[0],
                   .kernel_width = window->kernel[1],
                   .stride = window->stride,
                   .padding = window->padding,
                   .pooling = n.op.ends_with("MaxPool") ? Pooling::kMax : Pooling::kAverage,
                   .count_include_pad = n.op == "AveragePool" && n.integer("count_include_pad", 0) != 0};
  for (const int64_t pad : p.padding)
    if (pad < 0) return declined("negative padding (cropping)");
  if (n.integer("ceil_mode", 0) != 0) {
    // A last window that reaches over the edge: as much padding more, at the bottom and on the right.
    const int64_t rows = y.size() == 4 ? y[2] : 1, columns = y.back();
    const int64_t below = (rows - 1) * p.stride[0] + p.kernel_height - p.in_height - p.padding[0];
    const int64_t right = (columns - 1) * p.stride[1] + p.kernel_width - p.in_width - p.padding[1];
    if (p.count_include_pad && (below > p.padding[2] || right > p.padding[3]))
      return declined("ceil_mode together with count_include_pad");
    p.padding[2] = std::max(p.padding[2], below);
    p.padding[3] = std::max(p.padding[3], right);
  }
  const Served served = checked(p);
  if (served.is_served() && (p.out_height() != (y.size() == 4 ? y[2] : 1) || p.out_width() != y.back()))
    return declined("windows that this library counts otherwise");
  return served;
}

Served softmax_of(const GraphView& view, const GraphNode& n) {
  if (const std::string why = unfit(view, {n.input(0)}); !why.empty()) return declined(why);
  const Shape& x = shape(view, n.input(0));
  constexpr int64_t kOneAxis = 13;  // before, everything from the axis on was one row
  const bool flattened = view.graph().opset < kOneAxis;
  const int64_t axis = axis_of(n.integer("axis", flattened ? 1 : -1), x.size());
  if (axis < 0) return declined("an axis that is not there");
  const auto at = static_cast<size_t>(axis);
  if (!flattened && product_of(x, at + 1, x.size()) != 1) return declined("not along the last axis");
  return checked(SoftmaxWorkload{.rows = product_of(x, 0, at), .columns = product_of(x, at, x.size())});
}

Served layer_norm_of(const GraphView& view, const GraphNode& n) {
  if (const std::string why = unfit(view, {n.input(0)}); !why.empty()) return declined(why);
  const Shape& x = shape(view, n.input(0));
  const int64_t axis = axis_of(n.integer("axis", -1), x.size());
  if (axis < 0) return declined("an axis that is not there");
  for (size_t o = 1; o < n.outputs.size(); ++o)
    if (!n.outputs[o].empty() && !view.readers(n.outputs[o]).empty())
      return declined("mean or deviation wanted as well");
  // As written ("1e-05"), not as float holds it: the workload's key shows it.
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", n.number("epsilon", 1e-5));
  const auto at = static_cast<size_t>(axis);
  return checked(LayerNormWorkload{.rows = product_of(x, 0, at),
                                   .columns = product_of(x, at, x.size()),
                                   .epsilon = std::strtod(text, nullptr)});
}

Served reduce_of(const GraphView& view, const GraphNode& n) {
  if (const std::string why = unfit(view, {n.input(0)}); !why.empty()) return declined(why);
  const Shape& x = shape(view, n.input(0));
  std::optional<Shape> axes = n.integers("axes");
  if (!n.input(1).empty()) axes = view.tensor(n.input(1)).integers;
  if (!axes && !n.input(1).empty()) return declined("axes that are computed");
  std::vector<bool> reduced(x.size(), !axes || axes->empty());
  if (axes && axes->empty() && n.integer("noop_with_empty_axes", 0) != 0) return declined("no axes");
  for (const int64_t each : axes.value_or(Shape())) {
    const int64_t axis = axis_of(each, x.size());
    if (axis < 0) return declined("an axis that is not there");
    reduced[static_cast<size_t>(axis)] = true;
  }
  int64_t rows = 1, columns = 1;
  for (size_t d = 0; d < x.size(); ++d) {
    if (x[d] == 1) continue;
    if (!reduced[d] && columns > 1) return declined("not along the last axes");
    (reduced[d] ? columns : rows) *= x[d];
  }
  const RowReduction kind = n.op == "ReduceSum"   ? RowReduction::kSum
                            : n.op == "ReduceMax" ? RowReduction::kMax
                            : n.op == "ReduceMin" ? RowReduction::kMin
                                                  : RowReduction::kMean;
  return checked(ReduceWorkload{.rows = rows, .columns = columns, .reduction = kind});
}

bool swaps_last_two(const GraphView& view, const GraphNode& n) {
  const GraphTensor& t = view.tensor(n.input(0));
  if (n.op != "Transpose" || !t.shape || t.shape->size() < 2) return false;
  Shape order(t.shape->size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Shape backwards(order.size());
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  return n.integers("perm").value_or(backwards) == order;
}

Served transpose_of(const GraphView& view, const GraphNode& n) {
  if (const std::string why = unfit(view, {n.input(0)}); !why.empty()) return declined(why);
  const Shape& x = shape(view, n.input(0));
  Shape backwards(x.size());
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  const Shape order = n.integers("perm").value_or(backwards);
  if (order.size() != x.size()) return declined("a perm that does not fit");
  // Extents of 1 move freely; of the others, two neighbours that stay neighbours are one.
  Shape groups;  // first axis of each group, in their new order
  int64_t last = -2;
  for (const int64_t axis : order) {
    if (axis_of(axis, x.size()) != axis) return declined("a perm that does not fit");
    if (x[static_cast<size_t>(axis)] == 1) continue;
    int64_t before = axis - 1;
    while (before >= 0 && x[static_cast<size_t>(before)] == 1) --before;
    if (groups.empty() || before != last) groups.push_back(axis);
    last = axis;
  }
  if (groups.size() <= 1) return declined(std::string(kNothingMoves));
  if (groups.size() != 2) return declined("more than two groups of axes change places");
  // The second group stood first: its extents are the rows, those of the first the columns.
  const auto from = static_cast<size_t>(groups[0]);
  return checked(TransposeWorkload{.rows = product_of(x, 0, from), .columns = product_of(x, from, x.size())});
}

}  // namespace tuner
