// Lowering for GPUs: turns a scheduled Program with bound axes into kernels, as one thread sees them.
//
// The CUDA printer prints this form and the emulator runs it; both trust it and nothing else.
//
//   split into kernels     each nest at the root of the Program becomes a launch, in order; buffers between
//                          launches are workspace in global memory
//   fragments              tiles that a warp holds together become registers of its lanes; threadIdx.x is
//                          then the lane, and a block has 32 of them
//   cross-thread           a reduce loop bound to threadIdx.x: each thread sums its share in a register,
//                          warps combine by the intrinsic warp_allreduce, several warps through shared
//                          memory; every thread ends up with the whole sum
//   virtual threads        their loops move inside serial loops and past copies to shared memory; register
//                          buffers get a leading dimension
//   thread axes            a loop bound to a thread axis becomes its index. The block is as large as the
//                          largest of these loops; smaller ones are guarded
//   reductions             become plain stores (lower/lower.h)
//   copies                 under guards load first, into registers and without a branch, and store then; of
//                          a kVectorRows tile the loop that memory lies along is vectorized, on either side
//   fetches                copies by TMA become boxes of tensor maps, which one thread of the block asks for
//   barriers               stand wherever a thread may read or overwrite shared elements that another thread
//                          of the block wrote or read since the last barrier; as few as the accesses prove
//   simplify               simplifies indices and guards under the ranges of all these
//
//   registers              are private: each thread keeps its part of a buffer that is shared out over the
//                          threads; loops that index registers are marked kUnrolled
//
// It does not unroll or vectorise: kUnrolled, kVectorized and kDot loops are left for the printer.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/tensor_map.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

// A parameter of a kernel that is no pointer: how the copy engine sees one of the global buffers.
struct KernelTensorMap {
  TensorMap map;
  Buffer buffer;
};

// One launch. It owns all its variables and buffers.
struct GpuKernel {
  std::string name;                       // a C identifier, unique in the Program
  std::array<int64_t, 3> grid{1, 1, 1};   // blocks: x, y, z
  std::array<int64_t, 3> block{1, 1, 1};  // threads of a block: x, y, z
  std::array<Var, 3> block_vars;          // blockIdx.x .. z: null if the body does not use it
  std::array<Var, 3> thread_vars;         // threadIdx.x .. z: null if the body does not use it
  std::vector<Buffer> params;             // global buffers it touches: arguments in order, then workspace
  std::vector<KernelTensorMap>
      tensor_maps;             // parameters behind those, for what it fetches (kAsync); a buffer that is
                               // fetched alone is not among params
  std::vector<Buffer> shared;  // shared buffers, each with its place:
  std::vector<int64_t> shared_offsets;  //   bytes from the start of dynamic shared memory, multiples of 16;
      //   buffers that are not needed at the same time may lie on each other
  int64_t shared_bytes = 0;  // all shared memory of a block
  int64_t shared_nowhere =
      -1;              // the place of 16 bytes that nobody reads, for stores to shared memory under a guard
                       //   on the thread, which need no branch then; -1: the kernel has none
  int min_blocks = 0;  // for __launch_bounds__; 0: not given
  // The code of one thread. Kinds: kFor (kSerial, kUnrolled, kVectorized, kDot), kSeq, kIf, kStore (no
  // reduce), kAllocate (kRegister only), kBarrier (kShared: the block), kIntrinsic, kAsync. All threads of
  // the block must reach a barrier: it stands under no guard that depends on the thread.
  Stmt body;
};

struct GpuProgram {
  std::string name;
  std::vector<Buffer> args;       // as in Program::args
  std::vector<Buffer> workspace;  // global buffers between kernels, uninitialised at every call
  std::vector<GpuKernel> kernels;
  // What runs once before: its arguments are those of Program::packing. Null: nothing is packed.
  std::shared_ptr<const GpuProgram> packing;
};

// The packing as a program of its own: what it packs are its outputs.
GpuProgram packing_alone(const GpuProgram& packing);
// Of what constant an argument of the main program is packed; null if it is none of packing's.
Buffer packed_source(const GpuProgram& packing, const Buffer& packed);

struct GpuLoweringPass {
  std::string_view name;  // "barriers": of `tuner show --after`; one that runs again is "simplify-2"
  Status (*run)(GpuKernel& kernel);
};
// What lower_gpu() runs on each kernel, in this order. Names are unique.
std::span<const GpuLoweringPass> gpu_lowering_passes();

// Lowers a GPU schedule. A nest without loops, but those over the terms of a sum, is a kernel of one thread.
// InvalidConfig names the loop or buffer that is not one (a nest not bound to blocks,
// a barrier under a thread's guard, a packing entry that does more than move elements...). `last`: the name
// of a pass, behind which each kernel stays as it is, for people to look at; empty: all run.
Result<GpuProgram> lower_gpu(const Program& program, std::string_view last = {});

// Whether a byte of shared memory belongs to both, two different buffers of kernel.shared.
bool lie_on_each_other(const GpuKernel& kernel, const Buffer& a, const Buffer& b);
// Returns the ranges of the kernel's block and thread variables.
RangeMap kernel_ranges(const GpuKernel& kernel);

// Whether it differs between the threads of a block.
bool asks_for_thread(const Expr& condition, const GpuKernel& kernel);

// Print the kernels, like to_text(Program), for people and tests.
std::string to_text(const GpuKernel& kernel);
std::string to_text(const GpuProgram& program);

}  // namespace tuner
