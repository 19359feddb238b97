// Lowering: the passes between a finished schedule and code generation, each Program -> Program and in its
// own file.
//
//   lower_reductions   reductions become plain stores; those not decomposed get `if (first)`
//   partition_loops    removes guards that are decided in all but the last (or first) iteration of a serial
//                      or parallel loop. The body is written twice: once for those iterations without the
//                      guard, once for the odd one with its number as a constant. Guards of tails then fold
//                      away, and register tiles keep constant size. It works through fused axes (f % 7 is an
//                      iteration number too) and for several odd iterations (borders), and shortens loops
//                      whose rest never runs. A guard before much work stays: a test is cheap there, a copy
//                      is not.
//   unroll_loops       writes out kUnrolled loops, so that index expressions fold, and every serial loop that
//                      indexes registers or fragments, because these need constant indices
//   simplify           bounds-aware simplification of indices and guards; removes dead branches
//
// All are pure; any thread may call them. A Program without anything left to run has a null body. The table
// in lower.cpp has their order, and why.
#pragma once

#include <span>
#include <string_view>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

Program lower_reductions(const Program& program);
// Stops copying once the Program holds `max_stores` stores (unrolled ones counted in full); the other guards
// stay.
Program partition_loops(const Program& program, int64_t max_stores = 4096);
// InvalidConfig: the unrolled Program would have more than `max_stores` stores.
Result<Program> unroll_loops(const Program& program, int64_t max_stores);
Program simplify_program(const Program& program);

struct LoweringPass {
  std::string_view name;  // "partition": of `tuner show --after`; one that runs again is "simplify-2"
  Result<Program> (*run)(const Program& program, int64_t max_stores);
};
// What lower() runs, in this order. Names are unique.
std::span<const LoweringPass> lowering_passes();

// Runs the passes up to and with the one named `last`, which is one of them, or empty: all. InvalidConfig
// also for an output that lies on an operand and is not read and written as analysis/in_place.h asks. The
// packing Program is not touched: it is lowered on its own.
Result<Program> lower(const Program& program, int64_t max_unrolled_stores, std::string_view last = {});

}  // namespace tuner
