// Answers of networks in 8 bits: each layer carries on what the one before it rounded the other way, so that
// behind some layers no two libraries have the same digits. What can be asked is that ours are no farther
// from the network as it is written than those of ONNX Runtime with its optimisations are.
#pragma once

#include "tests/bench/model/onnx_session.h"

namespace tuner {

// Prints mean differences of each output, and fails where ours is more than a quarter above theirs.
// `ours`: output o, in the graph's type. `plain`: without optimisations; both sessions have run.
Status check_spread(const graph::Graph& graph, const std::vector<const void*>& ours,
                    const OnnxSession& optimised, const OnnxSession& plain);

}  // namespace tuner
