#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

// A transposition that moves extents of 1 only leaves elements where they are.
bool moves_nothing(const Graph& graph, const Node& node) {
  const std::vector<int64_t>& shape = graph[node.inputs[0]].type.shape;
  std::vector<int64_t> order(shape.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(order.size() - 1 - d);
  order = Use(graph, node).integers("perm", order);
  int64_t last = -1;
  for (const int64_t d : order) {
    if (shape[static_cast<size_t>(d)] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

bool is_view(const Graph& graph, const Node& node) {
  const std::string& op = node.op;
  if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" || op == "Identity" ||
      op == "tuner.View")
    return true;
  const TensorType &from = graph[node.inputs[0]].type, &to = graph[node.outputs[0]].type;
  if (op == "Dropout") return node.outputs.size() < 2 || node.outputs[1] == kNoValue;
  if (op == "Cast" || op == "CastLike") return from.dtype == to.dtype;
  // Repeated once.
  if (op == "Expand" || op == "Tile") return from == to;
  return op == "Transpose" && moves_nothing(graph, node);
}

}  // namespace

Status make_views(Graph& graph, const Evaluator& /*evaluate*/) {
  Replacements same;
  std::vector<bool> gone(graph.nodes.size(), false);
  std::vector<ValueId> source(graph.values.size(),
                              kNoValue);  // of a view: what it is a view of, no view itself
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    same.rename(node.inputs);
    if (node.outputs[0] == kNoValue || !is_view(graph, node)) continue;
    const ValueId out = node.outputs[0], in = node.inputs[0],
                  first = source[in] == kNoValue ? in : source[in];
    if (graph[out].type == graph[first].type) {
      gone[n] = true;
      same.add(out, first);
      continue;
    }
    source[out] = first;
    node.op = "tuner.View";
    node.attributes = {{"shape", graph[out].type.shape}};
    node.inputs = {first};
    node.outputs = {out};
  }
  same.rename(graph.outputs);
  erase_nodes(graph, gone);
  return Status::ok();
}

}  // namespace tuner::graph
