// Oracle: what is true. A plain interpreter of Programs: walks the tree, one element at a time, every value in double
// precision. Slow and obviously right; used on small shapes to prove compiled code and the compiled reference.
//
// It also reports what a compiled kernel would hide: an index out of bounds, a read of an element never written, an
// output element never written.
#pragma once

#include <map>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// Runs `program` on `args` (one vector a buffer, in argument order; outputs are resized and filled). Packing, if any, is
// run first: args are then those of the *unpacked* kernel: constants where the Program takes packed operands. See
// oracle_args(). Loop kinds do not matter except that a parallel loop runs in reverse order, so that a dependence
// between iterations shows.
Status interpret(const Program& program, std::vector<std::vector<double>>& args);

}  // namespace tuner
