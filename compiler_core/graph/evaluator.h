// Who computes a Program: the oracle's interpreter in tests, compiled code elsewhere. It is passed in, so
// that graphs need neither.
#pragma once

#include <functional>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner::graph {

// Runs an unscheduled Program as oracle.h's interpret() does: one row-major vector of numbers for each
// argument, in order; outputs are resized and filled. Floats are computed in double precision.
using Evaluator = std::function<Status(const Program&, std::vector<std::vector<double>>& args)>;

}  // namespace tuner::graph
