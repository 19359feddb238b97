// The machine's ceilings as contestants: timed in the same rounds as what is held against them.
#pragma once

#include "compiler_core/runtime/bandwidth.h"
#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/target.h"
#include "tests/bench/cpu/contestant.h"

namespace tuner {

// Fused multiply-adds from registers, on every thread of the pool. work: operations.
Contestant fma_probe(ThreadPool& pool);
// Products of a small type (bfloat16, int8) from registers, on every thread of the pool. work: operations.
Contestant dot_probe(DType dtype, ThreadPool& pool);
// Reading memory of this level, each thread its own. work: bytes.
Contestant read_probe(const MemoryLevel& level, ThreadPool& pool);

}  // namespace tuner
