// A transposed convolution of stride s gives result pixel s * j + r (r = 0 .. s - 1) the sum of
//
//   image[j - m] * kernel[r + s * m]     over m = 0 .. taps - 1, taps = kernel / s, rounded up
//
// which for each r is a plain convolution of the image, with the kernel's elements r, r + s, ... backwards.
// All r together are one convolution with s * s times the channels, whose results DepthToSpace moves to their
// pixels.
#include "compiler_core/base/int_math.h"
#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/operators/window.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

struct Split {
  Transposed t;
  int64_t stride = 1;
  Shape taps;  // one number a dimension
  Shape grid;  // extents of the plain convolution's result
};

std::optional<Split> split_of(const Graph& graph, const Node& node) {
  if (node.op != "ConvTranspose") return std::nullopt;
  const Use use(graph, node);
  if (use.rank(0) != 4 || use.integer("group", 1) != 1 || !use.is_constant(1)) return std::nullopt;
  if (use.has(2) && !use.is_constant(2)) return std::nullopt;
  Split s{.t = *transposed_of(use)};
  s.stride = s.t.strides[0];
  for (size_t d = 0; d < 2; ++d) {
    if (s.t.strides[d] != s.stride || s.t.dilations[d] != 1) return std::nullopt;
    s.taps.push_back(ceil_div(s.t.kernel[d], s.stride));
    s.grid.push_back(use.shape(0)[d + 2] + s.taps[d] - 1);
    // Pixels beyond what the image reaches would be bias alone.
    if (s.t.before[d] + s.t.result[d] > s.stride * s.grid[d]) return std::nullopt;
  }
  return s;
}

// Weights [channels, results, kh, kw] as [s * s * results, channels, taps, taps]; pixel (r, q) of a channel
// stands at (r * s + q) * results + channel.
ValueId plain_weights(Graph& graph, const Value& weight, const Split& s) {
  const Shape& shape = weight.type.shape;
  const int64_t channels = shape[0], results = shape[1], kh = shape[2], kw = shape[3], n = s.stride;
  const std::vector<double> from = weight.constant->numbers(weight.type.dtype);
  const Shape to_shape{n * n * results, channels, s.taps[0], s.taps[1]};
  std::vector<double> to;
  to.reserve(static_cast<size_t>(elements_of(to_shape)));
  for (int64_t out = 0; out < to_shape[0]; ++out)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t y = s.taps[0] - 1; y >= 0; --y)
        for (int64_t x = s.taps[1] - 1; x >= 0; --x) {
          const int64_t row = out / results / n + n * y, column = out / results % n + n * x;
          const int64_t at = ((c * results + out % results) * kh + row) * kw + column;
          to.push_back(row < kh && column < kw ? from[static_cast<size_t>(at)] : 0);
        }
  return add_constant(graph, weight.name, {weight.type.dtype, to_shape}, to);
}

ValueId repeated(Graph& graph, const Value& bias, int64_t times) {
  const std::vector<double> once = bias.constant->numbers(bias.type.dtype);
  std::vector<double> all;
  for (int64_t k = 0; k < times; ++k) all.insert(all.end(), once.begin(), once.end());
  const auto count = static_cast<int64_t>(all.size());
  return add_constant(graph, bias.name, {bias.type.dtype, {count}}, all);
}

std::vector<Node> written_out(Graph& graph, const Node& node, const Split& s) {
  const TensorType type = graph[node.outputs[0]].type;
  const int64_t n = s.stride, results = type.shape[1];
  std::vector<Node> nodes;
  const auto add = [&](std::string_view op, Attributes attributes, std::vector<ValueId> inputs, Shape shape) {
    graph.values.push_back({str(node.name, "/", op), {type.dtype, std::move(shape)}, std::nullopt});
    nodes.push_back({.name = node.name,
                     .op = std::string(op),
                     .attributes = std::move(attributes),
                     .inputs = std::move(inputs),
                     .outputs = {graph.values.size() - 1}});
    return graph.values.size() - 1;
  };
  std::vector<ValueId> operands{node.inputs[0], plain_weights(graph, Value(graph[node.inputs[1]]), s)};
  if (Use(graph, node).has(2)) operands.push_back(repeated(graph, Value(graph[node.inputs[2]]), n * n));
  const int64_t rows = s.taps[0] - 1, columns = s.taps[1] - 1;
  ValueId made = add("Conv", {{"kernel_shape", s.taps}, {"pads", Shape{rows, columns, rows, columns}}},
                     operands, {type.shape[0], n * n * results, s.grid[0], s.grid[1]});
  if (n > 1)
    made = add("DepthToSpace", {{"blocksize", n}, {"mode", std::string("DCR")}}, {made},
               {type.shape[0], results, n * s.grid[0], n * s.grid[1]});
  if (graph[made].type != type) {
    const auto list = [&](const Shape& numbers) {
      Value value{.name = node.name, .type = {DType::kInt64, {std::ssize(numbers)}}, .constant = {}};
      value.constant = Constant::of(numbers, DType::kInt64);
      graph.values.push_back(std::move(value));
      return graph.values.size() - 1;
    };
    const Shape& before = s.t.before;
    add("Slice", {},
        {made, list(before), list({before[0] + s.t.result[0], before[1] + s.t.result[1]}), list({2, 3})},
        type.shape);
  }
  nodes.back().outputs = node.outputs;
  return nodes;
}

}  // namespace

Status split_transposed(Graph& graph, const Evaluator& /*evaluate*/) {
  std::vector<Node> nodes;
  const std::vector<Node> before = std::move(graph.nodes);
  for (const Node& node : before) {
    const std::optional<Split> s = split_of(graph, node);
    if (!s) {
      nodes.push_back(node);
      continue;
    }
    for (Node& made : written_out(graph, node, *s)) nodes.push_back(std::move(made));
  }
  graph.nodes = std::move(nodes);
  return Status::ok();
}

}  // namespace tuner::graph
