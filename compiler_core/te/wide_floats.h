// Floats of 16 bits are kept in memory and computed with in float32.
#pragma once

#include "compiler_core/ir/stmt.h"

namespace tuner::te {

// Returns the same unscheduled Program with every intermediate and every sum of float16 or bfloat16 in
// float32. Arguments keep their types: an element is widened where it is read, and rounded once where it is
// stored. A cast from a wider type to one of 16 bits still rounds, because the model asks for it. A Program
// without such floats is returned as it is.
Program with_wide_floats(const Program& program);

}  // namespace tuner::te
