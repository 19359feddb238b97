// Who makes and who reads each value of a graph: what passes ask.
#pragma once

#include <unordered_map>
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

  // Follows one change: a node reads other values than before. `graph`: as it is after; values may have been
  // added.
  void make(ValueId id, size_t node) { makers_[id] = node; }
  void change(const Graph& graph, const std::vector<ValueId>& before, const std::vector<ValueId>& after);

 private:
  std::vector<size_t> makers_;
  std::vector<int> readers_;
};

// Values that are read in place of others. A pass that goes through the nodes in their order renames what
// each reads, so that all replacements together cost one walk.
class Replacements {
 public:
  void add(ValueId from, ValueId to) { to_[from] = at(to); }
  ValueId at(ValueId id) const {
    const auto found = to_.find(id);
    return found == to_.end() ? id : found->second;
  }
  void rename(std::vector<ValueId>& ids) const {
    for (ValueId& id : ids) id = at(id);
  }

 private:
  std::unordered_map<ValueId, ValueId> to_;
};
// Adds a constant with these numbers.
ValueId add_constant(Graph& graph, std::string name, TensorType type, const std::vector<double>& numbers);
// Drops the nodes whose place is marked.
void erase_nodes(Graph& graph, const std::vector<bool>& gone);

}  // namespace tuner::graph
