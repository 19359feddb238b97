#include "compiler_core/runtime/dot_peak.h"

#include <cstdint>
#include <vector>

#include "compiler_core/runtime/best_rate.h"
#include "compiler_core/runtime/cpu_instructions.h"
#include "compiler_core/runtime/peak.h"
#include "compiler_core/runtime/tuner_runtime.h"

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

// Tiles: two of a by two of b, each product 16 x 16 sums of 64 bytes of each. Instructions by their bytes, so that
// any assembler knows them; the compiler uses no tile register itself.
constexpr int64_t kTileProducts = 4;
#define TILE_PRODUCTS(PREFIX, OPCODE)                         \
  asm volatile(".byte 0xc4, 0xe2, 0x48 | " PREFIX ", " OPCODE \
               ", 0xc4\n" /* tmm0 += tmm4 * tmm6 */           \
               ".byte 0xc4, 0xe2, 0x40 | " PREFIX ", " OPCODE \
               ", 0xcc\n" /* tmm1 += tmm4 * tmm7 */           \
               ".byte 0xc4, 0xe2, 0x48 | " PREFIX ", " OPCODE \
               ", 0xd5\n" /* tmm2 += tmm5 * tmm6 */           \
               ".byte 0xc4, 0xe2, 0x40 | " PREFIX ", " OPCODE ", 0xdd\n" /* tmm3 += tmm5 * tmm7 */)

template <class Products>
void with_tiles(int64_t steps, const Products& products) {
  alignas(64) unsigned char config[64] = {1};  // palette; then bytes a row, and rows
  for (int t = 0; t < 8; ++t) config[16 + 2 * t] = 64, config[48 + t] = 16;
  asm volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" ::"a"(config),
               "m"(config));  // ldtilecfg (%rax): all are zero
  for (int64_t s = 0; s < steps; ++s) products();
  asm volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0");  // tilerelease
}
void bf16_tiles(int64_t steps) {
  with_tiles(steps, [] { TILE_PRODUCTS("2", "0x5c"); });  // tdpbf16ps
}
void fp16_tiles(int64_t steps) {
  with_tiles(steps, [] { TILE_PRODUCTS("3", "0x5c"); });  // tdpfp16ps
}
void byte_tiles(int64_t steps) {
  with_tiles(steps, [] { TILE_PRODUCTS("1", "0x5e"); });  // tdpbusd
}
constexpr int64_t kTileSteps =
    int64_t{2} * 16 * 16 * kTileProducts;  // operations of a step, times elements of 64 bytes

// Everything this CPU multiplies the type with, but float32 vectors.
std::vector<Loop> loops_of(DType dtype) {
  std::vector<Loop> found;
  const int32_t tiles = tuner_tiles();
  const auto add = [&](bool there, Loop loop) {
    if (there) found.push_back(loop);
  };
  if (dtype == DType::kBFloat16) {
    add((tiles & TUNER_TILES_BFLOAT16) != 0, {bf16_tiles, 32 * kTileSteps});
    add(__builtin_cpu_supports("avx512bf16") != 0, {bf16_512, int64_t{2} * 32 * kChains});
  } else if (dtype == DType::kFloat16) {
    add((tiles & TUNER_TILES_FLOAT16) != 0, {fp16_tiles, 32 * kTileSteps});
  } else if (dtype == DType::kInt8) {
    add((tiles & TUNER_TILES_INT8) != 0, {byte_tiles, 64 * kTileSteps});
    if (__builtin_cpu_supports("avx512vnni"))
      found.push_back({byte_512, int64_t{2} * 64 * kChains});
    else
      add(cpu_has_avx_vnni(), {byte_256, int64_t{2} * 32 * kFewChains});
  }
  return found;
}
#else
std::vector<Loop> loops_of(DType) { return {}; }
#endif

double rate_of(const Loop& loop, double milliseconds) {
  return best_rate(milliseconds, static_cast<double>(loop.operations * kSteps), [&] { loop.run(kSteps); });
}

// The fastest of them, once a process; without a function where float32 vectors do more: a CPU may have dot products
// that are slower than its multiply-adds.
Loop fastest_loop(DType dtype) {
  constexpr double kMilliseconds = 3;
  const auto choose = [](DType of) {
    Loop best;
    double most = measure_fma_peak_gflops(kMilliseconds);
    for (const Loop& loop : loops_of(of))
      if (const double rate = rate_of(loop, kMilliseconds); rate > most) best = loop, most = rate;
    return best;
  };
  if (dtype == DType::kBFloat16) {
    static const Loop kBest = choose(DType::kBFloat16);
    return kBest;
  }
  if (dtype == DType::kFloat16) {
    static const Loop kBest = choose(DType::kFloat16);
    return kBest;
  }
  if (dtype == DType::kInt8) {
    static const Loop kBest = choose(DType::kInt8);
    return kBest;
  }
  return {};
}

}  // namespace

double peak_burst(DType dtype) {
  const Loop loop = fastest_loop(dtype);
  if (loop.run == nullptr) return fma_peak_burst();
  loop.run(kSteps);
  return static_cast<double>(loop.operations * kSteps);
}

double measure_peak_gops(DType dtype, double milliseconds) {
  const Loop loop = fastest_loop(dtype);
  if (loop.run == nullptr) return measure_fma_peak_gflops(milliseconds);
  return rate_of(loop, milliseconds);
}

}  // namespace tuner
