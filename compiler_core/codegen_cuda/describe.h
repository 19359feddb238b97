// Comments: what a reader of a kernel wants to know, told from its statements alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// The one store below a nest of loops and guards; null when there are several statements.
const StmtNode* only_store(const Stmt& s);
// "copy part of a into a_shared (shared memory): 2 float4 a thread", for such a nest. The nest's loops count
// the work.
std::string describe_nest(const Stmt& s);
// "k.outer: 32 steps of a sum", for a loop over several stages.
std::string describe_loop(const StmtNode& loop);
// Why the guard stands: "the tail of out: dimension 0 has 30", or "only part of the threads work here".
std::string describe_guard(const StmtNode& guard, const GpuKernel& kernel, const RangeMap& ranges);
// For each barrier of the body, what it keeps apart: "a_shared is written, now it may be read".
std::map<const StmtNode*, std::string> describe_barriers(const Stmt& body);
// What one block computes, a line for each global buffer it stores to:
// "out[m_outer*128 + 0..127, 0..63]".
std::vector<std::string> describe_block_output(const GpuKernel& kernel, const Stmt& body);
// Names as the code has them: "m.outer*128" -> "m_outer*128".
std::string with_c_names(std::string text);
// "[16, 132] of float32"
std::string describe_shape(const BufferNode& buffer);

}  // namespace tuner::cuda
