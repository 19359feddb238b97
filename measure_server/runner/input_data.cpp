#include "measure_server/runner/input_data.h"

#include <cstddef>

namespace tuner {
namespace {

uint64_t splitmix64(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<float> random_values(uint64_t seed, int argument, int64_t count) {
  uint64_t state = seed * 0x2545f4914f6cdd1dull + static_cast<uint64_t>(argument) + 1;
  std::vector<float> values(static_cast<size_t>(count));
  // 24 random bits over 2^23, less 1: every value is exact in float32.
  for (float& v : values) v = static_cast<float>(splitmix64(state) >> 40) / 8388608.0f - 1.0f;
  return values;
}

}  // namespace tuner
