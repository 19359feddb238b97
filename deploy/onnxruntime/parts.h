// Parts: which nodes of a graph become one node, run by one compiled library.
//
// A path from one node of a part to another must not leave the part, or the fused node would wait for itself.
// So nodes get phases: where a path goes from a served node to another one, or back, the phase rises. Served
// nodes of one phase hang together or do not meet at all; each set that hangs together is a part.
#pragma once

#include <vector>

#include "deploy/onnxruntime/node_graph.h"

namespace tuner::ort {

struct Part {
  std::vector<size_t> nodes;  // each behind those whose results it reads; the order depends on names alone
  std::vector<size_t> inputs, constants;  // values that it reads and does not make, in order of use
  std::vector<size_t> outputs;  // values that are read elsewhere, in the order in which it makes them
};

// `served`: one per node. Parts have no node in common, and no two of them wait for each other.
std::vector<Part> parts_of(const NodeGraph& graph, const std::vector<bool>& served);

// These nodes as a part.
Part part_of(const NodeGraph& graph, const std::vector<size_t>& nodes);

// Whether a library of its own is likely to pay: the part has a product, a convolution or a recurrent layer.
bool is_worth_it(const NodeGraph& graph, const Part& part);

}  // namespace tuner::ort
