// Oracle: what is true. A plain interpreter of Programs: walks the tree, one element at a time, every value
// in double precision. Slow and obviously right; used on small shapes to prove compiled code and the compiled
// reference.
//
// It also reports what a compiled kernel would hide: an index out of bounds, a read of an element never
// written, an output element never written. The report is an Internal error naming buffer, indices and shape.
#pragma once

#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// The arguments of the kernel before packing: program.args with each kPacked one replaced by the constant
// that the packing entry makes it from. They are those of the unscheduled Program, in the same order.
std::vector<Buffer> unpacked_args(const Program& program);

// Runs `program` on `args`, one vector for each of unpacked_args(program), row-major; outputs are resized and
// filled. Packing, if any, runs first. Loop kinds do not matter except that a parallel or vectorized loop
// runs in reverse order, so that a dependence between iterations shows. Infinity and NaN behave as in C;
// max(a, b) is a > b ? a : b.
Status interpret(const Program& program, std::vector<std::vector<double>>& args);

}  // namespace tuner
