#include "compiler_core/runtime/dot_peak.h"

#include <cstdint>

#include "compiler_core/runtime/best_rate.h"
#include "compiler_core/runtime/peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tuner {
namespace {

constexpr int64_t kSteps = 20000;  // of a window: about 100 us

struct Loop {
  void (*run)(int64_t steps) = nullptr;
  int64_t operations = 0;  // of one step
};

#if defined(__x86_64__)
// Independent chains, as in peak.cpp: 20 in 32 registers, 12 in 16. The empty asm keeps each in its register.
constexpr int kChains = 20, kFewChains = 12;
#define KEEP(CLASS, x) asm volatile("" : "+" CLASS(x))

__attribute__((target("avx512f,avx512bf16"))) void bf16_512(int64_t steps) {
  __m512 acc[kChains] = {};
  __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f)), b = a;
  KEEP("v", a);
  KEEP("v", b);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 20
    for (int i = 0; i < kChains; ++i) {
      acc[i] = _mm512_dpbf16_ps(acc[i], a, b);
      KEEP("v", acc[i]);
    }
  }
}

__attribute__((target("avx512f,avx512vnni"))) void byte_512(int64_t steps) {
  __m512i acc[kChains] = {};
  __m512i a = _mm512_set1_epi8(1), b = a;
  KEEP("v", a);
  KEEP("v", b);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 20
    for (int i = 0; i < kChains; ++i) {
      acc[i] = _mm512_dpbusd_epi32(acc[i], a, b);
      KEEP("v", acc[i]);
    }
  }
}

__attribute__((target("avx2,avxvnni"))) void byte_256(int64_t steps) {
  __m256i acc[kFewChains] = {};
  __m256i a = _mm256_set1_epi8(1), b = a;
  KEEP("x", a);
  KEEP("x", b);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < kFewChains; ++i) {
      acc[i] = _mm256_dpbusd_avx_epi32(acc[i], a, b);
      KEEP("x", acc[i]);
    }
  }
}

Loop widest_loop(DType dtype) {
  if (dtype == DType::kBFloat16 && __builtin_cpu_supports("avx512bf16")) return {bf16_512, 2 * 32 * kChains};
  if (dtype != DType::kInt8) return {};
  if (__builtin_cpu_supports("avx512vnni")) return {byte_512, 2 * 64 * kChains};
  if (__builtin_cpu_supports("avxvnni")) return {byte_256, 2 * 32 * kFewChains};
  return {};
}
#else
Loop widest_loop(DType) { return {}; }
#endif

}  // namespace

double peak_burst(DType dtype) {
  const Loop loop = widest_loop(dtype);
  if (loop.run == nullptr) return fma_peak_burst();
  loop.run(kSteps);
  return static_cast<double>(loop.operations * kSteps);
}

double measure_peak_gops(DType dtype, double milliseconds) {
  const Loop loop = widest_loop(dtype);
  if (loop.run == nullptr) return measure_fma_peak_gflops(milliseconds);
  return best_rate(milliseconds, static_cast<double>(loop.operations * kSteps), [&] { loop.run(kSteps); });
}

}  // namespace tuner
