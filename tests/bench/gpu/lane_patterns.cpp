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
      pattern("all at one place", 1, [](uint32_t) { return 0; }),
      pattern("4 places, 8 lanes side by side at each", 4, [](uint32_t lane) { return lane / 8; }),
      pattern("8 places, every eighth lane at the same", 1, [](uint32_t lane) { return lane % 8; }),
      pattern("16 places, lanes in pairs", 4, [](uint32_t lane) { return lane / 2; }),
      pattern("32 bytes apart", 8, [](uint32_t lane) { return 2 * lane; }),
      pattern("64 bytes apart", 16, [](uint32_t lane) { return 4 * lane; }),
      pattern("128 bytes apart", 32, [](uint32_t lane) { return 8 * lane; }),
      pattern("144 bytes apart", 4, [](uint32_t lane) { return 9 * lane; }),
      pattern("rows of 128 bytes, columns swizzled", 4,
              [](uint32_t lane) { return 8 * (lane % 8) + (lane / 8 ^ lane % 8); }),
  };
}

}  // namespace tuner
