// Groups: nodes that no workload of its own computes, as few kernels as possible; and what needs no kernel at
// all.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/graph/uses.h"
#include "tuner/model/partition.h"

namespace tuner {

// A value whose elements stand together in another, in the same order.
struct PartOf {
  graph::ValueId value = graph::kNoValue, source = graph::kNoValue;
  int64_t offset = 0;  // bytes
};
// The results of a node that only looks at memory: a view, a split or slice along the outermost extent that
// is not 1. Empty: it moves elements, or gives no alignment of kArenaAlignment.
std::vector<PartOf> parts_of(const graph::Graph& graph, size_t node);

// True for a Concat whose inputs stand one behind the other in its result, each aligned.
bool stacks(const graph::Graph& graph, const graph::Node& node);

// The step that computes `value`: its node, and what comes before it as long as nobody else reads that and it
// is cheap. `taken`: nodes that other steps do, or nobody. InvalidArgument with node and reason: no program
// computes it. Constants that the program needs besides are added to the graph.
Result<ModelStep> group_of(graph::Graph& graph, const graph::Uses& uses, const std::vector<bool>& taken,
                           graph::ValueId value);

}  // namespace tuner
