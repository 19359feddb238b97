#include "compiler_core/base/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler_core/base/large_pages.h"
#include "compiler_core/base/status.h"

namespace tuner {
namespace {

struct Brain {
  uint16_t bits;
  Brain() = default;
  explicit Brain(double x)
      : bits(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16)) {}
  explicit operator double() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct Half {
  uint16_t bits;
  Half() = default;
  // Of a number that is exact: a power of two times at most 11 bits.
  explicit Half(double x) {
    int exponent = 0;
    const double size = std::frexp(std::fabs(x), &exponent);  // in [1/2, 1)
    const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
    if (!std::isfinite(x))
      bits = static_cast<uint16_t>(sign | (std::isnan(x) ? 0x7e00 : 0x7c00));
    else if (x != 0 && exponent > -14)
      bits = static_cast<uint16_t>(sign + ((exponent + 13) << 10) + static_cast<int>(std::ldexp(size, 11)));
    else  // 0, and below the normal range: in units of 2^-24
      bits = static_cast<uint16_t>(sign + static_cast<int>(std::ldexp(std::fabs(x), 24)));
  }
  explicit operator double() const { return float16_value(bits); }
};

// Calls f with a null pointer to the type that stores a DType.
template <class F>
void with_stored_type(DType t, const F& f) {
  switch (t) {
    case DType::kBool:
    case DType::kUInt8:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::kInt8:
      return f(static_cast<int8_t*>(nullptr));
    case DType::kInt16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::kUInt16:
      return f(static_cast<uint16_t*>(nullptr));
    case DType::kInt32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::kUInt32:
      return f(static_cast<uint32_t*>(nullptr));
    case DType::kInt64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::kUInt64:
      return f(static_cast<uint64_t*>(nullptr));
    case DType::kFloat16:
      return f(static_cast<Half*>(nullptr));
    case DType::kBFloat16:
      return f(static_cast<Brain*>(nullptr));
    case DType::kFloat32:
      return f(static_cast<float*>(nullptr));
    case DType::kFloat64:
      return f(static_cast<double*>(nullptr));
  }
}

}  // namespace

float rounded_to_bfloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000);
}

// Half a last place above 2^-14 is 2^-11 of the power of two below; under it, 2^-25.
float rounded_to_float16(float x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - 11, -24);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(x), -unit)), unit));
}

double float16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  double size = std::ldexp(fraction, -24);
  if (exponent == 0x1f)
    size = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent != 0)
    size = std::ldexp(0x400 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class Number>
void store_elements(const Number* numbers, int64_t count, DType to, void* out) {
  with_stored_type(to, [&]<class T>(T*) {
    auto* bytes = static_cast<unsigned char*>(out);
    for (int64_t i = 0; i < count; ++i) {
      const T element = static_cast<T>(numbers[i]);
      std::memcpy(bytes + i * static_cast<int64_t>(sizeof(T)), &element, sizeof(T));
    }
  });
}
template void store_elements(const float*, int64_t, DType, void*);
template void store_elements(const double*, int64_t, DType, void*);

std::string element_bytes(const std::vector<float>& numbers, DType to) {
  const auto count = static_cast<int64_t>(numbers.size());
  std::string bytes;
  reserve_on_large_pages(bytes, static_cast<size_t>(count * dtype_bytes(to)));
  bytes.resize(static_cast<size_t>(count * dtype_bytes(to)));
  store_elements(numbers.data(), count, to, bytes.data());
  return bytes;
}

std::vector<double> load_elements(const void* elements, int64_t count, DType from) {
  std::vector<double> numbers;
  reserve_on_large_pages(numbers, static_cast<size_t>(count));
  numbers.resize(static_cast<size_t>(count));
  with_stored_type(from, [&]<class T>(T*) {
    const auto* bytes = static_cast<const unsigned char*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      T element;
      std::memcpy(&element, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
      numbers[static_cast<size_t>(i)] = static_cast<double>(element);
    }
  });
  return numbers;
}

}  // namespace tuner
