// Oracle: decides what is true. A plain interpreter of Programs: it walks the tree one element at a time and
// keeps every value in double precision (where a float32 becomes an integer, in float32, as its last bit may
// decide which). It is slow and obviously right; on small shapes it proves compiled code and the compiled
// reference.
//
// It also reports what a compiled kernel would hide: an index out of bounds, a read of an element that was
// never written, an output element that was never written. The report is an Internal error that names buffer,
// indices and shape.
#pragma once

#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// Returns the arguments of the kernel before packing: program.args, with each kPacked one replaced by the
// constant that the packing entry makes it from. They equal those of the unscheduled Program, in the same
// order.
std::vector<Buffer> unpacked_args(const Program& program);

// Runs `program` on `args`, one row-major vector for each of unpacked_args(program); outputs are resized and
// filled. Packing, if any, runs first; without it the caller gives what is packed. Loop kinds do not matter,
// except that a parallel or vectorized loop runs in reverse order, so that a dependence between iterations
// shows. Infinity and NaN behave as IEEE 754 has them: of a NaN and a number a maximum or minimum is the NaN;
// at_least(a, b) is a > b ? a : b.
Status interpret(const Program& program, std::vector<std::vector<double>>& args);

}  // namespace tuner
