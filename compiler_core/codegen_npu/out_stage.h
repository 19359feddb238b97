// The way from sums to bytes, as workloads write it and the device's out stage does it:
//
//   out = T(clamp(round(act(float32(sum + bias) * scale))) + zero_point)      T is int8 or uint8
#pragma once

#include <optional>

#include "compiler_core/ir/expr.h"

namespace tuner {

struct RequantisedSum {
  Expr sum, scale, zero_point;  // loads
  Expr bias;                    // a load; undefined: none
  // Of the rounded number, before the zero point is added; what the type holds is the bound besides.
  std::optional<double> least, most;
};

// Nothing where it is another expression.
std::optional<RequantisedSum> match_requantised(const Expr& value);

// A sum of two with a scale each, as the vector unit's `add` does it:
//
//   out = T(clamp(round((a - zero_a) * scale_a - scale_b * (zero_b - b)) + zero))      a, b, out: T
struct QuantizedSum {
  Expr a, b;  // loads
  int32_t zero_a = 0, zero_b = 0, zero = 0;
  float scale_a = 0, scale_b = 0;
};
std::optional<QuantizedSum> match_quantized_sum(const Expr& value);

}  // namespace tuner
