// The emulator: GPU kernels become CPU Programs, so that a schedule is proved without a GPU.
//
// Fission at barriers: the blocks of the grid become outer loops; what stands between two barriers becomes a
// loop over the threads of the block; serial loops that contain a barrier stay outside; registers that live
// across one get a dimension for the threads; shared buffers become arrays of the block, addressed through
// their layout. The result is an ordinary CPU Program: the oracle interprets it, LLVM compiles it.
//
// With `check` the Program also watches itself. Each access to shared memory, and each store to an output, is
// compared with shadow buffers; each fault is counted at its site in an extra output, `faults`. Values alone
// prove nothing: a dropped barrier often gives right values on a CPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/lower/gpu.h"

namespace tuner {

enum class FaultKind : uint8_t {
  kRace,           // two threads, one of them writing, the same shared element, no barrier in between; or an
                   // element of global memory passed between threads of one launch
  kOutOfBounds,    // an index beyond its dimension; the access itself is then left out
  kUninitialised,  // a shared or register element read before it was written in this block, or an element of
                   // workspace read before any kernel stored it
  kWrittenTwice,   // an element of global memory stored by two threads of one launch
  kUnwritten,      // an output element nobody stored
  kDivergent,      // an intrinsic that only some of the threads that execute it together come by
};
std::string_view fault_name(FaultKind kind);

struct EmulatorOptions {
  bool check = true;
  // Threads run in reverse order between barriers: what depends on their order then shows in the values too.
  bool reverse_threads = true;
  // 0: every block runs. Otherwise at most so many, spread evenly over the grid and always with its last one
  // (where the guards of tails matter): for shapes too large to be emulated whole. Needs `check`, and a
  // Program of one kernel. The Program then has one more output for each output of the GPU Program, before
  // `faults`: NAME.written int32, 0 where no block that ran stored the element. Nothing is called unwritten.
  int64_t sample_blocks = 0;
};

// One place in the Program where a fault can be found.
struct FaultSite {
  FaultKind kind;
  std::string kernel, access;  // "As[ty*8 + i, k] in out[...] = ..." as printed
  // How to read the numbers: the shape of the buffer whose flat element is given (empty: the number is the
  // offending index itself), and the threads of a block, by which numbers of threads are divided.
  std::vector<int64_t> shape;
  int64_t block_threads = 1;
};

struct EmulatedProgram {
  // Arguments of the GPU Program, then, with `check`, the output `faults` int32 [sites, 4]: how often, and of
  // the first time the flat element, the number of the thread in the launch (block * threads of a block +
  // thread), the number of the one before (-1: several).
  Program program;
  std::vector<FaultSite> sites;
};

// InvalidConfig naming the statement for what no GPU would run: a barrier that not all threads of a block
// come by, shared buffers that overlap or exceed the shared memory the kernel asks for, a buffer that the
// kernel is not given, more than 1024 threads, an intrinsic in a block that is not made of whole warps.
Result<EmulatedProgram> emulate(const GpuProgram& program, const EmulatorOptions& options = {});

// One line a site where something was found, most frequent first; empty when all is well.
//   matmul: race, 4096 times: As[tx, k] in acc[i] = ...: first element [0, 3], thread 7 of block 0, after
//   thread 5 of block 0
std::vector<std::string> describe_faults(const EmulatedProgram& emulated, std::span<const int32_t> faults);

}  // namespace tuner
