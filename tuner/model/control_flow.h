// Control flow: If, Loop and Scan become nodes without any. For graph_reader.cpp and the files of control
// flow only.
//
//   If, its condition known    the nodes of its branch; the other one is not looked at
//   If, its condition data     the nodes of both branches, and a Where for each result (guards.h lets a run
//                              leave out what the Where does not choose)
//   Loop, Scan                 the nodes of the body, once an iteration
//
// What is known ahead is what GraphBuilder knows: constants, shapes, --constant, and what follows from them.
#pragma once

#include <string>

#include "tuner/model/graph_reader.h"

namespace tuner {

// Requires is_control_flow() of the node's operator. Returns a value for each of its outputs, kNoValue for
// one without elements. `name`: of the node, for what is added. InvalidArgument: an attribute, an input or a
// subgraph that does not fit; a count that depends on data; results of unequal types where data choose; what
// a branch or body that is needed is refused for.
Result<Values> read_control_flow(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                                 const Scope& scope);

// The rows of it: each in a file of its own.
Result<Values> read_if(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                       const Scope& scope);
Result<Values> read_loop(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                         const Scope& scope);
Result<Values> read_scan(GraphReader& reader, const onnx::NodeProto& node, const std::string& name,
                         const Scope& scope);

// --- what they share ---
// The number that this value is known to be. InvalidArgument: it is not of the type, not one number, or
// depends on data; `what` ("input 0, the condition") says which it is, and the options that would make it
// known.
Result<int64_t> known_number(const graph::Graph& graph, graph::ValueId id, DType dtype,
                             const std::string& what);
// A constant scalar, or of one dimension.
graph::ValueId number_of(graph::GraphBuilder& builder, const std::string& name, DType dtype, int64_t value,
                         int64_t rank);
// The part of a value at `index` of an axis, without that axis.
Result<graph::ValueId> part_of(GraphReader& reader, const std::string& name, graph::ValueId value,
                               int64_t axis, int64_t index);
// Values of one type, one behind the other along a new axis; at least one. `what`: of them, for messages.
Result<graph::ValueId> stacked(GraphReader& reader, const std::string& name, const Values& values,
                               int64_t axis, const std::string& what);

}  // namespace tuner
