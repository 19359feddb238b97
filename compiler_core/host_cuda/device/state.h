// What the files of the runtime share. See runtime.h; all of it belongs to the one OS thread of the program.
#pragma once

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

#include <string>
#include <vector>

#include "runtime.h"

namespace host_cuda {

// Where a thread goes on.
struct Place {
#if defined(__x86_64__) || defined(__aarch64__)
  void* stack = nullptr;
#else
  ucontext_t context;
#endif
};
// Goes on at `to`; what is running goes on at `from` later.
void change_stack(Place& from, Place& to);
// A place that begins main() on that stack; main() does not return.
void begin_stack(Place& place, char* stack, size_t bytes, void (*main)());

enum class Wait { kNone, kBlock, kWarp, kDone };
struct Fiber {
  Place place;
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
constexpr size_t kApart = 64 << 20;  // addresses around a buffer, and around all stacks, that nobody has
constexpr size_t kMostShared = 232448, kRim = 4096, kMostThreads = 1024;

extern std::vector<Fiber> fibers;
extern Fiber* running;            // null outside of kernels
extern unsigned block_number;     // of this launch, from 1
extern unsigned epoch;            // one more after each barrier of a block
extern unsigned warp_epochs[32];  // the same, of each warp's __syncwarp
extern size_t dynamic_bytes;
extern bool has_fenced;

// "thread (1, 0, 0) of block (2, 0, 0)"
// Whole pages that nobody may touch yet, kApart from all else. Only addresses are taken. Ends the program if
// there are none.
void* memory_apart(size_t bytes);
std::string thread_text(unsigned linear, unsigned block);
// Notes what was found, once for each kind and pair of places. `first`, `second`: addresses of code, or null.
void report(const char* kind, const std::string& text, const void* first, const void* second);

// The running thread waits. kNone: only until all others have gone on as far as they can.
void wait_for(Wait what);
// Ends the launch, as what comes after a finding has no meaning; in a thread of a kernel it does not return.
void stop();

// Fills shared memory with a pattern of NaN, as nothing is there before a block writes it.
void clear_shared();
// Looks at a write that met another write of the same place: equal bytes are no race.
void settle_write();

// --- units.h ---

// Of each thread: copies have landed that tensor cores do not see yet.
extern bool unfenced[kMostThreads];
// What a unit may not be asked.
void report_unit(const char* what, const char* file, int line);
// Where units are linked, these forget at the begin of a block what is on its way, and tell at its end
// whether something still is.
__attribute__((weak)) void forget_copies();
__attribute__((weak)) void forget_products();
__attribute__((weak)) void forget_fetches();
__attribute__((weak)) bool fetches_left();

}  // namespace host_cuda

// Where `extern __shared__` arrays lie, with a rim that nobody may touch.
extern unsigned char host_cuda_dynamic[host_cuda::kMostShared + host_cuda::kRim];
