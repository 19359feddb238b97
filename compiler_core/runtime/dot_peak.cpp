#include "compiler_core/runtime/dot_peak.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compiler_core/runtime/best_rate.h"
#include "compiler_core/runtime/cpu_instructions.h"
#include "compiler_core/runtime/peak.h"
#include "compiler_core/runtime/tuner_runtime.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tuner {
namespace {

constexpr int64_t kSteps = 20000;  // of a window: about 100 us

// Independent chains, as in peak.cpp: 20 in 32 registers, 12 in 16.
constexpr int kChains = 20, kFewChains = 12;
constexpr int kLanes = 16;     // of 32 bits
constexpr float kHalf = 0.5F;  // what bfloat16 are multiplied; bytes: 1

// What each chain has added up, lane by lane; tiles leave it as it is.
using Sums = std::array<std::array<int32_t, kLanes>, kChains>;

struct DotLoop {
  void (*run)(int64_t steps, Sums& sums) = nullptr;
  int64_t operations = 0;  // of one step
  std::string_view instruction = {};
  int chains = 0;  // 0: of tiles
};

#if defined(__x86_64__)
// The empty asm keeps each chain in its register.
#define KEEP(CLASS, x) asm volatile("" : "+" CLASS(x))

__attribute__((target("avx512f,avx512bf16"))) void bf16_512(int64_t steps, Sums& sums) {
  __m512 acc[kChains] = {};
  __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(kHalf), _mm512_set1_ps(kHalf)), b = a;
  KEEP("v", a);
  KEEP("v", b);
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 20
    for (int i = 0; i < kChains; ++i) {
      acc[i] = _mm512_dpbf16_ps(acc[i], a, b);
      KEEP("v", acc[i]);
    }
  }
#pragma GCC unroll 20
  for (int i = 0; i < kChains; ++i) _mm512_storeu_ps(sums[i].data(), acc[i]);
}

__attribute__((target("avx512f,avx512vnni"))) void byte_512(int64_t steps, Sums& sums) {
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
#pragma GCC unroll 20
  for (int i = 0; i < kChains; ++i) _mm512_storeu_si512(sums[i].data(), acc[i]);
}

__attribute__((target("avx2,avxvnni"))) void byte_256(int64_t steps, Sums& sums) {
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
#pragma GCC unroll 12
  for (int i = 0; i < kFewChains; ++i)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums[i].data()), acc[i]);
}

// Tiles: two of a by two of b, each product 16 x 16 sums of 64 bytes of each. Instructions by their bytes, so
// that any assembler knows them; the compiler uses no tile register itself.
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
void bf16_tiles(int64_t steps, Sums& /*sums*/) {
  with_tiles(steps, [] { TILE_PRODUCTS("2", "0x5c"); });  // tdpbf16ps
}
void fp16_tiles(int64_t steps, Sums& /*sums*/) {
  with_tiles(steps, [] { TILE_PRODUCTS("3", "0x5c"); });  // tdpfp16ps
}
void byte_tiles(int64_t steps, Sums& /*sums*/) {
  with_tiles(steps, [] { TILE_PRODUCTS("1", "0x5e"); });  // tdpbusd
}
constexpr int64_t kTileSteps =
    int64_t{2} * 16 * 16 * kTileProducts;  // operations of a step, times elements of 64 bytes

// Everything this CPU multiplies the type with, but float32 vectors.
std::vector<DotLoop> loops_of(DType dtype) {
  std::vector<DotLoop> found;
  const int32_t tiles = tuner_tiles();
  const auto add = [&](bool there, DotLoop loop) {
    if (there) found.push_back(loop);
  };
  if (dtype == DType::kBFloat16) {
    add((tiles & TUNER_TILES_BFLOAT16) != 0, {bf16_tiles, 32 * kTileSteps, "tdpbf16ps"});
    add(__builtin_cpu_supports("avx512bf16") != 0,
        {bf16_512, int64_t{2} * 32 * kChains, "vdpbf16ps", kChains});
  } else if (dtype == DType::kFloat16) {
    add((tiles & TUNER_TILES_FLOAT16) != 0, {fp16_tiles, 32 * kTileSteps, "tdpfp16ps"});
  } else if (dtype == DType::kInt8) {
    add((tiles & TUNER_TILES_INT8) != 0, {byte_tiles, 64 * kTileSteps, "tdpbusd"});
    if (__builtin_cpu_supports("avx512vnni"))
      found.push_back({byte_512, int64_t{2} * 64 * kChains, "vpdpbusd", kChains});
    else
      add(cpu_has_avx_vnni(), {byte_256, int64_t{2} * 32 * kFewChains, "vpdpbusd", kFewChains});
  }
  return found;
}
#elif defined(__aarch64__)
// A loop of one instruction, sums += a * b, on kChains registers of 128 bits. As text, so that it is that
// one; the attribute lets the assembler take it.
#define NEON_LOOP(NAME, ARCHITECTURE, INSTRUCTION, ELEMENTS, LAYOUT)                              \
  __attribute__((target(ARCHITECTURE))) void NAME(int64_t steps, Sums& sums) {                    \
    int32x4_t acc[kChains] = {};                                                                  \
    const int8x16_t a = ELEMENTS, b = a;                                                          \
    for (int64_t s = 0; s < steps; ++s) {                                                         \
      _Pragma("GCC unroll 20") for (int i = 0; i < kChains; ++i) asm volatile(                    \
          INSTRUCTION " %0.4s, %1." LAYOUT ", %2." LAYOUT : "+w"(acc[i]) : "w"(a), "w"(b));       \
    }                                                                                             \
    _Pragma("GCC unroll 20") for (int i = 0; i < kChains; ++i) vst1q_s32(sums[i].data(), acc[i]); \
  }
const auto kOnes = [] { return vdupq_n_s8(1); };
const auto kHalves = [] { return vreinterpretq_s8_u16(vdupq_n_u16(0x3f00)); };  // 0.5 as bfloat16

NEON_LOOP(byte_dot, "arch=armv8.2-a+dotprod", "sdot", kOnes(), "16b")
NEON_LOOP(byte_matrix, "arch=armv8.2-a+i8mm", "smmla", kOnes(), "16b")
NEON_LOOP(bf16_dot, "arch=armv8.2-a+bf16", "bfdot", kHalves(), "8h")
NEON_LOOP(bf16_matrix, "arch=armv8.2-a+bf16", "bfmmla", kHalves(), "8h")

// Everything this CPU multiplies the type with, but float32 vectors. An instruction makes four sums, of so
// many products each.
std::vector<DotLoop> loops_of(DType dtype) {
  std::vector<DotLoop> found;
  const auto add = [&](bool there, auto run, int64_t products, std::string_view instruction) {
    if (there) found.push_back({run, 2 * 4 * products * kChains, instruction, kChains});
  };
  const int32_t units = tuner_units();
  if (dtype == DType::kBFloat16) {
    add((units & TUNER_UNITS_BF16) != 0, bf16_dot, 2, "bfdot");
    add((units & TUNER_UNITS_BF16) != 0, bf16_matrix, 4, "bfmmla");
  } else if (dtype == DType::kInt8) {
    add((units & TUNER_UNITS_DOTPROD) != 0, byte_dot, 4, "sdot");
    add((units & TUNER_UNITS_I8MM) != 0, byte_matrix, 8, "smmla");
  }
  return found;
}
#else
std::vector<DotLoop> loops_of(DType) { return {}; }
#endif

double rate_of(const DotLoop& loop, double milliseconds) {
  Sums sums{};
  return best_rate(milliseconds, static_cast<double>(loop.operations * kSteps),
                   [&] { loop.run(kSteps, sums); });
}

// The fastest of them, once a process; without a function where float32 vectors do more: a CPU may have dot
// products that are slower than its multiply-adds.
DotLoop fastest_loop(DType dtype) {
  constexpr double kMilliseconds = 3;
  const auto choose = [](DType of) {
    DotLoop best;
    double most = measure_fma_peak_gflops(kMilliseconds);
    for (const DotLoop& loop : loops_of(of))
      if (const double rate = rate_of(loop, kMilliseconds); rate > most) best = loop, most = rate;
    return best;
  };
  if (dtype == DType::kBFloat16) {
    static const DotLoop kBest = choose(DType::kBFloat16);
    return kBest;
  }
  if (dtype == DType::kFloat16) {
    static const DotLoop kBest = choose(DType::kFloat16);
    return kBest;
  }
  if (dtype == DType::kInt8) {
    static const DotLoop kBest = choose(DType::kInt8);
    return kBest;
  }
  return {};
}

}  // namespace

double peak_burst(DType dtype) {
  const DotLoop loop = fastest_loop(dtype);
  if (loop.run == nullptr) return fma_peak_burst();
  Sums sums{};
  loop.run(kSteps, sums);
  return static_cast<double>(loop.operations * kSteps);
}

std::vector<CountedLoop> counted_dot_loops(DType dtype, int64_t steps) {
  std::vector<CountedLoop> found;
  for (const DotLoop& loop : loops_of(dtype)) {
    if (loop.chains == 0) continue;
    Sums sums{};
    loop.run(steps, sums);
    double least = INFINITY;
    for (int chain = 0; chain < loop.chains; ++chain) {
      double products = 0;
      for (const int32_t lane : sums[static_cast<size_t>(chain)])
        products += dtype == DType::kInt8 ? lane : std::bit_cast<float>(lane) / (kHalf * kHalf);
      least = std::min(least, products);
    }
    found.push_back({loop.instruction, loop.chains, static_cast<double>(loop.operations * steps),
                     2 * least * loop.chains});
  }
  return found;
}

double measure_peak_gops(DType dtype, double milliseconds) {
  const DotLoop loop = fastest_loop(dtype);
  if (loop.run == nullptr) return measure_fma_peak_gflops(milliseconds);
  return rate_of(loop, milliseconds);
}

}  // namespace tuner
