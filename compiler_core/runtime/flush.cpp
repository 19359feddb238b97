#include "compiler_core/runtime/flush.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tuner {
namespace {

// Each loop ends with a fence: what follows neither starts early nor meets a line on its way out.
#if defined(__x86_64__)
constexpr int64_t kLineBytes = 64;  // of every x86-64 so far

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 23)) != 0;
}

// Lines leave side by side; clflush sends them one after the other.
__attribute__((target("clflushopt"))) void flush_unordered(const LineRange& lines) {
  for (uintptr_t at = lines.first; at < lines.end; at += kLineBytes)
    _mm_clflushopt(reinterpret_cast<void*>(at));
}
void flush_ordered(const LineRange& lines) {
  for (uintptr_t at = lines.first; at < lines.end; at += kLineBytes)
    _mm_clflush(reinterpret_cast<const void*>(at));
}

int64_t line_bytes() { return kLineBytes; }
void flush(const LineRange& lines) {
  static const bool unordered = has_clflushopt();
  _mm_mfence();  // stores before this one are in the lines that leave
  unordered ? flush_unordered(lines) : flush_ordered(lines);
  _mm_mfence();
}
#elif defined(__aarch64__)
// The smallest data line of all caches: bits 19..16 say how many words, as a power of two.
int64_t line_bytes() {
  uint64_t cache_type = 0;
  asm volatile("mrs %0, ctr_el0" : "=r"(cache_type));
  return int64_t{4} << ((cache_type >> 16) & 15);
}
void flush(const LineRange& lines) {
  const auto step = static_cast<uintptr_t>(line_bytes());
  for (uintptr_t at = lines.first; at < lines.end; at += step)
    asm volatile("dc civac, %0" : : "r"(at) : "memory");
  asm volatile("dsb sy\n\tisb" : : : "memory");
}
#else
#error "flush_lines: name this architecture's instruction here"
#endif

}  // namespace

LineRange lines_of(uintptr_t data, int64_t bytes, int64_t line_bytes) {
  if (bytes <= 0) return {data, data};
  return {data & ~static_cast<uintptr_t>(line_bytes - 1), data + static_cast<uintptr_t>(bytes)};
}

void flush_lines(const void* data, int64_t bytes) {
  if (bytes <= 0) return;
  flush(lines_of(reinterpret_cast<uintptr_t>(data), bytes, line_bytes()));
}

}  // namespace tuner
