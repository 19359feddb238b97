// The emulator: turns GPU kernels into CPU Programs, so that a schedule is proved without a GPU.
//
// It splits kernels at barriers. The blocks of the grid become outer loops. The code between two barriers
// becomes a loop over the threads of the block; serial loops that contain a barrier stay outside it.
// Registers that live across a barrier get a dimension for the threads. Shared buffers become arrays of the
// block, addressed through their layout. The result is an ordinary CPU Program: the oracle interprets it,
// LLVM compiles it.
//
// With `check` the Program also watches itself. Each access to shared memory and each store to an output is
// compared with shadow buffers, and each fault is counted at its site in an extra output, `faults`. Right
// values alone prove nothing: a dropped barrier often gives right values on a CPU.
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
  kRace,           // two threads access a shared element without a barrier in between, and one of them
                   // writes; or threads of one launch pass an element of global memory
  kOutOfBounds,    // an index beyond its dimension; that access is then left out
  kUninitialised,  // a shared or register element is read before it was written in this block, or an element
                   // of workspace before any kernel stored it
  kWrittenTwice,   // two threads of one launch store the same element of global memory
  kUnwritten,      // no thread stored this element of an output
  kInFlight,       // an element is read or stored while an asynchronous copy to it is under way
  kHeld,           // an element is stored while products that were started still read it
  kNotStarted,     // products are waited for that were not started, or not before the latest
  kDivergent,      // only some of the threads that must execute an intrinsic together reach it
  kStuck,          // threads wait for a phase of a barrier that never ends
  kMiscounted,     // a barrier gets more arrivals than a phase has, or other bytes than it was told of
  kUnfinished,     // a block ends while copies to it are under way
};
std::string_view fault_name(FaultKind kind);

struct EmulatorOptions {
  bool check = true;
  // Runs threads in reverse order between barriers, so that a dependence on their order also shows in the
  // values.
  bool reverse_threads = true;
  // 0: every block runs. Otherwise at most this many, spread evenly over the grid and always with the last
  // one (where the guards of tails matter): for shapes too large to emulate completely. Needs `check` and a
  // Program of one kernel. For each output of the GPU Program, the Program then has one more output before
  // `faults`: NAME.written int32, 0 where no block that ran stored the element. kUnwritten is not reported.
  int64_t sample_blocks = 0;
};

// One place in the Program where a fault can be found.
struct FaultSite {
  FaultKind kind;
  std::string kernel, access;  // "As[ty*8 + i, k] in out[...] = ..." as printed
  // How to read the numbers: the shape of the buffer whose flat element is given (empty: the number is the
  // offending index itself), and the threads per block, which split thread numbers into block and thread.
  std::vector<int64_t> shape;
  int64_t block_threads = 1;
};

struct EmulatedProgram {
  // Has the arguments of the GPU Program. With `check`, the output `faults` int32 [sites, 4] follows: the
  // count, and for the first fault the flat element, the number of the thread in the launch (block * threads
  // per block + thread), and the number of the thread before it (-1: several).
  Program program;
  std::vector<FaultSite> sites;
};

// Emulates the kernels; those of GpuProgram::packing are a program of their own. InvalidConfig names the
// statement that no GPU would run: a barrier that not all threads of a block reach, shared buffers that
// overlap or exceed the kernel's shared memory, a buffer that the kernel is not given, more than 1024
// threads, or an intrinsic in a block that is not made of whole warps.
Result<EmulatedProgram> emulate(const GpuProgram& program, const EmulatorOptions& options = {});

// Returns one line per site with faults, most frequent first; empty if there are none.
//   matmul: race, 4096 times: As[tx, k] in acc[i] = ...: first element [0, 3], thread 7 of block 0, after
//   thread 5 of block 0
std::vector<std::string> describe_faults(const EmulatedProgram& emulated, std::span<const int32_t> faults);

}  // namespace tuner
