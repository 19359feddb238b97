// Where lanes of a warp load in shared memory, as kernels of ours do, and what the model of times says of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tuner {

// Places of 16 bytes each.
struct LanePattern {
  std::string name;
  std::array<uint32_t, 32> bytes{};  // of each lane, from the start
  int passes = 0;                    // by the model: a clock each
};
std::vector<LanePattern> lane_patterns();

}  // namespace tuner
