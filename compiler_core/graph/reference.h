// What a graph computes: operator by operator, in double precision, each one's Program run by itself. Slow,
// and obviously right: every pass and every compiled model is held against it.
#pragma once

#include <vector>

#include "compiler_core/graph/evaluator.h"
#include "compiler_core/graph/graph.h"

namespace tuner::graph {

// `inputs`: one row-major vector for each of graph.inputs. Returns one for each of graph.outputs. Values of
// integer types are rounded to them; floats stay doubles. InvalidArgument: a number of inputs or elements
// that does not fit; else what `evaluate` says, with the node.
Result<std::vector<std::vector<double>>> run_reference(const Graph& graph,
                                                       std::vector<std::vector<double>> inputs,
                                                       const Evaluator& evaluate);

}  // namespace tuner::graph
