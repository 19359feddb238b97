// What the vector unit computes of a whole row, as expressions: templates write them, and the lowering knows
// them by writing them again.
//
//   softmax   e = table[most - x];  out = T(clamp(round(float32(e) * (scale / float32(total of e))) + zero))
//   norm      mean = float32(sum) / n;  variance = float32(n * squares - sum * sum) / (n * n)
//             out = T(clamp(round((x - mean) * (1 / sqrt(variance + epsilon)) * gain + offset) + zero))
//
// x is int8 or uint8, as T is; most is int32, total, sum and squares are int64, per row; table is int32[256],
// gain and offset are float32 per column.
#pragma once

#include <cstdint>

#include "compiler_core/ir/expr.h"

namespace tuner::npu_rows {

// Of x, for a maximum; for sums.
Expr whole(const Expr& x);
Expr summand(const Expr& x);
Expr square(const Expr& x);
Expr exponential(const Buffer& table, const Expr& most, const Expr& x);

Expr softmax(DType dtype, const Buffer& table, const Expr& most, const Expr& total, const Expr& x,
             float scale, int64_t zero);

struct NormOperands {
  Expr x, sum, squares, gain, offset;
  int64_t columns = 0;
  float epsilon = 0;
  int64_t zero = 0;
};
Expr norm(DType dtype, const NormOperands& o);

}  // namespace tuner::npu_rows
