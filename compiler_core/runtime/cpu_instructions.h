// Instruction sets of this CPU, by the names that bundles have.
#pragma once

#include <optional>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tuner {

// True if this CPU has the instruction set, and the system lets a program use it. Nothing: the name is not
// known here. Names are those of GCC; AArch64: of LLVM.
std::optional<bool> cpu_has(std::string_view set);

#if defined(__x86_64__)
// Not every compiler's __builtin_cpu_supports() has a name for these two:
// Conversions of float16, and dot products of bytes in vectors of 256 bits. The system must keep such
// registers, which is what "avx" and "avx2" ask about.
inline bool cpu_has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx") != 0 && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1U) != 0;
}
inline bool cpu_has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") != 0 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a >> 4 & 1U) != 0;
}
#endif

}  // namespace tuner
