// Inputs that a compiled model is checked with: from files, or drawn by what the model does with them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler_core/graph/graph.h"
#include "compiler_core/runtime/kernel.h"

namespace tuner {

// One tensor per input of the model. `files`: by name of an input, as read_tensor_file() takes them.
//
// Floats are drawn from -1 to 1, bytes from all they hold, other integers 0 or 1, as masks are; places in a
// tensor (token numbers, positions) from all places there are. InvalidArgument: no input of that name, or a
// file that does not fit.
Result<std::vector<AlignedBuffer>> check_inputs(const graph::Graph& model,
                                                const std::map<std::string, std::string>& files);

}  // namespace tuner
