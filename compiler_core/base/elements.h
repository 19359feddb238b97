// Elements of arrays as they lie in memory, to and from numbers: inputs made from a seed, reference answers,
// tests. float16 is not among them yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/dtype.h"

namespace tuner {

// The nearest bfloat16, ties to even, as a float. For finite numbers.
float rounded_to_bfloat16(float x);

// `count` numbers stored as elements of type `to` at `out`. Every number must be one of that type
// (rounded_to_bfloat16; integers in range): no rounding is chosen here.
template <class Number>
void store_elements(const Number* numbers, int64_t count, DType to, void* out);
extern template void store_elements(const float*, int64_t, DType, void*);
extern template void store_elements(const double*, int64_t, DType, void*);

// The same, as the bytes of a file.
std::string element_bytes(const std::vector<float>& numbers, DType to);

std::vector<double> load_elements(const void* elements, int64_t count, DType from);

}  // namespace tuner
