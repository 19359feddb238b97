// What printed CUDA needs to be C++ for this host: the kernels' text, compiled by an ordinary compiler, runs
// block by block. The threads of a block are fibers in one OS thread; a barrier, and each half of a shuffle,
// lets every other fiber come as far first. No header of CUDA, no GPU. Not a header of the test: the compiler
// that the test starts reads it (host_cuda.h).
#pragma once

#include <math.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

using std::max;
using std::min;

template <class T>
inline T __ldg(const T* from) {
  return *from;
}

struct Index3 {
  int x, y, z;
};
static Index3 threadIdx, blockIdx;
struct __attribute__((aligned(8))) float2 {
  float x, y;
};
struct __attribute__((aligned(16))) float4 {
  float x, y, z, w;
};
struct __attribute__((aligned(2))) uchar2 {
  unsigned char x, y;
};
struct __attribute__((aligned(4))) uchar4 {
  unsigned char x, y, z, w;
};
struct __attribute__((aligned(2))) char2 {
  signed char x, y;
};
struct __attribute__((aligned(4))) char4 {
  signed char x, y, z, w;
};
struct __attribute__((aligned(8))) int2 {
  int x, y;
};
struct __attribute__((aligned(16))) int4 {
  int x, y, z, w;
};
struct __attribute__((aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
  unsigned x, y, z, w;
};
static inline uchar2 make_uchar2(unsigned char x, unsigned char y) { return {x, y}; }
static inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
  return {x, y, z, w};
}
static inline char2 make_char2(signed char x, signed char y) { return {x, y}; }
static inline char4 make_char4(signed char x, signed char y, signed char z, signed char w) {
  return {x, y, z, w};
}
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct __attribute__((aligned(4))) ushort2 {
  unsigned short x, y;
};
struct __attribute__((aligned(8))) ushort4 {
  unsigned short x, y, z, w;
};
static inline ushort2 make_ushort2(unsigned short x, unsigned short y) { return {x, y}; }
static inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z, unsigned short w) {
  return {x, y, z, w};
}
static inline float __uint_as_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline int __float_as_int(float value) {
  int bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float __int_as_float(int bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The largest dynamic shared memory of a block, and a rim that nobody may write.
constexpr int kSharedBytes = 232448, kRimBytes = 1024;
__attribute__((aligned(1024))) unsigned char shared_memory[kSharedBytes + kRimBytes];

namespace host_cuda {

enum class Wait { kNone, kWarp, kBlock, kDone };
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  Index3 index;
  int linear = 0;  // place in the block; 32 in a row are a warp
  Wait wait = Wait::kNone;
};
static ucontext_t scheduler;
static Fiber* running = nullptr;
static std::function<void()> body;
static float exchanged[1024];

// sum + a[0] * b[0] + ... + a[3] * b[3] of bytes, with or without a sign each.
template <bool AIsUnsigned, bool BIsUnsigned>
static int dp4a(int sum, unsigned a, unsigned b) {
  for (int i = 0; i < 4; ++i) {
    const unsigned char x = a >> 8 * i, y = b >> 8 * i;
    sum += (AIsUnsigned ? x : (int)(signed char)x) * (BIsUnsigned ? y : (int)(signed char)y);
  }
  return sum;
}

static void wait_for(Wait what) {
  running->wait = what;
  swapcontext(&running->context, &scheduler);
}
static void fiber_main() {
  body();
  wait_for(Wait::kDone);
}

}  // namespace host_cuda

#include "host_warp_shim.h"

#include "host_group_shim.h"

#include "host_fetch_shim.h"

namespace host_cuda {

static void start(Fiber& f) {
  constexpr size_t kStackBytes = 64 << 10;
  if (f.stack == nullptr) f.stack.reset(new char[kStackBytes]);
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack.get();
  f.context.uc_stack.ss_size = kStackBytes;
  f.context.uc_link = nullptr;
  makecontext(&f.context, fiber_main, 0);
  f.wait = Wait::kNone;
  copies[f.linear] = {};
  products[f.linear] = {};
  unfenced[f.linear] = false;
}

// Lets those of [begin, end) go on that wait for `what`, if all of them do that are not done.
static bool release(std::vector<Fiber>& fibers, size_t begin, size_t end, Wait what) {
  bool any = false;
  for (size_t i = begin; i < end; ++i) {
    if (fibers[i].wait == Wait::kDone) continue;
    if (fibers[i].wait != what) return false;
    any = true;
  }
  for (size_t i = begin; i < end; ++i)
    if (fibers[i].wait == what) fibers[i].wait = Wait::kNone;
  return any;
}

// Runs all threads of one block, from the last to the first between two barriers: what leans on their order
// fails. False when they wait for each other for ever.
static bool run_block(std::vector<Fiber>& fibers) {
  for (Fiber& f : fibers) start(f);
  for (;;) {
    for (size_t i = fibers.size(); i-- > 0;) {
      if (fibers[i].wait != Wait::kNone) continue;
      running = &fibers[i];
      threadIdx = running->index;
      swapcontext(&scheduler, &running->context);
    }
    bool all_done = true, released = release(fibers, 0, fibers.size(), Wait::kBlock);
    for (size_t warp = 0; warp < fibers.size(); warp += 32)
      released |= release(fibers, warp, min(warp + 32, fibers.size()), Wait::kWarp);
    for (const Fiber& f : fibers) all_done &= f.wait == Wait::kDone;
    if (is_stuck) return false;
    if (all_done) return !fetches_left();
    bool any_runs = false;  // waits for copies try again
    for (const Fiber& f : fibers) any_runs |= f.wait == Wait::kNone;
    if (!released && !any_runs) return false;
  }
}

// 0; 1 when a block wrote beyond its shared memory; 2 when its threads got stuck at a barrier, or left copies
// behind; 4 when an address of a vector was not a multiple of its bytes; 8 when tensor cores read what no
// fence let them see, or by a descriptor that is none, or a copy is asked for in a way that is not allowed.
static int launch(const int* grid, const int* block, int shared_bytes, const std::function<void()>& kernel) {
  std::vector<Fiber> fibers(static_cast<size_t>(block[0]) * block[1] * block[2]);
  for (size_t i = 0; i < fibers.size(); ++i) {
    const int n = static_cast<int>(i);
    fibers[i].linear = n;
    fibers[i].index = {n % block[0], n / block[0] % block[1], n / block[0] / block[1]};
  }
  body = kernel;
  const size_t used = static_cast<size_t>(shared_bytes) + kRimBytes;
  for (int b = 0; b < grid[0] * grid[1] * grid[2]; ++b) {
    blockIdx = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
    memset(shared_memory, 0xff, used);  // NaN: nothing is there before it is written
    clear_fetches();
    if (!run_block(fibers)) return 2;
    if (misaligned) return 4;
    if (misused) return 8;
    for (size_t i = static_cast<size_t>(shared_bytes); i < used; ++i)
      if (shared_memory[i] != 0xff) return 1;
  }
  return 0;
}

}  // namespace host_cuda

static inline void __syncthreads() { host_cuda::wait_for(host_cuda::Wait::kBlock); }
static inline void __syncwarp() { host_cuda::wait_for(host_cuda::Wait::kWarp); }
static inline float __shfl_xor_sync(unsigned, float value, int distance) {
  const int self = host_cuda::running->linear;
  host_cuda::exchanged[self] = value;
  __syncwarp();
  const float other = host_cuda::exchanged[self ^ distance];
  __syncwarp();
  return other;
}
