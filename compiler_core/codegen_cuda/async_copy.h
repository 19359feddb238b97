// Asynchronous copies from global to shared memory (cp.async, sm_80 and later): what one instruction of a
// thread copies.
#pragma once

#include <cstdint>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::cuda {

// A vector of 4, 8 or 16 bytes.
struct AsyncVector {
  Expr load;       // of its first element, lane 0
  Expr condition;  // where it fails zeros are written and nothing is read; undefined: always
  int64_t bytes = 0;
};

// What the store of an asynchronous copy copies as `lane` runs over 0..lanes (null, 1: one element).
// InvalidConfig: no instruction does that. Vectors are what lies side by side and aligned on both sides, as
// it is or under conditions that all lanes decide alike.
Result<AsyncVector> async_vector(const StmtNode& store, const Var& lane, int64_t lanes,
                                 const RangeMap& ranges);

// InvalidConfig: a store of an asynchronous copy of the kernel that async_vector() refuses.
Status check_async_copies(const GpuKernel& kernel);

}  // namespace tuner::cuda
