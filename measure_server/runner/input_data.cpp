#include "measure_server/runner/input_data.h"

#include <cstddef>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/large_pages.h"
#include "compiler_core/base/random.h"

namespace tuner {
namespace {

float number_of(uint64_t random, DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return static_cast<float>(random >> 56);
    case DType::kInt8:
      return static_cast<float>(random >> 56) - 128;
    case DType::kInt32:
      return static_cast<float>(random >> 43) - 0x1p20f;
    case DType::kInt64:  // places in tensors of usual sizes, and some beyond them
      return static_cast<float>(random >> 56) - 32;
    case DType::kInt16:
      return static_cast<float>(random >> 48) - 0x1p15f;
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return static_cast<float>(random >> 48);
    case DType::kBool:
      return static_cast<float>(random >> 63);
    default:
      break;
  }
  // 24 random bits over 2^23, less 1: every value is exact in float32.
  const float x = static_cast<float>(random >> 40) / 8388608.0f - 1.0f;
  if (dtype == DType::kFloat16) return rounded_to_float16(x);
  return dtype == DType::kBFloat16 ? rounded_to_bfloat16(x) : x;
}

}  // namespace

std::vector<float> random_values(uint64_t seed, int argument, int64_t count, DType dtype) {
  uint64_t state = seed * 0x2545f4914f6cdd1dull + static_cast<uint64_t>(argument) + 1;
  std::vector<float> values;
  reserve_on_large_pages(values, static_cast<size_t>(count));
  values.resize(static_cast<size_t>(count));
  for (float& v : values) v = number_of(next_random(state), dtype);
  return values;
}

}  // namespace tuner
