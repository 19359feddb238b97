// Random elements of any type, for arguments of kernels under test.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/ir/expr.h"

namespace tuner::testing {

// From [-1, 1) for floats (bfloat16, float16: one of its numbers), from all they hold for integers of 8 bits,
// and small enough to be added to sums of those for int32; places in tensors, and some beyond them, for
// int64.
template <class Random>
double random_number(Random& random, DType dtype) {
  const auto between = [&](int64_t low, int64_t high) {
    return static_cast<double>(std::uniform_int_distribution<int64_t>(low, high)(random));
  };
  if (dtype == DType::kUInt8) return between(0, 255);
  if (dtype == DType::kInt8) return between(-128, 127);
  if (dtype == DType::kInt32) return between(-1'000'000, 1'000'000);
  if (dtype == DType::kInt64) return between(-32, 223);
  if (dtype == DType::kInt16) return between(-32768, 32767);
  if (is_unsigned(dtype)) return between(0, 65535);
  if (dtype == DType::kBool) return between(0, 1);
  const float x = std::uniform_real_distribution<float>(-1, 1)(random);
  if (dtype == DType::kFloat16) return rounded_to_float16(x);
  return dtype == DType::kBFloat16 ? rounded_to_bfloat16(x) : x;
}

// What elements of an argument are multiplied by: as templates/workload/tolerance.h says, the scales of a
// product that is requantised are small, so that its results are neither all 0 nor all saturated.
inline double drawn_factor(const std::vector<Buffer>& args, const Buffer& b) {
  const bool requantises = std::ranges::any_of(args, [](const Buffer& a) { return a->name == "zero_point"; });
  return requantises && b->name == "scale" ? 0x1p-12 : 1;
}

}  // namespace tuner::testing
