#include "compiler_core/graph/uses.h"

namespace tuner::graph {

Uses::Uses(const Graph& graph) : makers_(graph.values.size(), kNoNode), readers_(graph.values.size(), 0) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId out : graph.nodes[n].outputs)
      if (out != kNoValue) makers_[out] = n;
    for (const ValueId in : graph.nodes[n].inputs)
      if (in != kNoValue) ++readers_[in];
  }
  for (const ValueId out : graph.outputs) ++readers_[out];
}

void Uses::change(const Graph& graph, const std::vector<ValueId>& before, const std::vector<ValueId>& after) {
  makers_.resize(graph.values.size(), kNoNode);
  readers_.resize(graph.values.size(), 0);
  for (const ValueId in : before)
    if (in != kNoValue) --readers_[in];
  for (const ValueId in : after)
    if (in != kNoValue) ++readers_[in];
}

ValueId add_constant(Graph& graph, std::string name, TensorType type, const std::vector<double>& numbers) {
  const DType dtype = type.dtype;
  graph.values.push_back({std::move(name), std::move(type), Constant::of(numbers, dtype)});
  return graph.values.size() - 1;
}

void erase_nodes(Graph& graph, const std::vector<bool>& gone) {
  std::vector<Node> kept;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (!gone[n]) kept.push_back(std::move(graph.nodes[n]));
  graph.nodes = std::move(kept);
}

}  // namespace tuner::graph
