// GraphBuilder: makes a Graph node by node, in an order in which they can run. Types are inferred as nodes
// come, and small results that are known (shapes, and what is computed from them) become constants at once,
// because the types of later nodes may depend on them. What has no elements is known: a node that makes such
// a value, or reads one, is replaced as it comes (empty.h), and graphs have none.
#pragma once

#include <string>
#include <vector>

#include "compiler_core/graph/evaluator.h"
#include "compiler_core/graph/graph.h"

namespace tuner::graph {

class GraphBuilder {
 public:
  // `evaluate` computes what is known ahead.
  GraphBuilder(std::string name, Evaluator evaluate);

  ValueId input(std::string name, TensorType type);
  ValueId constant(std::string name, TensorType type, Constant elements);
  // Adds a node and returns its results, kNoValue where `results` has "". `node.outputs` is not read.
  // InvalidArgument with node and reason: its operator or these types are not served.
  Result<std::vector<ValueId>> add(Node node, const std::vector<std::string>& results);
  const Value& operator[](ValueId id) const { return graph_[id]; }
  // As far as it is built: without outputs.
  const Graph& graph() const { return graph_; }

  // The graph; the builder is empty afterwards. Outputs are called as their values.
  Graph finish(std::vector<ValueId> outputs);
  // The same, with names for the outputs.
  Graph finish(std::vector<ValueId> outputs, std::vector<std::string> names);

 private:
  Result<bool> folded(const Node& node);

  Graph graph_;
  Evaluator evaluate_;
};

// Computes the results of a node whose inputs are constants (or that reads none), as constants in `graph`.
Status fold(Graph& graph, const Node& node, const Evaluator& evaluate);

}  // namespace tuner::graph
