// Lowering: the passes between a finished schedule and code generation, Program -> Program. Each is a file of its own.
//
//   lower_reductions   reductions become plain stores; undecomposed ones get `if (first)`
//   partition_loops    a guard that fails only in the last iteration of a serial/unrolled/vectorised/parallel loop: that
//                      iteration is peeled, so the body of all others has no guard (and register tiles keep constant size)
//   unroll_loops       kUnrolled loops are written out (index expressions then fold)
//   simplify           bounds-aware simplification of indices and guards; dead branches go
#pragma once

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

Program lower_reductions(const Program& program);
Program partition_loops(const Program& program);
// InvalidConfig when more than `max_stores` stores would stand in the unrolled Program.
Result<Program> unroll_loops(const Program& program, int64_t max_stores);
Program simplify_program(const Program& program);

// All of the above in order.
Result<Program> lower(const Program& program, int64_t max_unrolled_stores);

}  // namespace tuner
