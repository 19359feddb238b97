#include "compiler_core/codegen_npu/row_math.h"

#include "compiler_core/base/integer_types.h"

namespace tuner::npu_rows {
namespace {

Expr real(const Expr& e) { return cast(DType::kFloat32, e); }
Expr wide(int64_t value) { return int_imm(value, DType::kInt64); }

Expr finished_byte(DType dtype, const Expr& value, int64_t zero) {
  const auto [least, most] = range_of(dtype);
  Expr moved = unary(UnaryOp::kRound, value);
  if (zero != 0) moved = moved + float_imm(static_cast<double>(zero));
  return cast(dtype, min(at_least(moved, float_imm(static_cast<double>(least))),
                         float_imm(static_cast<double>(most))));
}

}  // namespace

Expr whole(const Expr& x) { return cast(DType::kInt32, x); }
Expr summand(const Expr& x) { return cast(DType::kInt64, x); }
Expr square(const Expr& x) { return summand(x) * summand(x); }
Expr exponential(const Buffer& table, const Expr& most, const Expr& x) {
  return load(table, {cast(DType::kInt64, most - whole(x))});
}

Expr softmax(DType dtype, const Buffer& table, const Expr& most, const Expr& total, const Expr& x,
             float scale, int64_t zero) {
  return finished_byte(dtype, real(exponential(table, most, x)) * (float_imm(double{scale}) / real(total)),
                       zero);
}

Expr norm(DType dtype, const NormOperands& o) {
  const Expr n = float_imm(static_cast<double>(o.columns)),
             n2 = float_imm(static_cast<double>(o.columns * o.columns));
  const Expr variance = real(o.squares * wide(o.columns) - o.sum * o.sum) / n2;
  const Expr factor = float_imm(1) / unary(UnaryOp::kSqrt, variance + float_imm(double{o.epsilon}));
  const Expr centred = real(whole(o.x)) - real(o.sum) / n;
  return finished_byte(dtype, centred * factor * o.gain + o.offset, o.zero);
}

}  // namespace tuner::npu_rows
