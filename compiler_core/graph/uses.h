// Who makes and who reads each value of a graph: what passes ask.
#pragma once

#include <vector>

#include "compiler_core/graph/graph.h"

namespace tuner::graph {

// Follows the graph as it is when it is built; a pass that changes nodes builds another.
class Uses {
 public:
  explicit Uses(const Graph& graph);

  static constexpr size_t kNoNode = SIZE_MAX;
  // The node that makes the value, or kNoNode.
  size_t maker(ValueId id) const { return id == kNoValue ? kNoNode : makers_[id]; }
  // How often nodes read it, and how often it is an output of the graph.
  int readers(ValueId id) const { return readers_[id]; }

 private:
  std::vector<size_t> makers_;
  std::vector<int> readers_;
};

// Lets every node and output read `to` in place of `from`.
void replace_uses(Graph& graph, ValueId from, ValueId to);
// Adds a constant with these numbers.
ValueId add_constant(Graph& graph, std::string name, TensorType type, const std::vector<double>& numbers);
// Drops the nodes whose place is marked.
void erase_nodes(Graph& graph, const std::vector<bool>& gone);

}  // namespace tuner::graph
