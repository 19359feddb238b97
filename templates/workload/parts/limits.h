// How large a workload may be.
#pragma once

#include <cstdint>

namespace tuner {

// Largest extent of a shape, and largest count of anything else in a workload.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;
// A tensor takes less.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

}  // namespace tuner
