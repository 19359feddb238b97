// Results that lie on a residual: out += product, in the memory of what is added.
#pragma once

#include <string>

#include "compiler_core/target.h"
#include "tuner/model/partition.h"

namespace tuner {

// Lets a step write on its residual, so that the sum needs no memory of its own, where
// - nobody reads the residual afterwards, and the step itself only as such;
// - a step made it and its memory is as large as the sum: no input, constant, result or part of something
//   larger;
// - the same templates serve the workload that accumulates: no kernel gets slower for it.
// Returns whether any does.
bool lie_on_residuals(ModelSteps& model, const Target& target, const std::string& algorithms);

}  // namespace tuner
