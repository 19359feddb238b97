#include "compiler_core/graph/operator.h"
#include "compiler_core/graph/passes.h"

namespace tuner::graph {
namespace {

// A Gather of one place that is known: an element of a list, a step of a sequence.
bool takes_one_place(const Graph& graph, const Node& node) {
  if (node.op != "Gather") return false;
  const Value& places = graph[node.inputs[1]];
  return places.constant && places.type.elements() == 1;
}

}  // namespace

Status slice_places(Graph& graph, const Evaluator& /*evaluate*/) {
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    if (!takes_one_place(graph, node)) {
      nodes.push_back(std::move(node));
      continue;
    }
    const Use use(graph, node);
    ASSIGN_OR_RETURN(const int64_t axis, use.axis(0, use.rank(0)));
    ASSIGN_OR_RETURN(const std::vector<int64_t> places, use.integers(1));
    TensorType type = use.type(0);
    int64_t& extent = type.shape[static_cast<size_t>(axis)];
    const int64_t begin = places[0] < 0 ? places[0] + extent : places[0];
    extent = 1;
    const ValueId part = graph.values.size();
    graph.values.push_back({graph[node.outputs[0]].name, std::move(type), std::nullopt});
    nodes.push_back(
        {.name = node.name,
         .op = "Slice",
         .attributes = {{"starts", Shape{begin}}, {"ends", Shape{begin + 1}}, {"axes", Shape{axis}}},
         .inputs = {node.inputs[0]},
         .outputs = {part}});
    nodes.push_back({.name = node.name,
                     .op = "tuner.View",
                     .attributes = {{"shape", graph[node.outputs[0]].type.shape}},
                     .inputs = {part},
                     .outputs = node.outputs});
  }
  graph.nodes = std::move(nodes);
  return Status::ok();
}

}  // namespace tuner::graph
