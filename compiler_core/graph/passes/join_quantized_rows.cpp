// Rows between a DequantizeLinear and a QuantizeLinear, as accelerators of 8 bits compute them: Softmax and
// LayerNormalization on bytes. What all targets compute on bytes is found by find_quantized.cpp.
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
struct QuantizedRows {
  ValueId bytes = kNoValue, scale = kNoValue, zero = kNoValue;
};

class RowJoiner {
 public:
  explicit RowJoiner(Graph& graph)
      : graph_(graph), uses_(graph), reader_(graph.values.size(), Uses::kNoNode) {
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
    const QuantizedRows y{result, quantize.inputs[1], zero_of(quantize, graph_[result].type.dtype)};
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
  std::optional<QuantizedRows> operand(ValueId id) {
    const Node* const made = dequantizer(id);
    if (made == nullptr || !is_of_tensor(*made) || !is_byte(graph_[made->inputs[0]].type.dtype))
      return std::nullopt;
    const Node node = *made;
    return QuantizedRows{node.inputs[0], node.inputs[1], zero_of(node, graph_[node.inputs[0]].type.dtype)};
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
  std::optional<Node> on_bytes(const Node& node, const QuantizedRows& y) {
    if (node.op == "LayerNormalization") return layer_norm(node, y);
    if (node.op == "Softmax") return softmax(node, y);
    return std::nullopt;
  }

  std::optional<Node> softmax(const Node& node, const QuantizedRows& y) {
    constexpr int64_t kOneAxis = 13;  // before it, axes from this one on were one
    const Use use(graph_, node);
    const auto axis = use.axis(node.operator_set < kOneAxis ? 1 : -1, use.rank(0));
    const auto x = operand(node.inputs[0]);
    if (!x || !axis || *axis + 1 != use.rank(0)) return std::nullopt;
    return Node{.op = "com.microsoft.QLinearSoftmax",
                .inputs = {x->bytes, x->scale, x->zero, y.scale, y.zero}};
  }

  // Scales of bytes are in its gains and offsets; what it adds to the variance is in units of bytes.
  std::optional<Node> layer_norm(const Node& node, const QuantizedRows& y) {
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

  Graph& graph_;
  const Uses uses_;             // of the graph as it was
  std::vector<size_t> reader_;  // of each value, the last of them
};

}  // namespace

Status join_quantized_rows(Graph& graph, const Evaluator& evaluate) {
  RowJoiner joiner(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (!graph.nodes[n].outputs.empty() && graph.nodes[n].outputs[0] != kNoValue) joiner.join(n);
  return drop_dead(graph, evaluate);
}

}  // namespace tuner::graph
