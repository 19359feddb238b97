#include "compiler_core/codegen_npu/out_stage.h"

#include <cmath>

namespace tuner {
namespace {

bool is_cast(const Expr& e, DType to) { return e->kind == ExprKind::kCast && e->dtype == to; }
bool is_load(const Expr& e) { return e->kind == ExprKind::kLoad; }

// float32(value - zero_point)
bool is_bound(const Expr& e, int64_t value, const Expr& zero_point) {
  if (!is_cast(e, DType::kFloat32)) return false;
  const Expr& inner = e->operands[0];
  if (value == 0 && inner->kind == ExprKind::kUnary && inner->unary_op == UnaryOp::kNeg)
    return equal(inner->operands[0], zero_point);
  int64_t found = 0;
  return is_binary(inner, BinaryOp::kSub) && is_const_int(inner->operands[0], &found) && found == value &&
         equal(inner->operands[1], zero_point);
}

// Takes max(x, number) and min(x, number) off the expression.
bool take_bound(Expr& e, BinaryOp op, std::optional<double>& bound) {
  if (!is_binary(e, op) || e->operands[1]->kind != ExprKind::kFloatImm) return false;
  bound = std::nearbyint(e->operands[1]->float_value);
  e = Expr(e->operands[0]);
  return true;
}

bool match_product(const Expr& product, RequantisedSum& found) {
  if (!is_binary(product, BinaryOp::kMul) || !is_cast(product->operands[0], DType::kFloat32)) return false;
  found.scale = product->operands[1];
  found.sum = product->operands[0]->operands[0];
  if (is_binary(found.sum, BinaryOp::kAdd)) {
    const Expr both = found.sum;
    found.sum = both->operands[0];
    found.bias = both->operands[1];
  }
  return is_load(found.scale) && found.scale->dtype == DType::kFloat32 && is_load(found.sum) &&
         found.sum->dtype == DType::kInt32 &&
         (!found.bias.defined() || (is_load(found.bias) && found.bias->dtype == DType::kInt32));
}

// float32(int32(load) - zero), or with both turned around.
bool match_centred(const Expr& e, bool turned, Expr& loaded, int32_t& zero) {
  if (!is_cast(e, DType::kFloat32)) return false;
  Expr whole = e->operands[0];
  int64_t number = 0;
  if (is_binary(whole, BinaryOp::kSub) && is_const_int(whole->operands[turned ? 0 : 1], &number)) {
    whole = Expr(whole->operands[turned ? 1 : 0]);
  } else if (turned) {
    if (whole->kind != ExprKind::kUnary || whole->unary_op != UnaryOp::kNeg) return false;
    whole = Expr(whole->operands[0]);
  }
  if (!is_cast(whole, DType::kInt32) || !is_load(whole->operands[0])) return false;
  loaded = whole->operands[0];
  zero = static_cast<int32_t>(number);
  return true;
}

bool match_float(const Expr& e, float& number) {
  if (e->kind != ExprKind::kFloatImm) return false;
  number = static_cast<float>(e->float_value);
  return true;
}

}  // namespace

std::optional<QuantizedSum> match_quantized_sum(const Expr& value) {
  QuantizedSum found;
  if (!is_cast(value, DType::kInt8) && !is_cast(value, DType::kUInt8)) return std::nullopt;
  const double low = value->dtype == DType::kInt8 ? -128 : 0;
  float bound = 0, zero = 0;
  const Expr below = value->operands[0];
  if (!is_binary(below, BinaryOp::kMin) || !match_float(below->operands[1], bound) || bound != low + 255)
    return std::nullopt;
  const Expr above = below->operands[0];
  if (!is_binary(above, BinaryOp::kAtLeast) || !match_float(above->operands[1], bound) || bound != low)
    return std::nullopt;
  Expr rounded = above->operands[0];
  if (is_binary(rounded, BinaryOp::kAdd) && match_float(rounded->operands[1], zero))
    rounded = Expr(rounded->operands[0]);
  found.zero = static_cast<int32_t>(zero);
  if (rounded->kind != ExprKind::kUnary || rounded->unary_op != UnaryOp::kRound) return std::nullopt;
  const Expr sum = rounded->operands[0];
  if (!is_binary(sum, BinaryOp::kSub)) return std::nullopt;
  const Expr a = sum->operands[0], b = sum->operands[1];
  if (!is_binary(a, BinaryOp::kMul) || !is_binary(b, BinaryOp::kMul) ||
      !match_float(a->operands[1], found.scale_a) || !match_float(b->operands[0], found.scale_b) ||
      !match_centred(a->operands[0], false, found.a, found.zero_a) ||
      !match_centred(b->operands[1], true, found.b, found.zero_b))
    return std::nullopt;
  const bool same = found.a->dtype == value->dtype && found.b->dtype == value->dtype;
  return same ? std::optional(found) : std::nullopt;
}

std::optional<RequantisedSum> match_requantised(const Expr& value) {
  RequantisedSum found;
  if (!is_cast(value, DType::kInt8) && !is_cast(value, DType::kUInt8)) return std::nullopt;
  const Expr whole = value->operands[0];
  if (!is_binary(whole, BinaryOp::kAdd) || !is_cast(whole->operands[0], DType::kInt32) ||
      !is_cast(whole->operands[1], DType::kInt32))
    return std::nullopt;
  const Expr rounded = whole->operands[0]->operands[0], zero = whole->operands[1];
  found.zero_point = zero->operands[0];
  if (!is_load(found.zero_point) || found.zero_point->dtype != value->dtype) return std::nullopt;
  if (rounded->kind != ExprKind::kUnary || rounded->unary_op != UnaryOp::kRound) return std::nullopt;
  const Expr below = rounded->operands[0];
  const int64_t low = value->dtype == DType::kInt8 ? -128 : 0;
  if (!is_binary(below, BinaryOp::kMin) || !is_bound(below->operands[1], low + 255, zero))
    return std::nullopt;
  const Expr above = below->operands[0];
  if (!is_binary(above, BinaryOp::kAtLeast) || !is_bound(above->operands[1], low, zero)) return std::nullopt;
  Expr x = above->operands[0];
  take_bound(x, BinaryOp::kMin, found.most);
  take_bound(x, BinaryOp::kMax, found.least);
  return match_product(x, found) ? std::optional(found) : std::nullopt;
}

}  // namespace tuner
