// How large a workload may be.
#pragma once

#include <cstdint>

namespace tuner {

// Largest extent of a shape, and largest count of anything else in a workload.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

}  // namespace tuner
