// How this thread rounds, and whether it keeps denormal numbers: what a function must leave as it found it.
#pragma once

#include <cstdint>

namespace tuner {

// Control bits only, not those that tell what happened. 0 on processors that are not known here.
inline uint64_t float_mode() {
#if defined(__x86_64__)
  constexpr uint32_t kWhatHappened = 0x3f;
  uint16_t old_unit = 0;
  asm volatile("fnstcw %0" : "=m"(old_unit));
  return uint64_t{__builtin_ia32_stmxcsr() & ~kWhatHappened} << 16 | old_unit;
#elif defined(__aarch64__)
  uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

}  // namespace tuner
