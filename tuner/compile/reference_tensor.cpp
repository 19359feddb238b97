#include "tuner/compile/reference_tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/integer_types.h"

namespace tuner {
namespace {

int64_t bytes_of(const graph::TensorType& type) {
  return type.elements() *
         (is_float(type.dtype) ? static_cast<int64_t>(sizeof(double)) : dtype_bytes(type.dtype));
}

template <class Int>
void put(void* data, int64_t element, double number) {
  // The greatest int64 is 2^63 as a double, the greatest uint64 2^64.
  constexpr DType kWidest = std::is_same_v<Int, uint64_t> ? DType::kUInt64 : DType::kInt64;
  static_cast<Int*>(data)[element] = static_cast<Int>(nearest_of(kWidest, number));
}

// A number from -1 to 1 for each element.
double noise(uint64_t seed, uint64_t element) {
  uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15U + element * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return static_cast<double>(static_cast<int64_t>(z)) * 0x1p-63;
}

}  // namespace

double largest_of(DType dtype) {
  if (dtype == DType::kFloat16) return 65504;
  if (dtype == DType::kBFloat16) return 0x1.fep127;
  return dtype == DType::kFloat32 ? static_cast<double>(std::numeric_limits<float>::max())
                                  : std::numeric_limits<double>::max();
}
double least_normal_of(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-14;
  return dtype == DType::kFloat64 ? std::numeric_limits<double>::min() : 0x1p-126;
}
double unit_of(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-11;
  if (dtype == DType::kBFloat16) return 0x1p-8;
  return dtype == DType::kFloat64 ? 0x1p-53 : 0x1p-24;
}

std::string index_text(int64_t element, const std::vector<int64_t>& shape) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    text = str(element % shape[d], text.empty() ? "" : ", ", text);
    element /= shape[d];
  }
  return text;
}

ReferenceTensor::ReferenceTensor(const graph::TensorType& type)
    : type_(type), memory_(bytes_of(type), AlignedBuffer::Content::kAny) {}

ReferenceTensor ReferenceTensor::of(const graph::TensorType& type, const void* elements) {
  ReferenceTensor made(type);
  const int64_t count = type.elements();
  if (!is_float(type.dtype)) {
    std::memcpy(made.data(), elements, static_cast<size_t>(type.bytes()));
    return made;
  }
  if (type.dtype == DType::kFloat32) {
    for (int64_t k = 0; k < count; ++k)
      made.doubles()[k] = static_cast<double>(static_cast<const float*>(elements)[k]);
    return made;
  }
  constexpr int64_t kPiece = 1 << 16;  // as vectors of doubles, a few at a time
  for (int64_t at = 0; at < count; at += kPiece) {
    const int64_t n = std::min(kPiece, count - at);
    const std::vector<double> numbers =
        load_elements(static_cast<const char*>(elements) + at * dtype_bytes(type.dtype), n, type.dtype);
    std::memcpy(made.doubles() + at, numbers.data(), static_cast<size_t>(n) * sizeof(double));
  }
  return made;
}

double ReferenceTensor::at(int64_t element) const {
  if (is_float(type_.dtype)) return doubles()[element];
  switch (type_.dtype) {
    case DType::kInt8:
      return memory_.as<int8_t>()[element];
    case DType::kInt16:
      return memory_.as<int16_t>()[element];
    case DType::kUInt16:
      return memory_.as<uint16_t>()[element];
    case DType::kInt32:
      return memory_.as<int32_t>()[element];
    case DType::kUInt32:
      return memory_.as<uint32_t>()[element];
    case DType::kInt64:
      return static_cast<double>(memory_.as<int64_t>()[element]);
    case DType::kUInt64:
      return static_cast<double>(memory_.as<uint64_t>()[element]);
    default:  // uint8, bool
      return memory_.as<uint8_t>()[element];
  }
}

void ReferenceTensor::set(int64_t element, double number) const {
  if (is_float(type_.dtype)) {
    doubles()[element] = number;
    return;
  }
  switch (type_.dtype) {
    case DType::kInt8:
      return put<int8_t>(data(), element, number);
    case DType::kInt16:
      return put<int16_t>(data(), element, number);
    case DType::kUInt16:
      return put<uint16_t>(data(), element, number);
    case DType::kInt32:
      return put<int32_t>(data(), element, number);
    case DType::kUInt32:
      return put<uint32_t>(data(), element, number);
    case DType::kInt64:
      return put<int64_t>(data(), element, number);
    case DType::kUInt64:
      return put<uint64_t>(data(), element, number);
    case DType::kBool:
      return put<uint8_t>(data(), element, number != 0 ? 1 : 0);
    default:
      return put<uint8_t>(data(), element, number);
  }
}

void ReferenceTensor::limit_to_type() const {
  if (type_.dtype == DType::kFloat64) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Half a step beyond the largest number rounds to infinity, half of the least number to 0.
  const double most = largest_of(type_.dtype) * (1 + unit_of(type_.dtype) / 2);
  const double least = least_normal_of(type_.dtype) * unit_of(type_.dtype);
  double* const numbers = doubles();
  for (int64_t k = 0, n = elements(); k < n; ++k) {
    const double size = std::fabs(numbers[k]);
    if (size > most) numbers[k] = std::copysign(kInfinity, numbers[k]);
    if (size < least) numbers[k] = std::copysign(0.0, numbers[k]);
  }
}

ReferenceTensor ReferenceTensor::disturbed(double relative, uint64_t seed) const {
  ReferenceTensor made(type_);
  if (!is_float(type_.dtype)) {
    std::memcpy(made.data(), data(), static_cast<size_t>(memory_.bytes()));
    return made;
  }
  constexpr double kMostExact = 256;
  const double absolute = least_normal_of(type_.dtype);
  for (int64_t k = 0, n = elements(); k < n; ++k) {
    const double r = noise(seed, static_cast<uint64_t>(k)), x = doubles()[k];
    // Small whole numbers are what they are in every type: counts, and the 1 that a mask is taken from.
    const bool is_exact = !std::isfinite(x) || (std::fabs(x) <= kMostExact && x == std::trunc(x));
    made.doubles()[k] = is_exact ? x : x * (1 + relative * r) + absolute * relative * r;
  }
  return made;
}

}  // namespace tuner
