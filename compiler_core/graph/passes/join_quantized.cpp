// Exporters write networks in 8 bits in two ways: by operators on bytes (QLinearConv), or by those of float32
// between a DequantizeLinear per operand and a QuantizeLinear. This makes the first form of the second.
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

// Bytes, and constants that say what they stand for: (byte - zero) * scale.
struct Quantized {
  ValueId bytes = kNoValue, scale = kNoValue, zero = kNoValue;
};

class Joiner {
 public:
  explicit Joiner(Graph& graph) : graph_(graph), uses_(graph), reader_(graph.values.size(), Uses::kNoNode) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const ValueId in : graph.nodes[n].inputs)
        if (in != kNoValue) reader_[in] = n;
  }

  // The QuantizeLinear behind node n becomes the operator on bytes, if there is one.
  void join(size_t n) {
    const size_t last = quantizer(n);
    if (last == Uses::kNoNode) return;
    const Node node = graph_.nodes[n];
    const ValueId result = graph_.nodes[last].outputs[0];
    Node& quantize = graph_.nodes[last];
    const Quantized y{result, quantize.inputs[1], zero_of(quantize, graph_[result].type.dtype)};
    std::optional<Node> joined = on_bytes(node, y);
    if (!joined) return;
    joined->name = node.name;
    joined->operator_set = node.operator_set;
    joined->outputs = {result};
    const auto types = infer(graph_, *joined);
    if (types && types->front() == graph_[result].type) graph_.nodes[last] = *std::move(joined);
  }

 private:
  double number(ValueId id) const { return graph_[id].constant->numbers(graph_[id].type.dtype)[0]; }
  bool is_single_number(ValueId id) const {
    return id != kNoValue && graph_[id].constant && graph_[id].type.elements() == 1;
  }
  // Scale and zero point are one constant number each.
  bool is_of_tensor(const Node& node) const {
    return is_single_number(node.inputs[1]) && graph_[node.inputs[1]].type.dtype == DType::kFloat32 &&
           (node.inputs.size() < 3 || node.inputs[2] == kNoValue || is_single_number(node.inputs[2]));
  }
  ValueId zero_of(const Node& node, DType dtype) {
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) return node.inputs[2];
    return add_constant(graph_, node.name + "/zero_point", {dtype, {}}, {0});
  }

  // The only node that reads it, or kNoNode.
  size_t only_reader(ValueId id) const {
    return id < reader_.size() && uses_.readers(id) == 1 ? reader_[id] : Uses::kNoNode;
  }
  // The QuantizeLinear that alone reads what node n makes. A ReLU before it is its lower bound.
  size_t quantizer(size_t n) const {
    size_t next = only_reader(graph_.nodes[n].outputs[0]);
    const bool is_relu = next != Uses::kNoNode && graph_.nodes[next].op == "Relu";
    if (is_relu) next = only_reader(graph_.nodes[next].outputs[0]);
    if (next == Uses::kNoNode || graph_.nodes[next].op != "QuantizeLinear") return Uses::kNoNode;
    const Node& quantize = graph_.nodes[next];
    const DType dtype = graph_[quantize.outputs[0]].type.dtype;
    if (!is_byte(dtype) || !is_of_tensor(quantize)) return Uses::kNoNode;
    const bool has_zero = quantize.inputs.size() > 2 && quantize.inputs[2] != kNoValue;
    const double zero = has_zero ? number(quantize.inputs[2]) : 0;
    return is_relu && zero != (dtype == DType::kInt8 ? -128 : 0) ? Uses::kNoNode : next;
  }

  const Node* dequantizer(ValueId id) const {
    const size_t n = uses_.maker(id);
    if (n == Uses::kNoNode || graph_.nodes[n].op != "DequantizeLinear") return nullptr;
    return Use(graph_, graph_.nodes[n]).has_attribute("block_size") ? nullptr : &graph_.nodes[n];
  }
  std::optional<Quantized> operand(ValueId id) {
    const Node* const made = dequantizer(id);
    if (made == nullptr || !is_of_tensor(*made) || !is_byte(graph_[made->inputs[0]].type.dtype))
      return std::nullopt;
    const Node node = *made;
    return Quantized{node.inputs[0], node.inputs[1], zero_of(node, graph_[node.inputs[0]].type.dtype)};
  }
  // Constant bytes with one scale, or one per index of `axis`.
  std::optional<Quantized> weights(ValueId id, int64_t axis) {
    const Node* const made = dequantizer(id);
    if (made == nullptr) return std::nullopt;
    const Node node = *made;
    const Value& bytes = graph_[node.inputs[0]];
    const bool of_axis = graph_[node.inputs[1]].type.elements() > 1;
    const Use use(graph_, node);
    if (!bytes.constant || !is_byte(bytes.type.dtype) || !use.is_constant(1) ||
        use.dtype(1) != DType::kFloat32 || (use.has(2) && !use.is_constant(2)))
      return std::nullopt;
    if (of_axis && use.integer("axis", 1) != axis) return std::nullopt;
    return Quantized{node.inputs[0], node.inputs[1], zero_of(node, bytes.type.dtype)};
  }
  // As float32, of a constant or what a DequantizeLinear makes of one with one scale.
  std::optional<std::vector<float>> floats(ValueId id) const {
    const Node* const made = dequantizer(id);
    const ValueId from = made == nullptr ? id : made->inputs[0];
    if (!graph_[from].constant || (made != nullptr && !is_of_tensor(*made))) return std::nullopt;
    const std::vector<double> numbers = graph_[from].constant->numbers(graph_[from].type.dtype);
    std::vector<float> out(numbers.begin(), numbers.end());
    if (made == nullptr) return out;
    const bool has_zero = made->inputs.size() > 2 && made->inputs[2] != kNoValue;
    const double zero = has_zero ? number(made->inputs[2]) : 0;
    const auto scale = static_cast<float>(number(made->inputs[1]));
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(numbers[i] - zero) * scale;
    return out;
  }

  // Without name and outputs.
  std::optional<Node> on_bytes(const Node& node, const Quantized& y) {
    if (node.op == "Conv") return conv(node, y);
    if (node.op == "MatMul") return matmul(node, y);
    if (node.op == "LayerNormalization") return layer_norm(node, y);
    const auto x = node.inputs.empty() ? std::nullopt : operand(node.inputs[0]);
    if (!x) return std::nullopt;
    if (node.op == "Add") return sum(node, *x, y);
    if (node.op == "Softmax") return softmax(node, *x, y);
    if (node.op == "GlobalAveragePool")
      return Node{.op = "com.microsoft.QLinearGlobalAveragePool",
                  .inputs = {x->bytes, x->scale, x->zero, y.scale, y.zero}};
    return moved(node, *x, y);
  }

  std::optional<Node> conv(const Node& node, const Quantized& y) {
    const auto x = operand(node.inputs[0]), w = weights(node.inputs[1], 0);
    if (!x || !w) return std::nullopt;
    Node out{.op = "QLinearConv",
             .attributes = node.attributes,
             .inputs = {x->bytes, x->scale, x->zero, w->bytes, w->scale, w->zero, y.scale, y.zero}};
    if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return out;
    const ValueId bias = bias_of(node.inputs[2], *x, *w);
    if (bias == kNoValue) return std::nullopt;
    out.inputs.push_back(bias);
    return out;
  }
  // int32 in units of the product of both scales, or kNoValue.
  ValueId bias_of(ValueId id, const Quantized& x, const Quantized& w) const {
    const Node* const made = dequantizer(id);
    if (made == nullptr) return kNoValue;
    const Use use(graph_, *made);
    if (use.dtype(0) != DType::kInt32 || !use.is_constant(0) || !use.is_constant(1)) return kNoValue;
    if (use.has(2)) {
      const auto zeros = use.numbers(2);
      if (!zeros || std::ranges::any_of(*zeros, [](double zero) { return zero != 0; })) return kNoValue;
    }
    const std::vector<double> scales = *use.numbers(1),
                              of_weights = graph_[w.scale].constant->numbers(graph_[w.scale].type.dtype);
    constexpr double kRounding = 1e-5;
    for (size_t c = 0; c < std::max(scales.size(), of_weights.size()); ++c) {
      const double unit = number(x.scale) * of_weights[of_weights.size() == 1 ? 0 : c];
      if (std::fabs(scales[scales.size() == 1 ? 0 : c] - unit) > kRounding * unit) return kNoValue;
    }
    return made->inputs[0];
  }

  std::optional<Node> matmul(const Node& node, const Quantized& y) {
    const auto a = operand(node.inputs[0]), b = operand(node.inputs[1]);
    if (!a || !b || !graph_[b->bytes].constant) return std::nullopt;
    return Node{.op = "QLinearMatMul",
                .inputs = {a->bytes, a->scale, a->zero, b->bytes, b->scale, b->zero, y.scale, y.zero}};
  }

  std::optional<Node> sum(const Node& node, const Quantized& a, const Quantized& y) {
    const auto b = operand(node.inputs[1]);
    if (!b || graph_[a.bytes].type != graph_[b->bytes].type) return std::nullopt;
    return Node{.op = "com.microsoft.QLinearAdd",
                .inputs = {a.bytes, a.scale, a.zero, b->bytes, b->scale, b->zero, y.scale, y.zero}};
  }

  std::optional<Node> softmax(const Node& node, const Quantized& x, const Quantized& y) const {
    constexpr int64_t kOneAxis = 13;  // before it, axes from this one on were one
    const Use use(graph_, node);
    const auto axis = use.axis(node.operator_set < kOneAxis ? 1 : -1, use.rank(0));
    if (!axis || *axis + 1 != use.rank(0)) return std::nullopt;
    return Node{.op = "com.microsoft.QLinearSoftmax", .inputs = {x.bytes, x.scale, x.zero, y.scale, y.zero}};
  }

  // Scales of bytes are in its gains and offsets; what it adds to the variance is in units of bytes.
  std::optional<Node> layer_norm(const Node& node, const Quantized& y) {
    const Use use(graph_, node);
    const auto x = operand(node.inputs[0]);
    const auto axis = use.axis(-1, use.rank(0));
    if (!x || !axis || *axis + 1 != use.rank(0) || use.gives(1) || use.gives(2)) return std::nullopt;
    const int64_t columns = use.shape(0).back();
    auto gains = floats(node.inputs[1]);
    auto offsets = use.has(2) ? floats(node.inputs[2]) : std::vector<float>(static_cast<size_t>(columns));
    if (!gains || !offsets || std::ssize(*gains) != columns || std::ssize(*offsets) != columns)
      return std::nullopt;
    const auto of_x = static_cast<float>(number(x->scale)), of_y = static_cast<float>(number(y.scale));
    for (float& each : *gains) each /= of_y;
    for (float& each : *offsets) each /= of_y;
    const auto added = [&](const char* what, const std::vector<float>& numbers) {
      return add_constant(graph_, str(node.name, "/", what), {DType::kFloat32, {columns}},
                          {numbers.begin(), numbers.end()});
    };
    const float epsilon = static_cast<float>(use.number("epsilon", 1e-5)) / (of_x * of_x);
    return Node{.op = "tuner.QLinearLayerNormalization",
                .attributes = {{"epsilon", double{epsilon}}},
                .inputs = {x->bytes, added("gain", *gains), added("offset", *offsets), y.zero}};
  }

  // Elements as they are, in the same units.
  std::optional<Node> moved(const Node& node, const Quantized& x, const Quantized& y) const {
    constexpr std::string_view kMoves[] = {"MaxPool",   "Reshape", "Flatten",
                                           "Transpose", "Squeeze", "Unsqueeze"};
    const bool same = graph_[x.bytes].type.dtype == graph_[y.bytes].type.dtype &&
                      number(x.scale) == number(y.scale) && number(x.zero) == number(y.zero);
    if (!same || std::ranges::find(kMoves, node.op) == std::end(kMoves) || Use(graph_, node).gives(1))
      return std::nullopt;
    Node out{.op = node.op, .attributes = node.attributes, .inputs = node.inputs};
    out.inputs[0] = x.bytes;
    return out;
  }

  Graph& graph_;
  const Uses uses_;  // of the graph as it was
  std::vector<size_t> reader_;
};

}  // namespace

Status join_quantized(Graph& graph, const Evaluator& evaluate) {
  Joiner joiner(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (!graph.nodes[n].outputs.empty() && graph.nodes[n].outputs[0] != kNoValue) joiner.join(n);
  return drop_dead(graph, evaluate);
}

}  // namespace tuner::graph
