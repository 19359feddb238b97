// The passes of lower_gpu, each on the body of one kernel; gpu.cpp has their order. Internal to lower/.
#pragma once

#include <array>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/lower/gpu.h"

namespace tuner::gpu {

using Extents = std::array<int64_t, 3>;  // x, y, z

// Return 0..2 for kThreadX..kThreadZ (kBlockX..kBlockZ), else -1.
int thread_axis(LoopKind kind);
int block_axis(LoopKind kind);

// Returns the threads of the block: the largest loop of each thread axis.
Extents thread_extents(const Stmt& body);

// Replaces loops of one iteration by their body, except those bound to blocks and threads.
Stmt drop_single_iterations(const Stmt& body);

// Turns fragments, which the lanes of a warp hold together, into registers of each lane. InvalidConfig: a
// fragment that is touched by more than intrinsics of GPUs, or spread by them in several ways.
Result<Stmt> lower_fragments(const Stmt& body);
// Whether intrinsics on tiles of a warp stand in it, whose lanes are those of threadIdx.x.
bool has_warp_tiles(const Stmt& body);
// InvalidConfig: threadIdx.x is not the lanes, or tiles of shared memory do not lie where they are aligned.
// `body` must be simplified and have no thread loops.
Status check_warp_tiles(const Stmt& body, const GpuKernel& kernel);

// InvalidConfig: a tile that a unit fetches by itself lies elsewhere than the unit expects, or sums of
// products that go on are touched before these have landed.
Status check_units(const Stmt& body, const GpuKernel& kernel);

// Turns reduce loops bound to threadIdx.x into a sum in a register of each thread, combined over warps and
// the block. Thread loops stay.
Result<Stmt> lower_cross_thread(const Stmt& body);

// Moves virtual thread loops inside.
Stmt inject_virtual_threads(const Stmt& body);

// Turns block and thread loops into kernel.block_vars and thread_vars, and guards smaller ones. If the
// threads of an axis would all store the same element to memory that others see, one thread stores it. Fills
// kernel.grid, block, block_vars, thread_vars.
Result<Stmt> bind_axes(const Stmt& body, GpuKernel& kernel);

// Moves guards that depend on the thread past code that all threads must reach (intrinsics, and copies to
// shared memory, which compute_at made safe without them) to the other code below them.
Stmt sink_thread_guards(const Stmt& body, const GpuKernel& kernel);

// Merges neighbours under the same guard, if it reads no memory.
Stmt merge_equal_guards(const Stmt& body);

// Parts guarded copies from global memory into loads, which need no branch, and stores. `body` must be
// simplified and have no thread loops.
Stmt overlap_copies(const Stmt& body, const GpuKernel& kernel);

// Turns copies by TMA into fetches of boxes, by the first thread of the block, and notes the maps in the
// kernel. InvalidConfig: no boxes of an array do what the copy does, or it stands in no pipeline. `body` must
// be simplified and have no thread loops.
Result<Stmt> lower_fetches(const Stmt& body, GpuKernel& kernel);

// Makes registers private: a dimension of a register buffer that all accesses share out over the threads, as
// (q * threads + t) * s + r, keeps only a thread's own part, q * s + r.
Stmt privatize_registers(const Stmt& body, const GpuKernel& kernel);

// Unrolls serial loops whose variable indexes a register buffer, because registers have no addresses.
Stmt unroll_register_loops(const Stmt& body);

// Binds the nests of a packing entry to blocks and threads. InvalidConfig for a nest that is more than loops
// around one store.
Result<Program> bind_packing(const Program& packing);

// Takes the allocations of shared buffers out of the body, into kernel.shared: they are memory of the whole
// kernel.
Stmt hoist_shared(const Stmt& body, GpuKernel& kernel);
// Gives each its place, and the kernel its shared_nowhere if a guard stands around a copy's store. Large ones
// that are not needed at the same time lie on each other.
void place_shared(const Stmt& body, GpuKernel& kernel);

// Puts barriers between conflicting accesses to shared memory. `body` must be simplified and have no thread
// loops.
Result<Stmt> insert_barriers(const Stmt& body, const GpuKernel& kernel);

}  // namespace tuner::gpu
