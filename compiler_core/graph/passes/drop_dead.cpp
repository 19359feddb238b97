#include "compiler_core/graph/passes.h"
#include "compiler_core/graph/uses.h"

namespace tuner::graph {
namespace {

// Values that nothing names any more are forgotten, and the others numbered anew.
void drop_values(Graph& graph) {
  std::vector<bool> named(graph.values.size(), false);
  const auto name = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids)
      if (id != kNoValue) named[id] = true;
  };
  name(graph.inputs);
  name(graph.outputs);
  for (const Node& node : graph.nodes) {
    name(node.inputs);
    name(node.outputs);
  }
  std::vector<ValueId> number(graph.values.size(), kNoValue);
  std::vector<Value> kept;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (!named[id]) continue;
    number[id] = kept.size();
    kept.push_back(std::move(graph.values[id]));
  }
  graph.values = std::move(kept);
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids)
      if (id != kNoValue) id = number[id];
  };
  renumber(graph.inputs);
  renumber(graph.outputs);
  for (Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
}

}  // namespace

Status drop_dead(Graph& graph, const Evaluator& /*evaluate*/) {
  std::vector<bool> read(graph.values.size(), false), gone(graph.nodes.size(), false);
  for (const ValueId out : graph.outputs) read[out] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    gone[n] = true;
    for (ValueId& out : node.outputs) {
      if (out != kNoValue && read[out]) gone[n] = false;
      // A second result that nothing reads is not asked for.
      else if (&out != &node.outputs.front())
        out = kNoValue;
    }
    if (gone[n]) continue;
    for (const ValueId in : node.inputs)
      if (in != kNoValue) read[in] = true;
  }
  erase_nodes(graph, gone);
  drop_values(graph);
  return Status::ok();
}

}  // namespace tuner::graph
