// CUDA's words for a C++ compiler of the host: read before the user's source. Names begin with hc_ where a
// macro of the user's could meet them.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
#define __CUDACC__ 1
#define __CUDA_ARCH__ 800
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(hc_bytes) __attribute__((aligned(hc_bytes)))
#define __shared__ static __attribute__((aligned(16)))
#define HC_PLAIN __attribute__((noinline, no_sanitize("thread")))

// Becomes an array of any type: `extern __shared__ T a[];` reads `T (&a)[] = host_cuda::DynamicShared();`
extern unsigned char host_cuda_dynamic[];
namespace host_cuda {
struct DynamicShared {
  template <class HcT>
  operator HcT&() const {
    return reinterpret_cast<HcT&>(host_cuda_dynamic);
  }
};
}  // namespace host_cuda

constexpr int warpSize = 32;

#define HC_VECTOR(hc_type, hc_name, hc_align2, hc_align4)                                              \
  struct __attribute__((aligned(hc_align2))) hc_name##2 {                                              \
    hc_type x, y;                                                                                      \
  };                                                                                                   \
  struct hc_name##3 {                                                                                  \
    hc_type x, y, z;                                                                                   \
  };                                                                                                   \
  struct __attribute__((aligned(hc_align4))) hc_name##4 {                                              \
    hc_type x, y, z, w;                                                                                \
  };                                                                                                   \
  static inline hc_name##2 make_##hc_name##2(hc_type hc_x, hc_type hc_y) { return {hc_x, hc_y}; }      \
  static inline hc_name##3 make_##hc_name##3(hc_type hc_x, hc_type hc_y, hc_type hc_z) {               \
    return {hc_x, hc_y, hc_z};                                                                         \
  }                                                                                                    \
  static inline hc_name##4 make_##hc_name##4(hc_type hc_x, hc_type hc_y, hc_type hc_z, hc_type hc_w) { \
    return {hc_x, hc_y, hc_z, hc_w};                                                                   \
  }
HC_VECTOR(float, float, 8, 16)
HC_VECTOR(double, double, 16, 16)
HC_VECTOR(int, int, 8, 16)
HC_VECTOR(signed char, char, 2, 4)
HC_VECTOR(unsigned char, uchar, 2, 4)
HC_VECTOR(short, short, 4, 8)
HC_VECTOR(unsigned short, ushort, 4, 8)
HC_VECTOR(long long, longlong, 16, 16)
struct __attribute__((aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
  unsigned x, y, z, w;
};
static inline uint2 make_uint2(unsigned hc_x, unsigned hc_y) { return {hc_x, hc_y}; }
static inline uint4 make_uint4(unsigned hc_x, unsigned hc_y, unsigned hc_z, unsigned hc_w) {
  return {hc_x, hc_y, hc_z, hc_w};
}

// --- arithmetic ---

template <class HcA, class HcB>
constexpr auto min(HcA hc_a, HcB hc_b) -> decltype(hc_a + hc_b) {
  return hc_b < hc_a ? hc_b : hc_a;
}
template <class HcA, class HcB>
constexpr auto max(HcA hc_a, HcB hc_b) -> decltype(hc_a + hc_b) {
  return hc_a < hc_b ? hc_b : hc_a;
}
template <class HcT>
inline HcT __ldg(const HcT* hc_from) {
  return *hc_from;
}
static inline float rsqrtf(float hc_x) { return 1 / sqrtf(hc_x); }
static inline float __fdividef(float hc_x, float hc_y) { return hc_x / hc_y; }
// The C library keeps these names for itself, so that they cannot be functions.
#define __expf expf
#define __logf logf
#define __sinf sinf
#define __cosf cosf
#define __powf powf
static inline float __fmaf_rn(float hc_x, float hc_y, float hc_z) { return fmaf(hc_x, hc_y, hc_z); }
static inline float __fadd_rn(float hc_x, float hc_y) { return hc_x + hc_y; }
static inline float __fmul_rn(float hc_x, float hc_y) { return hc_x * hc_y; }
static inline int __mul24(int hc_x, int hc_y) { return hc_x * hc_y; }
static inline int __popc(unsigned hc_x) { return __builtin_popcount(hc_x); }
static inline int __popcll(unsigned long long hc_x) { return __builtin_popcountll(hc_x); }
static inline int __clz(int hc_x) { return hc_x == 0 ? 32 : __builtin_clz((unsigned)hc_x); }
static inline int __ffs(int hc_x) { return __builtin_ffs(hc_x); }
static inline unsigned __brev(unsigned hc_x) {
  unsigned hc_y = 0;
  for (int hc_i = 0; hc_i < 32; ++hc_i) hc_y |= (hc_x >> hc_i & 1) << (31 - hc_i);
  return hc_y;
}
#define HC_BITS(hc_name, hc_to, hc_of)           \
  static inline hc_to hc_name(hc_of hc_x) {      \
    hc_to hc_y;                                  \
    __builtin_memcpy(&hc_y, &hc_x, sizeof hc_y); \
    return hc_y;                                 \
  }
HC_BITS(__float_as_int, int, float)
HC_BITS(__float_as_uint, unsigned, float)
HC_BITS(__int_as_float, float, int)
HC_BITS(__uint_as_float, float, unsigned)

// --- barriers, fences ---

#define __syncthreads() host_cuda::sync_block(__FILE__, __LINE__)
#define __syncthreads_count(hc_value) host_cuda::count_block((hc_value) != 0, nullptr, __FILE__, __LINE__)
#define __syncthreads_or(hc_value) (__syncthreads_count(hc_value) != 0)
#define __syncthreads_and(hc_value) (__syncthreads_count(!(hc_value)) == 0)
#define HC_FIRST(hc_first, ...) hc_first
#define __syncwarp(...)                                                                                      \
  host_cuda::sync_warp(HC_FIRST(__VA_ARGS__ __VA_OPT__(, ) 0xffffffffu), host_cuda::Op::kSyncWarp, __FILE__, \
                       __LINE__)
static inline void __threadfence() { host_cuda::fence(); }
static inline void __threadfence_system() { host_cuda::fence(); }
static inline void __threadfence_block() {}

// --- what a warp does together ---

namespace host_cuda {
// The lane that a lane reads of, in parts of `width` lanes; its own where there is none.
static inline int lane_up(int hc_by, int hc_width) {
  return lane() % hc_width < hc_by ? lane() : lane() - hc_by;
}
static inline int lane_down(int hc_by, int hc_width) {
  return lane() % hc_width + hc_by >= hc_width ? lane() : lane() + hc_by;
}
static inline int lane_xor(int hc_by, int hc_width) {
  const int hc_other = lane() ^ hc_by;
  return hc_other / hc_width > lane() / hc_width ? lane() : hc_other;
}
static inline int lane_at(int hc_at, int hc_width) {
  return lane() / hc_width * hc_width + (hc_at & (hc_width - 1));
}
template <class HcT>
HC_PLAIN HcT shuffle(unsigned hc_mask, HcT hc_value, int hc_from, const char* hc_file, int hc_line) {
  static_assert(sizeof hc_value <= 8, "a shuffle moves at most 8 bytes");
  HcT hc_other;
  __builtin_memcpy(&hc_other,
                   exchange(hc_mask, &hc_value, sizeof hc_value, hc_from, Op::kShuffle, hc_file, hc_line),
                   sizeof hc_other);
  return hc_other;
}
// The lane of the arguments (by) or (by, width).
template <int (*hc_rule)(int, int)>
static inline int lane_by(int hc_by, int hc_width = 32) {
  return hc_rule(hc_by, hc_width);
}
}  // namespace host_cuda
#define HC_SHUFFLE(hc_rule, hc_mask, hc_value, ...)                                                    \
  host_cuda::shuffle(hc_mask, hc_value, host_cuda::lane_by<host_cuda::hc_rule>(__VA_ARGS__), __FILE__, \
                     __LINE__)
#define __shfl_sync(hc_mask, hc_value, ...) HC_SHUFFLE(lane_at, hc_mask, hc_value, __VA_ARGS__)
#define __shfl_up_sync(hc_mask, hc_value, ...) HC_SHUFFLE(lane_up, hc_mask, hc_value, __VA_ARGS__)
#define __shfl_down_sync(hc_mask, hc_value, ...) HC_SHUFFLE(lane_down, hc_mask, hc_value, __VA_ARGS__)
#define __shfl_xor_sync(hc_mask, hc_value, ...) HC_SHUFFLE(lane_xor, hc_mask, hc_value, __VA_ARGS__)
#define __ballot_sync(hc_mask, hc_value) host_cuda::vote(hc_mask, (hc_value) != 0, __FILE__, __LINE__)
#define __any_sync(hc_mask, hc_value) (__ballot_sync(hc_mask, hc_value) != 0)
#define __all_sync(hc_mask, hc_value) (__ballot_sync(hc_mask, !(hc_value)) == 0)
static inline unsigned __activemask() { return host_cuda::active(); }

// --- atomics: threads of one OS thread, so that plain code is atomic ---

#define HC_ATOMIC(hc_name, hc_new)                                                                   \
  template <class HcT, class HcV>                                                                    \
  HC_PLAIN HcT hc_name(HcT* hc_at, HcV hc_given) {                                                   \
    host_cuda::touch(hc_at, sizeof *hc_at, host_cuda::Access::kAtomic, __builtin_return_address(0)); \
    const HcT hc_old = *hc_at, hc_value = (HcT)hc_given;                                             \
    *hc_at = (hc_new);                                                                               \
    return hc_old;                                                                                   \
  }
HC_ATOMIC(atomicAdd, hc_old + hc_value)
HC_ATOMIC(atomicSub, hc_old - hc_value)
HC_ATOMIC(atomicMin, hc_value < hc_old ? hc_value : hc_old)
HC_ATOMIC(atomicMax, hc_old < hc_value ? hc_value : hc_old)
HC_ATOMIC(atomicAnd, hc_old& hc_value)
HC_ATOMIC(atomicOr, hc_old | hc_value)
HC_ATOMIC(atomicXor, hc_old ^ hc_value)
HC_ATOMIC(atomicExch, hc_value)
HC_ATOMIC(atomicInc, hc_old >= hc_value ? 0 : hc_old + 1)
HC_ATOMIC(atomicDec, hc_old == 0 || hc_old > hc_value ? hc_value : hc_old - 1)
template <class HcT, class HcE, class HcV>
HC_PLAIN HcT atomicCAS(HcT* hc_at, HcE hc_expected, HcV hc_value) {
  host_cuda::touch(hc_at, sizeof *hc_at, host_cuda::Access::kAtomic, __builtin_return_address(0));
  const HcT hc_old = *hc_at;
  if (hc_old == (HcT)hc_expected) *hc_at = (HcT)hc_value;
  return hc_old;
}
// NOLINTEND(bugprone-reserved-identifier)
