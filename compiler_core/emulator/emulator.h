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
  kRace,           // two threads, one of them writing, the same shared element, no barrier in between
  kOutOfBounds,    // an index beyond its dimension, or an address beyond the shared memory of the block
  kUninitialised,  // a shared element or register read before it was written in this block
  kWrittenTwice,   // an output element stored by two threads or blocks
  kUnwritten,      // an output element nobody stored
};
std::string_view fault_name(FaultKind kind);

struct EmulatorOptions {
  bool check = true;
  // Threads run in reverse order between barriers: what depends on their order then shows in the values too.
  bool reverse_threads = true;
};

// One place in the Program where a fault can be found.
struct FaultSite {
  FaultKind kind;
  std::string kernel, access;  // "As[ty*8 + i, k] in out[...] = ..." as printed
};

struct EmulatedProgram {
  // Arguments of the GPU Program, then, with `check`, the output `faults` int32 [sites, 4]: how often, and of
  // the first time the flat element, the thread (or block) there now, the one before.
  Program program;
  std::vector<FaultSite> sites;
};

// InvalidConfig naming the statement for what no GPU would run: a barrier that not all threads of a block
// come by, shared buffers that overlap or exceed the shared memory the kernel asks for.
Result<EmulatedProgram> emulate(const GpuProgram& program, const EmulatorOptions& options = {});

// One line a site where something was found, most frequent first; empty when all is well.
std::vector<std::string> describe_faults(const EmulatedProgram& emulated, std::span<const int32_t> faults);

}  // namespace tuner
