// StatePair: an input and an output of a model that share memory, because its caller keeps a state from run
// to run (`tuner compile --state h=hn`).
//
// A run may write the output while the input is still there, as both lie in one place: the output is copied
// there by steps of its own, behind all that read a state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compiler_core/graph/graph.h"

namespace tuner {

struct StatePair {
  size_t input = 0, output = 0;  // places in graph.inputs and graph.outputs
};

// `given`: INPUT=OUTPUT, as a person writes them. InvalidArgument, in one line: no such name, types that
// differ, an input or an output that stands twice, an output that is an input as it is.
Result<std::vector<StatePair>> state_pairs(const graph::Graph& graph, const std::vector<std::string>& given);

}  // namespace tuner
