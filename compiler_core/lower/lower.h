// Lowering: the passes between a finished schedule and code generation, Program -> Program. Each is a file of
// its own.
//
//   lower_reductions   reductions become plain stores; undecomposed ones get `if (first)`
//   partition_loops    a guard that is decided in all iterations of a serial or parallel loop but the last
//   (or the first):
//                      the body is written twice, once for those iterations without the guard, once for the
//                      odd one with its number as a constant; guards of tails then fold away and register
//                      tiles keep constant size. Works through fused axes (f % 7 is an iteration number too)
//                      and for several odd ones (borders), and loops whose rest never runs are shortened. A
//                      guard in front of much work stays: a test is free there, a copy is not.
//   unroll_loops       kUnrolled loops are written out (index expressions then fold), and with them every
//   serial loop that
//                      indexes a register buffer, which only has constant indices
//   simplify           bounds-aware simplification of indices and guards; dead branches go
//
// All are pure and may be called from any thread. A Program without anything left to run has a null body.
#pragma once

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

Program lower_reductions(const Program& program);
// Copies stop once the Program holds `max_stores` stores (unrolled ones counted in full): guards then simply
// stay.
Program partition_loops(const Program& program, int64_t max_stores = 4096);
// InvalidConfig when more than `max_stores` stores would stand in the unrolled Program.
Result<Program> unroll_loops(const Program& program, int64_t max_stores);
Program simplify_program(const Program& program);

// All of the above in order. The packing Program is not touched: it is lowered on its own.
Result<Program> lower(const Program& program, int64_t max_unrolled_stores);

}  // namespace tuner
