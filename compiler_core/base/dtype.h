// DType: element types of buffers and expressions. Templates use float32; matrix products and convolutions
// also bfloat16 (summed in float32) and int8 (summed in int32), matrix products also float16 (summed in
// float32). float64 is for reference answers, int64 for indices, bool for conditions. The other integers are
// for the operators of models.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

namespace tuner {

enum class DType : uint8_t {
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64
};

constexpr int64_t dtype_bytes(DType t) {
  switch (t) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8:
      return 1;
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kInt32:
    case DType::kUInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kUInt64:
    case DType::kFloat64:
      return 8;
  }
  return 0;
}
constexpr bool is_float(DType t) { return t >= DType::kFloat16; }
// True of uint8, uint16, uint32, uint64; not of bool.
constexpr bool is_unsigned(DType t) {
  return t == DType::kUInt8 || t == DType::kUInt16 || t == DType::kUInt32 || t == DType::kUInt64;
}

// Returns "float32", the spelling in JSON, keys, manifests and messages.
constexpr std::string_view dtype_name(DType t) {
  constexpr std::string_view kNames[] = {"bool",     "int8",    "uint8",  "int16",  "uint16",
                                         "int32",    "uint32",  "int64",  "uint64", "float16",
                                         "bfloat16", "float32", "float64"};
  return kNames[static_cast<int>(t)];
}
inline std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::kFloat64); ++i)
    if (dtype_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return std::nullopt;
}
inline std::ostream& operator<<(std::ostream& out, DType t) { return out << dtype_name(t); }

}  // namespace tuner
