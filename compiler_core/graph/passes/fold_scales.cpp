#include <cmath>
#include <utility>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

// y = x * factor + summand, a number a channel.
struct Affine {
  ValueId data = kNoValue;
  std::vector<double> factor, summand;
};

// The numbers of a constant that is one number, or one a channel of `type` (dimension `axis`).
std::optional<std::vector<double>> per_channel(const Value& v, const TensorType& type, size_t axis) {
  if (!v.constant || v.type.shape.size() > type.shape.size()) return std::nullopt;
  const size_t skipped = type.shape.size() - v.type.shape.size();
  const auto channels = static_cast<size_t>(type.shape[axis]);
  for (size_t d = 0; d < v.type.shape.size(); ++d)
    if (v.type.shape[d] != 1 && d + skipped != axis) return std::nullopt;
  std::vector<double> numbers = v.constant->numbers(v.type.dtype);
  if (numbers.size() == 1) numbers.assign(channels, numbers[0]);
  if (numbers.size() != channels) return std::nullopt;
  return numbers;
}

std::optional<Affine> normalization(const Graph& graph, const Node& node) {
  std::vector<double> inputs[4];
  for (size_t i = 1; i < 5; ++i) {
    const Value& v = graph[node.inputs[i]];
    if (!v.constant) return std::nullopt;
    inputs[i - 1] = v.constant->numbers(v.type.dtype);
  }
  const auto& [scale, shift, mean, variance] = inputs;
  const double epsilon = Use(graph, node).number("epsilon", 1e-5);
  Affine found{.data = node.inputs[0]};
  for (size_t c = 0; c < scale.size(); ++c) {
    found.factor.push_back(scale[c] / std::sqrt(variance[c] + epsilon));
    found.summand.push_back(shift[c] - mean[c] * found.factor[c]);
  }
  return found;
}

// What the node does to each channel of its operand; nothing if it does anything else.
std::optional<Affine> affine_of(const Graph& graph, const Node& node, size_t axis) {
  const std::string& op = node.op;
  if (node.outputs.size() != 1 || node.outputs[0] == kNoValue) return std::nullopt;
  if (op == "BatchNormalization") return axis == 1 ? normalization(graph, node) : std::nullopt;
  if (op != "Mul" && op != "Div" && op != "Add" && op != "Sub") return std::nullopt;
  const TensorType& type = graph[node.outputs[0]].type;
  if (!is_float(type.dtype) || axis >= type.shape.size()) return std::nullopt;
  const bool commutes = op == "Mul" || op == "Add", is_factor = op == "Mul" || op == "Div";
  for (const size_t c : {size_t{1}, size_t{0}}) {
    if (c == 0 && !commutes) continue;
    const auto numbers = per_channel(graph[node.inputs[c]], type, axis);
    if (!numbers || graph[node.inputs[1 - c]].type != type) continue;
    Affine found{.data = node.inputs[1 - c],
                 .factor = std::vector<double>(numbers->size(), 1),
                 .summand = std::vector<double>(numbers->size(), 0)};
    for (size_t k = 0; k < numbers->size(); ++k) {
      const double x = (*numbers)[k];
      if (is_factor) found.factor[k] = op == "Mul" ? x : 1 / x;
      if (!is_factor) found.summand[k] = op == "Add" ? x : -x;
    }
    return found;
  }
  return std::nullopt;
}

// A product whose weights are constant: which dimension of its result the channels are, and of its weights.
struct Product {
  size_t result_axis, weight_axis;
};
std::optional<Product> product_of(const Graph& graph, const Node& node) {
  const auto is_known = [&](size_t i) {
    return i >= node.inputs.size() || node.inputs[i] == kNoValue || graph[node.inputs[i]].constant;
  };
  if (!is_known(1) || !is_known(2)) return std::nullopt;
  const Use use(graph, node);
  if (node.op == "Conv") return Product{1, 0};
  if (node.op == "ConvTranspose" && use.integer("group", 1) == 1) return Product{1, 1};
  if (node.op == "Gemm" && use.number("beta", 1) == 1)
    return Product{1, use.integer("transB", 0) != 0 ? size_t{0} : size_t{1}};
  return std::nullopt;
}

// The bias of the product as one number a channel; nothing if it has another form.
std::optional<std::vector<double>> bias_of(const Graph& graph, const Node& node, const Product& product) {
  const TensorType& type = graph[node.outputs[0]].type;
  const auto channels = static_cast<size_t>(type.shape[product.result_axis]);
  if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return std::vector<double>(channels, 0);
  const Value& bias = graph[node.inputs[2]];
  if (node.op != "Gemm") return bias.constant->numbers(bias.type.dtype);
  return per_channel(bias, type, product.result_axis);
}

// Puts the affine step into the product's weights and bias.
void absorb(Graph& graph, Node& node, const Product& product, const Affine& step, std::vector<double> bias) {
  const Value weight = graph[node.inputs[1]];
  const std::vector<int64_t>& shape = weight.type.shape;
  std::vector<double> weights = weight.constant->numbers(weight.type.dtype);
  size_t inner = 1;
  for (size_t d = product.weight_axis + 1; d < shape.size(); ++d) inner *= static_cast<size_t>(shape[d]);
  const auto channels = static_cast<size_t>(shape[product.weight_axis]);
  for (size_t e = 0; e < weights.size(); ++e) weights[e] *= step.factor[e / inner % channels];
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * step.factor[c] + step.summand[c];
  const auto count = static_cast<int64_t>(bias.size());
  node.inputs.resize(3, kNoValue);
  node.inputs[1] = add_constant(graph, weight.name, weight.type, weights);
  node.inputs[2] = add_constant(graph, weight.name + "/bias", {weight.type.dtype, {count}}, bias);
}

// One step into the product before it; false if there is none that takes it.
bool fold_into_product(Graph& graph, Uses& uses, size_t n) {
  for (const ValueId in : graph.nodes[n].inputs) {
    const size_t maker = uses.maker(in);
    if (maker == Uses::kNoNode || uses.readers(in) != 1) continue;
    Node& before = graph.nodes[maker];
    const auto product = product_of(graph, before);
    if (!product) continue;
    const auto step = affine_of(graph, graph.nodes[n], product->result_axis);
    if (!step || step->data != in) continue;
    const auto bias = bias_of(graph, before, *product);
    if (!bias) continue;
    const std::vector<ValueId> read = before.inputs;
    absorb(graph, before, *product, *step, *bias);
    before.outputs = std::exchange(graph.nodes[n].outputs, {});
    uses.change(graph, read, before.inputs);
    uses.change(graph, std::exchange(graph.nodes[n].inputs, {}), {});
    for (const ValueId out : before.outputs) uses.make(out, maker);
    return true;
  }
  return false;
}

// A normalization without a product before it: a product and a sum.
std::vector<Node> written_out(Graph& graph, const Node& node, const Affine& step) {
  const TensorType type = graph[node.outputs[0]].type;
  std::vector<int64_t> shape(type.shape.size() < 2 ? 1 : type.shape.size() - 1, 1);
  shape[0] = static_cast<int64_t>(step.factor.size());
  const ValueId factor = add_constant(graph, node.name + "/factor", {type.dtype, shape}, step.factor);
  const ValueId summand = add_constant(graph, node.name + "/summand", {type.dtype, shape}, step.summand);
  graph.values.push_back({node.name + "/product", type, std::nullopt});
  const ValueId between = graph.values.size() - 1;
  return {{node.name, "Mul", node.operator_set, {}, {step.data, factor}, {between}},
          {node.name, "Add", node.operator_set, {}, {between, summand}, {node.outputs[0]}}};
}

}  // namespace

Status fold_scales(Graph& graph, const Evaluator& /*evaluate*/) {
  std::vector<bool> gone(graph.nodes.size(), false);
  Uses uses(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (affine_of(graph, graph.nodes[n], 1) || graph.nodes[n].op == "Add")
      gone[n] = fold_into_product(graph, uses, n);
  erase_nodes(graph, gone);
  std::vector<Node> nodes;
  const std::vector<Node> before = std::move(graph.nodes);
  for (const Node& node : before) {
    const auto step = node.op == "BatchNormalization" ? normalization(graph, node) : std::nullopt;
    if (!step) {
      nodes.push_back(node);
      continue;
    }
    for (Node& made : written_out(graph, node, *step)) nodes.push_back(std::move(made));
  }
  graph.nodes = std::move(nodes);
  return Status::ok();
}

}  // namespace tuner::graph
