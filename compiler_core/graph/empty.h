// Nodes on tensors without elements, as slices of nothing and the past of a first run are. A graph's nodes
// neither read nor make such tensors, so that no pass, kernel or plan meets an extent of 0: GraphBuilder asks
// here what stands for a node that does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler_core/graph/builder.h"
#include "compiler_core/graph/operator.h"

namespace tuner::graph {

inline bool is_empty(const TensorType& type) { return type.elements() == 0; }

// True if the row's types() is right for extents of 0. Nodes of all others are refused.
bool serves_empty(const Operator& row);

// Exporters write a tensor without elements for an optional input that is not given, and some models for no
// axes: such inputs become ones that are not given.
void drop_empty_options(const Graph& graph, Node& node);

// True if the node reads or makes a tensor without elements. `types`: of its results.
bool touches_empty(const Graph& graph, const Node& node, std::span<const TensorType> types);

// Adds to `builder` what stands for a node that touches_empty(): results without elements are constants, the
// others come from nodes whose operands have elements. A sum of nothing is 0, and so on, as ONNX says.
// Returns the results, kNoValue where `names` has "". InvalidArgument: none stands for it.
Result<std::vector<ValueId>> add_without_empty(GraphBuilder& builder, Node node,
                                               const std::vector<TensorType>& types,
                                               const std::vector<std::string>& names);

}  // namespace tuner::graph
