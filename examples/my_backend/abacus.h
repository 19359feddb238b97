// The target family of the device "Abacus": "abacus -lanes=8".
#pragma once

#include "compiler_core/target.h"

namespace abacus {

// The kind of its binaries, which are programs as text.
inline constexpr char kKind[] = "abacus";

const tuner::TargetFamily& family();

inline bool is_abacus(const tuner::Target& target) { return target.family == &family(); }
inline int64_t lanes_of(const tuner::Target& target) { return target.vector_bits / 32; }

}  // namespace abacus
