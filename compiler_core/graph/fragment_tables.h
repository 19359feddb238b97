// The tables of a fragment (fragment.h): numbers known ahead that its program reads behind the fragment's
// inputs, such as the exponentials of a softmax on bytes.
#pragma once

#include <vector>

#include "compiler_core/graph/graph.h"

namespace tuner::graph {

// Adds them to `graph` as constants, in the order in which program_of() has them.
std::vector<ValueId> add_tables(const Graph& fragment, Graph& graph);

}  // namespace tuner::graph
