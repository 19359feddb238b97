// MachineTraits: what a target machine offers, as far as it decides which IR is best. Private to codegen.
#pragma once

#include <string>

namespace tuner::codegen {

struct MachineTraits {
  bool has_fma = false;
  bool has_bf16_dot = false;        // two products of bfloat16 added to a float: vdpbf16ps
  bool has_byte_dot = false;        // four products of uint8 and int8 added to an int32: vpdpbusd
  bool has_float16 = false;         // float16 to float32 and back: vcvtph2ps
  bool has_scale = false;           // x * 2^n in one instruction: vscalefps; with it vfixupimmps
  bool has_nearest_int = false;     // the nearest int32 of a float32, ties to even: cvtps2dq
  bool has_saturation = false;      // int32 as bytes, saturated: vpmovusdb
  bool has_byte_packs = false;      // vectors of 512 bits to elements half as wide, saturated: vpackssdw
  bool has_byte_permute = false;    // 64 bytes in any order: vpermb
  bool has_scatter = false;         // gathers and scatters of elements under a mask
  bool has_pair_sums = false;       // two products of 16 bits as one sum of 32: vpmaddwd
  bool has_neon = false;            // vectors of AArch64
  bool has_neon_dot = false;        // four products of bytes, both signed or both not: sdot, udot
  bool has_neon_mixed_dot = false;  // one side signed, the other not: usdot
  bool has_neon_bf16_dot = false;   // two products of bfloat16 added to a float: bfdot
  std::string cpu, features;        // of LLVM
  int vector_bits = 128;
};

}  // namespace tuner::codegen
