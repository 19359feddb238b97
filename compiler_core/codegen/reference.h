// The reference answer of a task: its unscheduled Program, floats of any size in double precision and
// integers as they are, compiled for this host and run in this process. Proved equal to the oracle on small
// shapes; fast enough for real ones (1024^3 in about a second).
#pragma once

#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// `unscheduled` in float64 with a plain schedule: per nest, blocks of the last spatial axis are vectors held
// in registers while the reduction runs. The values and the order of each sum are those of the Program.
Program reference_program(const Program& unscheduled);

// Outputs, in argument order, for `inputs`: one vector for each input and constant, in argument order,
// row-major, numbers of the argument's type. InvalidArgument when their number or sizes do not fit. One
// thread; may be called from several at once.
Result<std::vector<std::vector<double>>> reference_answer(const Program& unscheduled,
                                                          const std::vector<std::vector<float>>& inputs);

}  // namespace tuner
