// Epilogues: what follows a product and is done with its sums while they are in registers.
#pragma once

#include "compiler_core/graph/graph.h"
#include "tuner/model/partition.h"

namespace tuner {

// True if `node`, which reads the step's result, became part of its workload (and `reads` got an operand
// more). The rest of the step is as it was. Constants that the workload needs besides are added to the graph:
// one number as one a channel.
bool take_in(graph::Graph& graph, const graph::Node& node, ModelStep& step);

}  // namespace tuner
