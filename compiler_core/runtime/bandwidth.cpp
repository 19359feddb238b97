#include "compiler_core/runtime/bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tuner {
namespace {

// Each loads 512 bytes a step into registers; the empty asm makes every load happen.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) void read_512(const char* at, const char* end) {
  for (; at < end; at += 512) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const __m512 v = _mm512_load_ps(at + 64 * i);
      asm volatile("" : : "v"(v));
    }
  }
}
__attribute__((target("avx2"))) void read_256(const char* at, const char* end) {
  for (; at < end; at += 512) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m256 v = _mm256_load_ps(reinterpret_cast<const float*>(at + 32 * i));
      asm volatile("" : : "x"(v));
    }
  }
}
void read_128(const char* at, const char* end) {
  for (; at < end; at += 512) {
#pragma GCC unroll 32
    for (int i = 0; i < 32; ++i) {
      const __m128 v = _mm_load_ps(reinterpret_cast<const float*>(at + 16 * i));
      asm volatile("" : : "x"(v));
    }
  }
}
#elif defined(__aarch64__)
void read_128(const char* at, const char* end) {
  for (; at < end; at += 512) {
#pragma GCC unroll 32
    for (int i = 0; i < 32; ++i) {
      const float32x4_t v = vld1q_f32(reinterpret_cast<const float*>(at + 16 * i));
      asm volatile("" : : "w"(v));
    }
  }
}
#else
void read_128(const char* at, const char* end) {
  for (; at < end; at += 8) {
    uint64_t v;
    std::memcpy(&v, at, sizeof v);
    asm volatile("" : : "r"(v));
  }
}
#endif

using ReadLoop = void (*)(const char* at, const char* end);

ReadLoop widest_read_loop() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_512;
  if (__builtin_cpu_supports("avx2")) return read_256;
#endif
  return read_128;
}

int64_t whole_steps(int64_t bytes) { return std::max<int64_t>(bytes / 512, 1) * 512; }

}  // namespace

std::vector<MemoryLevel> memory_levels(int64_t l1d_bytes, int64_t l2_bytes, int64_t l3_bytes) {
  constexpr int64_t kMostDramBytes = int64_t{1} << 30;
  // Well inside each level, and several times the one below: 32 KiB, 512 KiB, 8 MiB of 48 KiB, 1 MiB, 32 MiB.
  return {{"L1", l1d_bytes, whole_steps(l1d_bytes * 2 / 3)},
          {"L2", l2_bytes, whole_steps(l2_bytes / 2)},
          {"L3", l3_bytes, whole_steps(std::max(l3_bytes / 4, 2 * l2_bytes))},
          {"DRAM", std::numeric_limits<int64_t>::max(),
           whole_steps(std::min(std::max(8 * l3_bytes, int64_t{1} << 28), kMostDramBytes))}};
}

const MemoryLevel& level_of(const std::vector<MemoryLevel>& levels, int64_t bytes) {
  return *std::find_if(levels.begin(), levels.end(),
                       [&](const MemoryLevel& l) { return bytes <= l.capacity_bytes; });
}

void read_bytes(const void* data, int64_t bytes) {
  static const ReadLoop loop = widest_read_loop();
  const char* at = static_cast<const char*>(data);
  loop(at, at + bytes);
}

double measure_read_gbps(const MemoryLevel& level, double milliseconds) {
  using Clock = std::chrono::steady_clock;
  const AlignedBuffer memory(level.probe_bytes);
  std::memset(memory.data(), 1, static_cast<size_t>(level.probe_bytes));
  // A window reads at least 4 MB, about 10 us from L1: long against the clock's own 30 ns.
  const int64_t times = std::max<int64_t>(1, (int64_t{4} << 20) / level.probe_bytes);
  read_bytes(memory.data(), level.probe_bytes);
  const auto deadline = Clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  double best = 0;
  do {
    const auto begin = Clock::now();
    for (int64_t i = 0; i < times; ++i) read_bytes(memory.data(), level.probe_bytes);
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    best = std::max(best, static_cast<double>(times * level.probe_bytes) / ns);
  } while (Clock::now() < deadline);
  return best;
}

}  // namespace tuner
