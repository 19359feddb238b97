// The passes of lower_gpu, each on the body of one kernel. Internal to lower/.
#pragma once

#include <array>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::gpu {

using Extents = std::array<int64_t, 3>;  // x, y, z

// 0..2 for kThreadX..kThreadZ (kBlockX..kBlockZ), else -1.
int thread_axis(LoopKind kind);
int block_axis(LoopKind kind);

// Threads of the block: the largest loop of each thread axis.
Extents thread_extents(const Stmt& body);

// Loops of one iteration, of any kind but those of blocks and threads, are only their body.
Stmt drop_single_iterations(const Stmt& body);

// Reduce loops bound to threadIdx.x -> a sum in a register of each thread, combined over warps and the block.
// Still with thread loops.
Result<Stmt> lower_cross_thread(const Stmt& body, const Extents& threads);

// Virtual thread loops move inside.
Stmt inject_virtual_threads(const Stmt& body);

// Block and thread loops become kernel.block_vars and thread_vars, smaller ones guarded; stores to memory
// that others see are done by one thread where the threads of an axis would all store the same element. Fills
// kernel.grid, block, block_vars, thread_vars.
Result<Stmt> bind_axes(const Stmt& body, GpuKernel& kernel);

// Guards that ask for the thread move past what all threads must come by (copies to shared memory, which
// compute_at made in bounds without them; intrinsics) to what else stands below them.
Stmt sink_thread_guards(const Stmt& body, const GpuKernel& kernel);

// Neighbours under the same guard, which reads no memory, come under one.
Stmt merge_equal_guards(const Stmt& body);

// Registers are private: a dimension of a register buffer that all accesses share out over the threads, as
// (q * threads + t) * s + r, keeps only a thread's own part, q * s + r.
Stmt privatize_registers(const Stmt& body, const GpuKernel& kernel);

// Registers have no addresses: serial loops whose variable indexes a register buffer are unrolled.
Stmt unroll_register_loops(const Stmt& body);

// Barriers between conflicting accesses to shared memory. `body` is simplified and holds no thread loops.
Result<Stmt> insert_barriers(const Stmt& body, const GpuKernel& kernel);

}  // namespace tuner::gpu
