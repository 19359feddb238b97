// Lowering for GPUs: a scheduled Program with bound axes -> kernels in the form one thread sees.
//
// This form is what the CUDA printer prints and what the emulator runs; both trust it and nothing else.
//
//   split into kernels     each nest at the root of the Program becomes a launch, in order; what lives
//   between
//                          them is workspace in global memory
//   cross-thread           a reduce loop bound to threadIdx.x: each thread sums its share in a register,
//   warps
//                          combine by the intrinsic warp_allreduce, several warps through shared memory;
//                          every thread ends up with the whole sum
//   virtual threads        their loops move inside serial loops and past copies to shared memory; register
//                          buffers get a leading dimension
//   thread axes            loops bound to a thread axis become its index. The block is as large as the
//   largest
//                          of them; smaller ones are guarded
//   reductions             become plain stores (lower/lower.h)
//   barriers               one wherever a thread may read or overwrite shared elements that another thread of
//                          the block wrote or read since the last barrier; as few as the accesses prove
//   simplify               indices and guards under the ranges of all these
//
//   registers              are private: of a buffer shared out over the threads each keeps its part; loops
//   that
//                          index registers are marked kUnrolled
//
// Not done here: unrolling and vectorising. kUnrolled and kVectorized loops are left for the printer.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// One launch. All variables and buffers are its own.
struct GpuKernel {
  std::string name;                       // a C identifier, unique in the Program
  std::array<int64_t, 3> grid{1, 1, 1};   // blocks: x, y, z
  std::array<int64_t, 3> block{1, 1, 1};  // threads of a block: x, y, z
  std::array<Var, 3> block_vars;          // blockIdx.x .. z: null where the body does not use it
  std::array<Var, 3> thread_vars;         // threadIdx.x .. z: likewise
  std::vector<Buffer> params;             // global buffers it touches: arguments in order, then workspace
  std::vector<Buffer> shared;             // shared buffers, each with its place:
  std::vector<int64_t> shared_offsets;    //   bytes from the start of dynamic shared memory, multiples of 16
  int64_t shared_bytes = 0;               // of a block, all of it
  int min_blocks = 0;                     // of __launch_bounds__; 0: not given
  // What one thread does. Kinds: kFor (kSerial, kUnrolled, kVectorized), kSeq, kIf, kStore (no reduce),
  // kAllocate (kRegister only), kBarrier (kShared: the block), kIntrinsic. A barrier stands only where all
  // threads of the block come by: under no guard that depends on the thread.
  Stmt body;
};

struct GpuProgram {
  std::string name;
  std::vector<Buffer> args;       // as Program::args
  std::vector<Buffer> workspace;  // global buffers between kernels, uninitialised at every call
  std::vector<GpuKernel> kernels;
};

// InvalidConfig naming the loop or buffer when the Program is not a GPU schedule (a nest not bound to blocks,
// a barrier that would stand under a thread's guard, constants packed ahead: not supported on GPUs yet...).
Result<GpuProgram> lower_gpu(const Program& program);

// Ranges of the kernel's block and thread variables.
RangeMap kernel_ranges(const GpuKernel& kernel);

// The kernels as text, like to_text(Program), for people and tests.
std::string to_text(const GpuKernel& kernel);
std::string to_text(const GpuProgram& program);

}  // namespace tuner
