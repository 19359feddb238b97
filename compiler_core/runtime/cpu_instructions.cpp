#include "compiler_core/runtime/cpu_instructions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "compiler_core/runtime/tuner_runtime.h"

namespace tuner {
#if defined(__x86_64__)
namespace {

// Bit `bit` of the register (0 eax, 1 ebx, 2 ecx, 3 edx) that the leaf of cpuid gives.
bool cpuid_bit(unsigned leaf, int which, unsigned bit) {
  unsigned registers[4] = {};
  return __get_cpuid_count(leaf, 0, &registers[0], &registers[1], &registers[2], &registers[3]) != 0 &&
         (registers[which] >> bit & 1U) != 0;
}

}  // namespace

std::optional<bool> cpu_has(std::string_view set) {
  // The system must keep wide registers, which is what the questions for avx and avx512f include.
  static const bool wide = __builtin_cpu_supports("avx512f") != 0;
  // Asked once: in a virtual machine each cpuid costs a microsecond or more.
  static const std::pair<std::string_view, bool> known[] = {
      {"sse3", __builtin_cpu_supports("sse3") != 0},
      {"ssse3", __builtin_cpu_supports("ssse3") != 0},
      {"sse4.1", __builtin_cpu_supports("sse4.1") != 0},
      {"sse4.2", __builtin_cpu_supports("sse4.2") != 0},
      {"popcnt", __builtin_cpu_supports("popcnt") != 0},
      {"lzcnt", cpuid_bit(0x80000001, 2, 5)},
      {"movbe", cpuid_bit(1, 2, 22)},
      {"bmi", __builtin_cpu_supports("bmi") != 0},
      {"bmi2", __builtin_cpu_supports("bmi2") != 0},
      {"avx", __builtin_cpu_supports("avx") != 0},
      {"f16c", cpu_has_f16c()},
      {"avx2", __builtin_cpu_supports("avx2") != 0},
      {"fma", __builtin_cpu_supports("fma") != 0},
      {"fma4", __builtin_cpu_supports("fma4") != 0},
      {"xop", __builtin_cpu_supports("xop") != 0},
      {"gfni", cpuid_bit(7, 2, 8)},
      {"avxvnni", cpu_has_avx_vnni()},
      {"avx512f", wide},
      {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
      {"avx512cd", __builtin_cpu_supports("avx512cd") != 0},
      {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
      {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
      {"avx512ifma", __builtin_cpu_supports("avx512ifma") != 0},
      {"avx512vbmi", __builtin_cpu_supports("avx512vbmi") != 0},
      {"avx512vbmi2", wide && cpuid_bit(7, 2, 6)},
      {"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0},
      {"avx512bitalg", wide && cpuid_bit(7, 2, 12)},
      {"avx512vpopcntdq", wide && cpuid_bit(7, 2, 14)},
      {"avx512bf16", __builtin_cpu_supports("avx512bf16") != 0},
      {"avx512fp16", wide && cpuid_bit(7, 3, 23)},
      {"amx-bf16", (tuner_tiles() & TUNER_TILES_BFLOAT16) != 0},
      {"amx-int8", (tuner_tiles() & TUNER_TILES_INT8) != 0},
      {"amx-fp16", (tuner_tiles() & TUNER_TILES_FLOAT16) != 0},
  };
  const auto* const found = std::ranges::find(known, set, &std::pair<std::string_view, bool>::first);
  return found != std::end(known) ? std::optional(found->second) : std::nullopt;
}
#elif defined(__aarch64__)
std::optional<bool> cpu_has(std::string_view set) {
  constexpr std::pair<std::string_view, int32_t> kUnits[] = {
      {"bf16", TUNER_UNITS_BF16}, {"dotprod", TUNER_UNITS_DOTPROD}, {"fullfp16", TUNER_UNITS_FULLFP16},
      {"i8mm", TUNER_UNITS_I8MM}, {"sve", TUNER_UNITS_SVE},         {"sve2", TUNER_UNITS_SVE2}};
  const auto* const found = std::ranges::find(kUnits, set, &std::pair<std::string_view, int32_t>::first);
  return found != std::end(kUnits) ? std::optional((tuner_units() & found->second) != 0) : std::nullopt;
}
#else
std::optional<bool> cpu_has(std::string_view) { return std::nullopt; }
#endif

}  // namespace tuner
