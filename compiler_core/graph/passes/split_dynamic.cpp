// DynamicQuantizeLinear becomes what its definition says: the range of a tensor, its scale and zero point,
// and a QuantizeLinear by these. As one node with three results it would be three steps, each of which
// computes the tensor and its range anew.
#include "compiler_core/graph/families.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

class DynamicSplitter {
 public:
  DynamicSplitter(Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  std::vector<Node> nodes() {
    const ValueId x = node_.inputs[0];
    const ValueId nothing = number(0);
    const ValueId least = add("Min", {reduced("ReduceMin", x), nothing});
    const ValueId most = add("Max", {reduced("ReduceMax", x), nothing});
    const ValueId scale =
        result(1, "Div", {add("Sub", {most, least}), number(kLevels)}, {DType::kFloat32, {}});
    const ValueId shifted = add("Sub", {nothing, add("Div", {least, scale})});
    const ValueId rounded = add("Round", {add("Clip", {shifted, nothing, number(kLevels)})});
    const ValueId zero = result(2, "Cast", {rounded}, {DType::kUInt8, {}}, {{"to", std::string("uint8")}});
    result(0, "QuantizeLinear", {x, scale, zero}, {DType::kUInt8, graph_[x].type.shape});
    return std::move(nodes_);
  }

 private:
  static constexpr double kLevels = 255;

  ValueId number(double x) {
    return add_constant(graph_, node_.name + "/number", {DType::kFloat32, {}}, {x});
  }
  ValueId make(const char* op, std::vector<ValueId> inputs, ValueId to, Attributes attributes) {
    nodes_.push_back(
        {str(node_.name, "/", op), op, node_.operator_set, std::move(attributes), std::move(inputs), {to}});
    return to;
  }
  ValueId new_value(const char* op, TensorType type) {
    graph_.values.push_back({str(node_.name, "/", op), std::move(type), std::nullopt});
    return graph_.values.size() - 1;
  }
  ValueId add(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return make(op, std::move(inputs), new_value(op, {DType::kFloat32, {}}), std::move(attributes));
  }
  ValueId reduced(const char* op, ValueId x) { return add(op, {x}, {{"keepdims", int64_t{0}}}); }
  // The node's own result, or one that it was not asked for.
  ValueId result(size_t k, const char* op, std::vector<ValueId> inputs, TensorType type,
                 Attributes attributes = {}) {
    const bool is_asked = k < node_.outputs.size() && node_.outputs[k] != kNoValue;
    const ValueId to = is_asked ? node_.outputs[k] : new_value(op, std::move(type));
    return make(op, std::move(inputs), to, std::move(attributes));
  }

  Graph& graph_;
  const Node node_;
  std::vector<Node> nodes_;
};

}  // namespace

Status split_dynamic(Graph& graph, const Evaluator& /*evaluate*/) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (Node& node : nodes) {
    if (node.op != "DynamicQuantizeLinear") {
      graph.nodes.push_back(std::move(node));
      continue;
    }
    for (Node& each : DynamicSplitter(graph, node).nodes()) graph.nodes.push_back(std::move(each));
  }
  return Status::ok();
}

}  // namespace tuner::graph
