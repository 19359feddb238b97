// The value of an index or condition when all its variables are known.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler_core/ir/expr.h"

namespace tuner::cuda {

using VarValues = std::vector<std::pair<const VarNode*, int64_t>>;

// Of a variable that stands there twice the later value counts; one that is not there is 0, and so is a load.
// Conditions are 1 or 0.
int64_t index_value(const Expr& e, const VarValues& values);

}  // namespace tuner::cuda
