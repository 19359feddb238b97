// The reference answer of a task: its unscheduled Program, floats of any size in double precision and
// integers as they are, compiled for this host and run in this process. Proved equal to the oracle on small
// shapes; fast enough for real ones (1024^3 in a twentieth of a second, 4096^3 in two by one thread).
#pragma once

#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/codegen/reference_nest.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// `unscheduled` in float64, cut into blocks for that target, its nests parallel if it has several threads.
// The values and the order of each sum are those of the Program.
Program reference_program(const Program& unscheduled, const ReferenceBlocks& blocks, const Target& target);

// How often the Program's stores run: iterations of all loops, as far as they do something.
double stores_in(const Stmt& body);

// Outputs, in argument order, for `inputs`: one vector for each argument that is given (input, constant,
// inout), in argument order, row-major, numbers of the argument's type. InvalidArgument when their number or
// sizes do not fit.
//
// By `threads` threads; 0: by reference_threads(). They have the CPUs of the calling thread. May be called
// from several threads at once.
Result<std::vector<std::vector<double>>> reference_answer(const Program& unscheduled,
                                                          const std::vector<std::vector<float>>& inputs,
                                                          int threads = 0);

// One for little work; for much of it one for each CPU of the calling thread, so who pins that thread says
// how many.
int reference_threads(const Program& unscheduled);

// Runs any unscheduled Program as reference_answer() does, with the arguments of oracle.h's interpret(): one
// vector for each argument, in order, of doubles; outputs are filled. InvalidArgument: sizes that do not fit;
// InvalidConfig: a Program that cannot be compiled.
Status evaluate_compiled(const Program& unscheduled, std::vector<std::vector<double>>& args);

}  // namespace tuner
