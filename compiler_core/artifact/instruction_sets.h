// Instruction sets that a C compiler uses of its own accord where flags such as -march=native allow it, and
// the macros by which it says so. A library of such code names them, and the runtime library asks the CPU
// (compiler_core/runtime/cpu_instructions.h) before it calls the code.
//
// Sets that only an intrinsic uses (AES, SHA, AMX) are not here: a CPU that lacks one of them still runs code
// that was merely allowed to use it.
#pragma once

#include <string_view>

namespace tuner {

struct InstructionSet {
  std::string_view name;   // as GCC names it; AArch64: as LLVM does
  std::string_view macro;  // that the compiler defines
};

// Of the CPUs that this program is for. Those that say most of a CPU come first.
inline constexpr InstructionSet kInstructionSets[] = {
#if defined(__x86_64__)
    {"avx512f", "__AVX512F__"},
    {"avx2", "__AVX2__"},
    {"avx", "__AVX__"},
    {"fma", "__FMA__"},
    {"f16c", "__F16C__"},
    {"bmi", "__BMI__"},
    {"bmi2", "__BMI2__"},
    {"lzcnt", "__LZCNT__"},
    {"movbe", "__MOVBE__"},
    {"popcnt", "__POPCNT__"},
    {"sse3", "__SSE3__"},
    {"ssse3", "__SSSE3__"},
    {"sse4.1", "__SSE4_1__"},
    {"sse4.2", "__SSE4_2__"},
    {"avx512bw", "__AVX512BW__"},
    {"avx512cd", "__AVX512CD__"},
    {"avx512dq", "__AVX512DQ__"},
    {"avx512vl", "__AVX512VL__"},
    {"avx512ifma", "__AVX512IFMA__"},
    {"avx512vbmi", "__AVX512VBMI__"},
    {"avx512vbmi2", "__AVX512VBMI2__"},
    {"avx512vnni", "__AVX512VNNI__"},
    {"avx512bitalg", "__AVX512BITALG__"},
    {"avx512vpopcntdq", "__AVX512VPOPCNTDQ__"},
    {"avx512bf16", "__AVX512BF16__"},
    {"avx512fp16", "__AVX512FP16__"},
    {"avxvnni", "__AVXVNNI__"},
    {"gfni", "__GFNI__"},
    {"fma4", "__FMA4__"},
    {"xop", "__XOP__"},
#elif defined(__aarch64__)
    {"sve", "__ARM_FEATURE_SVE"},
    {"sve2", "__ARM_FEATURE_SVE2"},
    {"bf16", "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC"},
    {"dotprod", "__ARM_FEATURE_DOTPROD"},
    {"fullfp16", "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC"},
    {"i8mm", "__ARM_FEATURE_MATMUL_INT8"},
#endif
};

}  // namespace tuner
