#include "tests/bench/gpu/lane_patterns.h"

#include <functional>
#include <utility>

namespace tuner {
namespace {

LanePattern pattern(std::string name, int passes, const std::function<uint32_t(uint32_t lane)>& place) {
  LanePattern made{.name = std::move(name), .passes = passes};
  for (uint32_t lane = 0; lane < 32; ++lane) made.bytes[lane] = 16 * place(lane);
  return made;
}

}  // namespace

std::vector<LanePattern> lane_patterns() {
  return {
      pattern("one after the other", 4, [](uint32_t lane) { return lane; }),
      pattern("all at one place", 2, [](uint32_t) { return 0; }),
      pattern("4 places, 8 lanes side by side at each", 2, [](uint32_t lane) { return lane / 8; }),
      pattern("8 places, every eighth lane at the same", 4, [](uint32_t lane) { return lane % 8; }),
      pattern("16 places, lanes in pairs", 2, [](uint32_t lane) { return lane / 2; }),
      pattern("16 places, lanes two apart at one", 2,
              [](uint32_t lane) { return (lane & 1) | (lane >> 2) << 1; }),
      pattern("16 places, lanes four apart at one", 4,
              [](uint32_t lane) { return (lane & 3) | (lane >> 3) << 2; }),
      pattern("16 places, lanes eight apart at one", 4,
              [](uint32_t lane) { return (lane & 7) | (lane >> 4) << 3; }),
      pattern("16 places, lanes sixteen apart at one", 4, [](uint32_t lane) { return lane & 15; }),
      pattern("2 places, every other lane", 2, [](uint32_t lane) { return lane & 1; }),
      pattern("4 places, every fourth lane", 4, [](uint32_t lane) { return lane & 3; }),
      pattern("8 places, 4 lanes side by side at each", 2, [](uint32_t lane) { return lane >> 2; }),
      pattern("8 places by bits 0, 2 and 4 of the lane", 2,
              [](uint32_t lane) { return (lane & 1) | (lane >> 2 & 1) << 1 | (lane >> 4 & 1) << 2; }),
      pattern("4 places by bits 1 and 3 of the lane", 2,
              [](uint32_t lane) { return (lane >> 1 & 1) | (lane >> 3 & 1) << 1; }),
      pattern("32 bytes apart", 8, [](uint32_t lane) { return 2 * lane; }),
      pattern("64 bytes apart", 16, [](uint32_t lane) { return 4 * lane; }),
      pattern("128 bytes apart", 32, [](uint32_t lane) { return 8 * lane; }),
      pattern("144 bytes apart", 4, [](uint32_t lane) { return 9 * lane; }),
      pattern("rows of 128 bytes, columns swizzled", 4,
              [](uint32_t lane) { return 8 * (lane % 8) + (lane / 8 ^ lane % 8); }),
  };
}

}  // namespace tuner
