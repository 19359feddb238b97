#include "tuner/model/anchors.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "compiler_core/graph/operators/window.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Shape;
using graph::Use;
using graph::Uses;
using graph::ValueId;

int64_t product_of(const Shape& s, size_t first, size_t last) {
  return std::accumulate(s.begin() + static_cast<std::ptrdiff_t>(first),
                         s.begin() + static_cast<std::ptrdiff_t>(last), int64_t{1}, std::multiplies<>());
}
Shape tail(const Shape& s, size_t from) { return {s.begin() + static_cast<std::ptrdiff_t>(from), s.end()}; }

std::optional<Anchor> checked(Workload workload, std::vector<ValueId> reads,
                              std::vector<size_t> before = {}) {
  if (!validate(workload)) return std::nullopt;
  return Anchor{std::move(workload), std::move(reads), std::move(before)};
}

bool is_float32(const Use& use) {
  for (size_t i = 0; i < use.inputs(); ++i)
    if (use.has(i) && use.dtype(i) != DType::kFloat32) return false;
  return true;
}

// The Pad that makes `image`, if it puts only zeros around it, and nobody else reads them.
struct ZeroPad {
  size_t node = 0;
  ValueId inner = kNoValue;
  std::array<int64_t, 4> padding{};  // top, left, bottom, right
};
std::optional<ZeroPad> zero_pad(const Graph& g, const Uses& uses, ValueId image) {
  const size_t n = uses.maker(image);
  if (n == Uses::kNoNode || g.nodes[n].op != "Pad" || uses.readers(image) != 1) return std::nullopt;
  const Use use(g, g.nodes[n]);
  const size_t rank = use.shape(0).size();
  if (rank < 3 || rank > 4 || use.word("mode", "constant") != "constant" || use.has(3)) return std::nullopt;
  if (use.number("value", 0) != 0) return std::nullopt;
  if (use.has(2)) {
    const auto value = use.numbers(2);
    if (!value || value->at(0) != 0) return std::nullopt;
  }
  const auto pads = use.integers("pads", 1);
  if (!pads || !*pads || (*pads)->size() != 2 * rank) return std::nullopt;
  const std::vector<int64_t>& p = **pads;
  if (std::ranges::any_of(p, [](int64_t each) { return each < 0; })) return std::nullopt;
  if (p[0] != 0 || p[1] != 0 || p[rank] != 0 || p[rank + 1] != 0) return std::nullopt;
  ZeroPad out{.node = n, .inner = g.nodes[n].inputs[0]};
  for (size_t d = 2; d < rank; ++d) {
    out.padding[d - rank + 2] = p[d];
    out.padding[2 + d - rank + 2] = p[rank + d];
  }
  return out;
}

std::optional<Anchor> conv(const Graph& g, const Uses& uses, const Node& node) {
  const Use use(g, node);
  if (use.word("auto_pad", "NOTSET") != "NOTSET" && uses.maker(node.inputs[0]) != Uses::kNoNode &&
      g.nodes[uses.maker(node.inputs[0])].op == "Pad")
    return std::nullopt;  // what is the same size then?
  const auto window = window2d_of(use, use.shape(0), tail(use.shape(1), 2));
  if (!window) return std::nullopt;
  Shape x = use.shape(0);
  ValueId data = node.inputs[0];
  std::array<int64_t, 4> padding = window->padding;
  std::vector<size_t> before;
  if (const auto pad = zero_pad(g, uses, data)) {
    data = pad->inner;
    x = g[data].type.shape;
    for (size_t i = 0; i < 4; ++i) padding[i] += pad->padding[i];
    before.push_back(pad->node);
  }
  Conv2dWorkload w{.batch = x[0],
                   .in_channels = x[1],
                   .in_height = x.size() == 4 ? x[2] : 1,
                   .in_width = x.back(),
                   .out_channels = use.shape(1)[0],
                   .kernel_height = window->kernel[0],
                   .kernel_width = window->kernel[1],
                   .stride = window->stride,
                   .padding = padding,
                   .dilation = window->dilation,
                   .groups = use.integer("group", 1),
                   .bias = use.has(2)};
  if (use.is_constant(1)) w.constant = {"weight"};
  std::vector<ValueId> reads = {data, node.inputs[1]};
  if (w.bias) reads.push_back(node.inputs[2]);
  return checked(std::move(w), std::move(reads), std::move(before));
}

bool swaps_last_two(const Use& use) {
  const size_t rank = use.shape(0).size();
  if (rank < 2) return false;
  Shape order(rank), backwards(rank);
  std::iota(order.begin(), order.end(), 0);
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  std::swap(order[rank - 1], order[rank - 2]);
  return use.integers("perm", backwards) == order;
}

std::optional<Anchor> matmul(const Graph& g, const Uses& uses, const Node& node,
                             DType dtype = DType::kFloat32) {
  const Use use(g, node);
  Shape a = use.shape(0), b = use.shape(1);
  if (a.empty() || b.empty()) return std::nullopt;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  const int64_t batch_a = product_of(a, 0, a.size() - 2), batch_b = product_of(b, 0, b.size() - 2);
  MatmulWorkload w{.m = a[a.size() - 2], .n = b.back(), .k = a.back(), .dtype = dtype};
  if (batch_b == 1)
    w.m *= batch_a;  // the same b for every matrix of a: their rows stand one below the other
  else if (Shape(a.begin(), a.end() - 2) == Shape(b.begin(), b.end() - 2))
    w.batch = batch_a;
  else
    return std::nullopt;
  ValueId right = node.inputs[1];
  std::vector<size_t> before;
  // A transposition of b that nobody else reads is the product's to read.
  const size_t maker = uses.maker(right);
  if (maker != Uses::kNoNode && g.nodes[maker].op == "Transpose" && uses.readers(right) == 1 &&
      swaps_last_two(Use(g, g.nodes[maker]))) {
    right = g.nodes[maker].inputs[0];
    w.transpose_b = true;
    before.push_back(maker);
  }
  if (g[right].constant) w.constant = {"b"};
  return checked(std::move(w), {node.inputs[0], right}, std::move(before));
}

// Of unsigned and signed bytes, without zero points.
std::optional<Anchor> matmul_integer(const Graph& g, const Uses& uses, const Node& node) {
  const Use use(g, node);
  if (use.has(2) || use.has(3) || use.dtype(0) != DType::kUInt8 || use.dtype(1) != DType::kInt8)
    return std::nullopt;
  return matmul(g, uses, node, DType::kInt8);
}

std::optional<Anchor> gemm(const Graph& g, const Node& node) {
  const Use use(g, node);
  const Shape &a = use.shape(0), &b = use.shape(1);
  const bool ta = use.integer("transA", 0) != 0, tb = use.integer("transB", 0) != 0;
  MatmulWorkload w{
      .m = a[ta ? 1 : 0], .n = b[tb ? 0 : 1], .k = a[ta ? 0 : 1], .transpose_a = ta, .transpose_b = tb};
  if (use.number("alpha", 1) != 1) return std::nullopt;
  std::vector<ValueId> reads = {node.inputs[0], node.inputs[1]};
  if (use.has(2)) {
    const Shape& c = use.shape(2);
    if (use.number("beta", 1) != 1) return std::nullopt;
    if (product_of(c, 0, c.size()) == w.n && !c.empty() && c.back() == w.n)
      w.bias = true;
    else if (c == Shape{w.m, w.n})
      w.residual = true;
    else
      return std::nullopt;
    reads.push_back(node.inputs[2]);
  }
  if (use.is_constant(1)) w.constant = {"b"};
  return checked(std::move(w), std::move(reads));
}

// The operand's bytes are the workload's: zero points two in a byte, weights in whole groups.
std::optional<Anchor> matmul_nbits(const Graph& g, const Node& node) {
  const Use use(g, node);
  const Shape& a = use.shape(0);
  MatmulNBitsWorkload w{.m = product_of(a, 0, a.size() - 1),
                        .n = use.shape(1)[0],
                        .k = a.back(),
                        .group = 2 * use.shape(1)[2],
                        .zero_points = use.has(3),
                        .bias = use.has(5)};
  std::vector<ValueId> reads(node.inputs.begin(), node.inputs.begin() + 3);
  if (w.zero_points) reads.push_back(node.inputs[3]);
  if (w.bias) reads.push_back(node.inputs[5]);
  if (use.is_constant(1)) w.constant.emplace_back("b");
  if (use.is_constant(2)) w.constant.emplace_back("scales");
  if (w.zero_points && use.is_constant(3)) w.constant.emplace_back("zero_points");
  return checked(std::move(w), std::move(reads));
}

std::optional<Anchor> pool(const Graph& g, const Node& node) {
  const Use use(g, node);
  if (use.gives(1)) return std::nullopt;
  const Shape &x = use.shape(0), &y = g[node.outputs[0]].type.shape;
  const auto window = window2d_of(use, x, {});
  if (!window || window->dilation != std::array<int64_t, 2>{1, 1}) return std::nullopt;
  Pool2dWorkload p{.batch = x[0],
                   .channels = x[1],
                   .in_height = x.size() == 4 ? x[2] : 1,
                   .in_width = x.back(),
                   .kernel_height = window->kernel[0],
                   .kernel_width = window->kernel[1],
                   .stride = window->stride,
                   .padding = window->padding,
                   .pooling = node.op == "MaxPool" ? Pooling::kMax : Pooling::kAverage,
                   .count_include_pad = node.op == "AveragePool" && use.integer("count_include_pad", 0) != 0};
  if (use.integer("ceil_mode", 0) != 0) {
    // A last window that reaches over the edge: as much padding more, at the bottom and on the right.
    const int64_t below =
        ((y.size() == 4 ? y[2] : 1) - 1) * p.stride[0] + p.kernel_height - p.in_height - p.padding[0];
    const int64_t right = (y.back() - 1) * p.stride[1] + p.kernel_width - p.in_width - p.padding[1];
    if (p.count_include_pad && (below > p.padding[2] || right > p.padding[3])) return std::nullopt;
    p.padding[2] = std::max(p.padding[2], below);
    p.padding[3] = std::max(p.padding[3], right);
  }
  if (p.out_height() != (y.size() == 4 ? y[2] : 1) || p.out_width() != y.back()) return std::nullopt;
  return checked(p, {node.inputs[0]});
}

std::optional<Anchor> softmax(const Graph& g, const Node& node) {
  const Use use(g, node);
  constexpr int64_t kOneAxis = 13;  // before, everything from the axis on was one row
  const bool flattened = use.operator_set() < kOneAxis;
  const auto axis = use.axis(flattened ? 1 : -1, use.rank(0));
  if (!axis) return std::nullopt;
  const Shape& x = use.shape(0);
  const auto at = static_cast<size_t>(*axis);
  if (!flattened && product_of(x, at + 1, x.size()) != 1) return std::nullopt;
  return checked(SoftmaxWorkload{.rows = product_of(x, 0, at), .columns = product_of(x, at, x.size())},
                 {node.inputs[0]});
}

std::optional<Anchor> layer_norm(const Graph& g, const Node& node) {
  const Use use(g, node);
  const auto axis = use.axis(-1, use.rank(0));
  if (!axis || !use.has(1) || !use.has(2) || use.gives(1) || use.gives(2)) return std::nullopt;
  const Shape& x = use.shape(0);
  const auto at = static_cast<size_t>(*axis);
  const int64_t columns = product_of(x, at, x.size());
  if (g[node.inputs[1]].type.elements() != columns || g[node.inputs[2]].type.elements() != columns)
    return std::nullopt;
  // As written ("1e-05"), not as float holds it: the workload's key shows it.
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", use.number("epsilon", 1e-5));
  return checked(
      LayerNormWorkload{
          .rows = product_of(x, 0, at), .columns = columns, .epsilon = std::strtod(text, nullptr)},
      {node.inputs[0], node.inputs[1], node.inputs[2]});
}

// Reductions along the last axes.
std::optional<Anchor> reduce(const Graph& g, const Node& node) {
  const Use use(g, node);
  const Shape& x = use.shape(0);
  const bool global = node.op.starts_with("Global");
  std::vector<bool> reduced(x.size(), false);
  if (global) {
    std::fill(reduced.begin() + 2, reduced.end(), true);
  } else {
    const auto axes = use.axes("axes", 1, use.rank(0));
    if (!axes) return std::nullopt;
    if (!*axes || (*axes)->empty()) {
      if (use.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
      reduced.assign(x.size(), true);
    } else {
      for (const int64_t axis : **axes) reduced[static_cast<size_t>(axis)] = true;
    }
  }
  int64_t rows = 1, columns = 1;
  for (size_t d = 0; d < x.size(); ++d) {
    if (x[d] == 1) continue;
    if (!reduced[d] && columns > 1) return std::nullopt;
    (reduced[d] ? columns : rows) *= x[d];
  }
  const auto kind = [&](std::string_view what) { return node.op.find(what) != std::string::npos; };
  const RowReduction reduction = kind("Sum")   ? RowReduction::kSum
                                 : kind("Max") ? RowReduction::kMax
                                 : kind("Min") ? RowReduction::kMin
                                               : RowReduction::kMean;
  return checked(ReduceWorkload{.rows = rows, .columns = columns, .reduction = reduction}, {node.inputs[0]});
}

// Two groups of axes that change places.
std::optional<Anchor> transpose(const Graph& g, const Node& node) {
  const Use use(g, node);
  const Shape& x = use.shape(0);
  Shape backwards(x.size());
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  // Extents of 1 move freely; of the others, two neighbours that stay neighbours are one.
  Shape groups;  // first axis of each group, in their new order
  int64_t last = -2;
  for (const int64_t axis : use.integers("perm", backwards)) {
    if (x[static_cast<size_t>(axis)] == 1) continue;
    int64_t before = axis - 1;
    while (before >= 0 && x[static_cast<size_t>(before)] == 1) --before;
    if (groups.empty() || before != last) groups.push_back(axis);
    last = axis;
  }
  if (groups.size() != 2) return std::nullopt;
  // The second group stood first: its extents are the rows, those of the first the columns.
  const auto from = static_cast<size_t>(groups[0]);
  return checked(TransposeWorkload{.rows = product_of(x, 0, from), .columns = product_of(x, from, x.size())},
                 {node.inputs[0]});
}

}  // namespace

std::optional<Window2d> window2d_of(const Use& use, const Shape& image, const Shape& kernel) {
  const size_t dims = image.size() - 2;
  if (dims < 1 || dims > 2) return std::nullopt;
  const auto w = graph::window_of(use, image, kernel);
  if (!w) return std::nullopt;
  Window2d out;
  for (size_t d = 0; d < dims; ++d) {
    const size_t to = 2 - dims + d;
    out.kernel[to] = w->kernel[d], out.stride[to] = w->strides[d], out.dilation[to] = w->dilations[d];
    out.padding[to] = w->before[d], out.padding[2 + to] = w->behind[d];
    if (w->before[d] < 0 || w->behind[d] < 0) return std::nullopt;
  }
  return out;
}

std::optional<Anchor> anchor_of(const Graph& graph, const Uses& uses, size_t n) {
  const Node& node = graph.nodes[n];
  if (node.op == "com.microsoft.MatMulNBits") return matmul_nbits(graph, node);
  if (node.op == "MatMulInteger") return matmul_integer(graph, uses, node);
  if (!is_float32(Use(graph, node)) && !node.op.starts_with("Reduce")) return std::nullopt;
  if (node.op == "Conv") return conv(graph, uses, node);
  if (node.op == "MatMul") return matmul(graph, uses, node);
  if (node.op == "Gemm") return gemm(graph, node);
  if (node.op == "MaxPool" || node.op == "AveragePool") return pool(graph, node);
  if (node.op == "Softmax") return softmax(graph, node);
  if (node.op == "LayerNormalization") return layer_norm(graph, node);
  if (node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool" || node.op == "ReduceSum" ||
      node.op == "ReduceMax" || node.op == "ReduceMin" || node.op == "ReduceMean")
    return Use(graph, node).dtype(0) == DType::kFloat32 ? reduce(graph, node) : std::nullopt;
  if (node.op == "Transpose") return transpose(graph, node);
  return std::nullopt;
}

}  // namespace tuner
