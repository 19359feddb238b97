// Converts elements in memory to numbers and back, for inputs made from a seed, reference answers and tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/dtype.h"

namespace tuner {

// Returns the nearest bfloat16, ties to even, as a float. For finite numbers only.
float rounded_to_bfloat16(float x);
// The same of float16, for numbers below 65520 in size.
float rounded_to_float16(float x);
// Returns the number that these bits of float16 are.
double float16_value(uint16_t bits);

// Stores `count` numbers at `out` as elements of type `to`. Every number must be exact in that type
// (rounded_to_bfloat16(), rounded_to_float16(); integers in range), because no rounding is chosen here.
template <class Number>
void store_elements(const Number* numbers, int64_t count, DType to, void* out);
extern template void store_elements(const float*, int64_t, DType, void*);
extern template void store_elements(const double*, int64_t, DType, void*);

// The same, returned as the bytes of a file.
std::string element_bytes(const std::vector<float>& numbers, DType to);

// Reads `count` elements of type `from` as numbers.
std::vector<double> load_elements(const void* elements, int64_t count, DType from);

}  // namespace tuner
