// What the files of the runtime share. See runtime.h; all of it belongs to the one OS thread of the program.
#pragma once

#include <ucontext.h>

#include <string>
#include <vector>

#include "runtime.h"

namespace host_cuda {

enum class Wait { kNone, kBlock, kWarp, kDone };
struct Fiber {
  ucontext_t context;
  char* stack = nullptr;
  uint3 index = {};
  unsigned linear = 0;  // place in the block; 32 in a row are a warp
  Wait wait = Wait::kNone;
  unsigned mask = 0;  // of lanes, where it waits for its warp
  Op op = Op::kBarrier;
  const char* file = "";
  int line = 0;
  alignas(16) unsigned char brought[16] = {};
};
constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kMostShared = 232448, kRim = 4096;

extern std::vector<Fiber> fibers;
extern Fiber* running;            // null outside of kernels
extern unsigned block_number;     // of this launch, from 1
extern unsigned epoch;            // one more after each barrier of a block
extern unsigned warp_epochs[32];  // the same, of each warp's __syncwarp
extern size_t dynamic_bytes;
extern bool has_fenced;

// "thread (1, 0, 0) of block (2, 0, 0)"
std::string thread_text(unsigned linear, unsigned block);
// Notes what was found, once for each kind and pair of places. `first`, `second`: addresses of code, or null.
void report(const char* kind, const std::string& text, const void* first, const void* second);

// Fills shared memory with a pattern of NaN, as nothing is there before a block writes it.
void clear_shared();
// Looks at a write that met another write of the same place: equal bytes are no race.
void settle_write();

}  // namespace host_cuda
