// Dot products of bytes (LoopKind::kDot) as one instruction of a thread, dp4a: what it multiplies.
#pragma once

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// acc += a[0] * b[0] + ... + a[3] * b[3], with a word of four bytes for each operand.
struct DotWords {
  Expr acc;   // the int32 sum, a load
  Expr a, b;  // loads of the first byte of each word
};

// What the loop multiplies. InvalidConfig: it is no sum of products of bytes, or its bytes are not shown to
// be aligned words.
Result<DotWords> dot_words(const StmtNode& loop, const RangeMap& ranges);

// InvalidConfig: a loop of the kernel that dot_words() refuses.
Status check_dots(const GpuKernel& kernel);

}  // namespace tuner::cuda
