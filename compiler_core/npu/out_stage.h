// How numbers become int8: rounded to the nearest, of two the even one, and clamped.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "compiler_core/npu/values.h"

namespace tuner::npu {

// A value that is no number counts as 0.
inline int8_t to_int8(float value, int32_t zero, int32_t low, int32_t high) {
  constexpr float kFar = 1 << 20;
  const float rounded = std::isnan(value) ? 0.0f : std::nearbyint(std::clamp(value, -kFar, kFar));
  return static_cast<int8_t>(std::clamp(static_cast<int32_t>(rounded) + zero, low, high));
}

inline int8_t requantized(int32_t sum, const OutStage& out, int64_t channel) {
  const auto biased =
      static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(out.bias[channel]));
  return to_int8(static_cast<float>(biased) * out.scale[channel], out.zero, out.low, out.high);
}

}  // namespace tuner::npu
