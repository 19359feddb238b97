// Anchors: operators that have a workload of their own.
#pragma once

#include <optional>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/graph/uses.h"
#include "templates/workload/workload.h"

namespace tuner {

struct Anchor {
  Workload workload;                  // valid, with no epilogue but what the operator itself has
  std::vector<graph::ValueId> reads;  // its operands, in order
  std::vector<size_t> before;         // nodes that became part of it: a Pad, a Transpose that only it reads
};

// Nothing if no workload computes this node: another operator, type, or form. `n` is its place in
// graph.nodes.
std::optional<Anchor> anchor_of(const graph::Graph& graph, const graph::Uses& uses, size_t n);

}  // namespace tuner
