// Numbers of integer types, each held as the 64 bits of an int64: of uint64 the upper half is negative there.
#pragma once

#include <cstdint>
#include <utility>

#include "compiler_core/base/dtype.h"

namespace tuner {

// Returns x as the type holds it: its lower bits, as machines have it; of bool, whether it is not 0.
constexpr int64_t wrapped_to(DType type, int64_t x) {
  switch (type) {
    case DType::kBool:
      return x != 0 ? 1 : 0;
    case DType::kInt8:
      return static_cast<int8_t>(x);
    case DType::kUInt8:
      return static_cast<uint8_t>(x);
    case DType::kInt16:
      return static_cast<int16_t>(x);
    case DType::kUInt16:
      return static_cast<uint16_t>(x);
    case DType::kInt32:
      return static_cast<int32_t>(x);
    case DType::kUInt32:
      return static_cast<uint32_t>(x);
    default:
      return x;
  }
}

// Least and greatest number of an integer type, or of bool. The greatest uint64 is -1 as an int64.
constexpr std::pair<int64_t, int64_t> range_of(DType type) {
  if (type == DType::kBool) return {0, 1};
  const int bits = static_cast<int>(8 * dtype_bytes(type));
  if (is_unsigned(type)) return {0, bits == 64 ? -1 : (int64_t{1} << bits) - 1};
  const auto greatest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  return {-greatest - 1, greatest};
}

// The nearest double of a number held so.
constexpr double number_of(DType type, int64_t x) {
  return type == DType::kUInt64 ? static_cast<double>(static_cast<uint64_t>(x)) : static_cast<double>(x);
}
// The nearest number of an integer type, held so; of a NaN 0.
constexpr int64_t nearest_of(DType type, double x) {
  if (!(x == x)) return 0;
  if (type == DType::kBool) return x != 0 ? 1 : 0;
  const auto [least, greatest] = range_of(type);
  if (x <= static_cast<double>(least)) return least;
  if (type == DType::kUInt64) return x >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(x));
  return x >= static_cast<double>(greatest) ? greatest : static_cast<int64_t>(x);
}

// True if a < b as numbers of the type.
constexpr bool is_less(DType type, int64_t a, int64_t b) {
  return type == DType::kUInt64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

}  // namespace tuner
