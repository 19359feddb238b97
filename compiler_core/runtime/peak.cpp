#include "compiler_core/runtime/peak.h"

#include <cstdint>

#include "compiler_core/runtime/best_rate.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tuner {
namespace {

// Twenty independent chains: more than latency (4) times units (2), few enough for the registers of AVX-512
// and of NEON; 256-bit code has 16 registers and takes twelve. Each step is one FMA a chain. The empty asm
// keeps every chain in its register: the compiler may neither merge, vectorise nor drop them.
#define KEEP(x) asm volatile("" : "+" REGISTER_CLASS(x))

#if defined(__x86_64__)
#define REGISTER_CLASS "v"
__attribute__((target("avx512f"))) void fma_512(int64_t steps, float* out) {
  __m512 acc[20];
  __m512 a = _mm512_set1_ps(0.9999f), b = _mm512_set1_ps(0.0001f);
  KEEP(a);
  KEEP(b);
#pragma GCC unroll 20
  for (int i = 0; i < 20; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 20
    for (int i = 0; i < 20; ++i) {
      acc[i] = _mm512_fmadd_ps(acc[i], a, b);
      KEEP(acc[i]);
    }
  }
  __m512 sum = acc[0];
#pragma GCC unroll 20
  for (int i = 1; i < 20; ++i) sum = _mm512_add_ps(sum, acc[i]);
  *out = _mm512_cvtss_f32(sum);
}

#undef REGISTER_CLASS
#define REGISTER_CLASS "x"
__attribute__((target("avx2,fma"))) void fma_256(int64_t steps, float* out) {
  __m256 acc[12];
  __m256 a = _mm256_set1_ps(0.9999f), b = _mm256_set1_ps(0.0001f);
  KEEP(a);
  KEEP(b);
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
      acc[i] = _mm256_fmadd_ps(acc[i], a, b);
      KEEP(acc[i]);
    }
  }
  __m256 sum = acc[0];
#pragma GCC unroll 12
  for (int i = 1; i < 12; ++i) sum = _mm256_add_ps(sum, acc[i]);
  *out = _mm256_cvtss_f32(sum);
}
#elif defined(__aarch64__)
#define REGISTER_CLASS "w"
void fma_128(int64_t steps, float* out) {
  float32x4_t acc[20];
  float32x4_t a = vdupq_n_f32(0.9999f), b = vdupq_n_f32(0.5f);
  KEEP(a);
  KEEP(b);
#pragma GCC unroll 20
  for (int i = 0; i < 20; ++i) acc[i] = vdupq_n_f32(static_cast<float>(i));
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 20
    for (int i = 0; i < 20; ++i) {
      acc[i] = vfmaq_f32(acc[i], a, b);
      KEEP(acc[i]);
    }
  }
  float32x4_t sum = acc[0];
#pragma GCC unroll 20
  for (int i = 1; i < 20; ++i) sum = vaddq_f32(sum, acc[i]);
  *out = vgetq_lane_f32(sum, 0);
}
#endif

struct Loop {
  void (*run)(int64_t steps, float* out) = nullptr;
  int vector_bits = 0, chains = 0;
};

Loop widest_loop() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {fma_512, 512, 20};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {fma_256, 256, 12};
#elif defined(__aarch64__)
  return {fma_128, 128, 20};
#endif
  return {};
}

}  // namespace

double fma_peak_burst() {
  static const Loop loop = widest_loop();
  if (loop.run == nullptr) return 0;
  constexpr int64_t kSteps = 30000;
  float sink = 0;
  loop.run(kSteps, &sink);
  return 2.0 * loop.chains * (loop.vector_bits / 32) * static_cast<double>(kSteps);
}

int fma_peak_vector_bits() { return widest_loop().vector_bits; }

double measure_fma_peak_gflops(double milliseconds) {
  const Loop loop = widest_loop();
  if (loop.run == nullptr) return 0;
  float sink = 0;
  constexpr int64_t kSteps = 20000;
  const double operations = 2.0 * loop.chains * (loop.vector_bits / 32) * static_cast<double>(kSteps);
  return best_rate(milliseconds, operations, [&] { loop.run(kSteps, &sink); });
}

}  // namespace tuner
