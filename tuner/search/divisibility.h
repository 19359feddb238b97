// Divisibility: which power of two divides a number, which its size does not tell. Extents, vectors, warps
// and cache lines are mostly powers of two, so 48 and 80 behave alike and unlike 64, which lies between them.
// A model that sees only sizes takes that for roughness.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "templates/space/config_space.h"

namespace tuner {

// log2 of the largest power of two that divides v; 0 below 1.
inline float log2_even_part(int64_t v) {
  return v > 0 ? static_cast<float>(std::countr_zero(static_cast<uint64_t>(v))) : 0;
}
// log2 of v divided by that power of two; 0 for powers of two, and below 1.
inline float log2_odd_part(int64_t v) {
  return v > 0 ? std::log2(static_cast<float>(v >> std::countr_zero(static_cast<uint64_t>(v)))) : 0;
}
// True if divisibility says more than the size: false if all candidates are powers of two.
inline bool divisibility_varies(const KnobInfo& knob) {
  if (knob.kind != KnobKind::kOrdered && knob.kind != KnobKind::kSplit) return false;
  for (const int64_t v : knob.candidates)
    if (log2_odd_part(v) != log2_odd_part(knob.candidates.front())) return true;
  return false;
}

}  // namespace tuner
