// cuda_fp16.h and cuda_bf16.h for the host. Each operation rounds once to 16 bits, as devices do: float32 has
// bits enough that rounding twice is rounding once, but for fused products with tiny sums.
#pragma once

#include "device.h"
#include "numbers.h"

#define HC_HALF(hc_half, hc_pair, hc_narrow, hc_wide)                                \
  struct hc_half {                                                                   \
    unsigned short hc_bits;                                                          \
    hc_half() = default;                                                             \
    hc_half(float hc_x) : hc_bits(host_cuda::hc_narrow(hc_x)) {}                     \
    hc_half(double hc_x) : hc_half((float)hc_x) {}                                   \
    hc_half(int hc_x) : hc_half((float)hc_x) {}                                      \
    operator float() const { return host_cuda::hc_wide(hc_bits); }                   \
  };                                                                                 \
  struct __attribute__((aligned(4))) hc_pair {                                       \
    hc_half x, y;                                                                    \
  };                                                                                 \
  HC_HALF_OPERATOR(hc_half, +, __hadd)                                               \
  HC_HALF_OPERATOR(hc_half, -, __hsub)                                               \
  HC_HALF_OPERATOR(hc_half, *, __hmul)                                               \
  HC_HALF_OPERATOR(hc_half, /, __hdiv)                                               \
  HC_HALF_COMPARISON(hc_half, ==, __heq)                                             \
  HC_HALF_COMPARISON(hc_half, !=, __hne)                                             \
  HC_HALF_COMPARISON(hc_half, <, __hlt)                                              \
  HC_HALF_COMPARISON(hc_half, <=, __hle)                                             \
  HC_HALF_COMPARISON(hc_half, >, __hgt)                                              \
  HC_HALF_COMPARISON(hc_half, >=, __hge)                                             \
  static inline hc_half operator-(hc_half hc_x) { return hc_half(-(float)hc_x); }    \
  static inline hc_half __hneg(hc_half hc_x) { return -hc_x; }                       \
  static inline hc_half __habs(hc_half hc_x) { return hc_half(fabsf((float)hc_x)); } \
  static inline hc_half __hmax(hc_half hc_x, hc_half hc_y) {                         \
    return hc_half(fmaxf((float)hc_x, (float)hc_y));                                 \
  }                                                                                  \
  static inline hc_half __hmin(hc_half hc_x, hc_half hc_y) {                         \
    return hc_half(fminf((float)hc_x, (float)hc_y));                                 \
  }                                                                                  \
  static inline hc_half __hfma(hc_half hc_x, hc_half hc_y, hc_half hc_z) {           \
    return hc_half((float)((double)(float)hc_x * (float)hc_y + (float)hc_z));        \
  }                                                                                  \
  HC_HALF_PAIR(hc_half, hc_pair, __hadd2, __hadd)                                    \
  HC_HALF_PAIR(hc_half, hc_pair, __hsub2, __hsub)                                    \
  HC_HALF_PAIR(hc_half, hc_pair, __hmul2, __hmul)                                    \
  static inline hc_pair __hfma2(hc_pair hc_x, hc_pair hc_y, hc_pair hc_z) {          \
    return {__hfma(hc_x.x, hc_y.x, hc_z.x), __hfma(hc_x.y, hc_y.y, hc_z.y)};         \
  }                                                                                  \
  static inline float __low2float(hc_pair hc_x) { return (float)hc_x.x; }            \
  static inline float __high2float(hc_pair hc_x) { return (float)hc_x.y; }
#define HC_HALF_OPERATOR(hc_half, hc_sign, hc_name)                                                  \
  static inline hc_half hc_name(hc_half hc_x, hc_half hc_y) {                                        \
    return hc_half((float)hc_x hc_sign(float) hc_y);                                                 \
  }                                                                                                  \
  static inline hc_half operator hc_sign(hc_half hc_x, hc_half hc_y) { return hc_name(hc_x, hc_y); } \
  static inline hc_half& operator hc_sign##=(hc_half& hc_x, hc_half hc_y) {                          \
    return hc_x = hc_name(hc_x, hc_y);                                                               \
  }
#define HC_HALF_COMPARISON(hc_half, hc_sign, hc_name)                                                \
  static inline bool hc_name(hc_half hc_x, hc_half hc_y) { return (float)hc_x hc_sign(float) hc_y; } \
  static inline bool operator hc_sign(hc_half hc_x, hc_half hc_y) { return (float)hc_x hc_sign(float) hc_y; }
#define HC_HALF_PAIR(hc_half, hc_pair, hc_name, hc_of_one)         \
  static inline hc_pair hc_name(hc_pair hc_x, hc_pair hc_y) {      \
    return {hc_of_one(hc_x.x, hc_y.x), hc_of_one(hc_x.y, hc_y.y)}; \
  }

HC_HALF(__half, __half2, float_to_float16, float16_to_float)
HC_HALF(__nv_bfloat16, __nv_bfloat162, float_to_bfloat16, bfloat16_to_float)
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __half __float2half(float hc_x) { return __half(hc_x); }
static inline __half __float2half_rn(float hc_x) { return __half(hc_x); }
static inline float __half2float(__half hc_x) { return (float)hc_x; }
static inline __half2 make_half2(__half hc_x, __half hc_y) { return {hc_x, hc_y}; }
static inline __half2 __halves2half2(__half hc_x, __half hc_y) { return {hc_x, hc_y}; }
static inline __half2 __floats2half2_rn(float hc_x, float hc_y) { return {__half(hc_x), __half(hc_y)}; }
static inline __half2 __float2half2_rn(float hc_x) { return {__half(hc_x), __half(hc_x)}; }
static inline __half2 __half2half2(__half hc_x) { return {hc_x, hc_x}; }
static inline float2 __half22float2(__half2 hc_x) { return {(float)hc_x.x, (float)hc_x.y}; }
static inline __half __low2half(__half2 hc_x) { return hc_x.x; }
static inline __half __high2half(__half2 hc_x) { return hc_x.y; }
static inline __nv_bfloat16 __float2bfloat16(float hc_x) { return __nv_bfloat16(hc_x); }
static inline __nv_bfloat16 __float2bfloat16_rn(float hc_x) { return __nv_bfloat16(hc_x); }
static inline float __bfloat162float(__nv_bfloat16 hc_x) { return (float)hc_x; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float hc_x, float hc_y) {
  return {__nv_bfloat16(hc_x), __nv_bfloat16(hc_y)};
}
static inline float2 __bfloat1622float2(__nv_bfloat162 hc_x) { return {(float)hc_x.x, (float)hc_x.y}; }
