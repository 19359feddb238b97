#include "templates/space/int_expr.h"

#include <algorithm>
#include <initializer_list>

#include "compiler_core/base/int_math.h"

namespace tuner {
namespace {

int64_t saturate(__int128 v) { return static_cast<int64_t>(std::clamp<__int128>(v, INT64_MIN, INT64_MAX)); }

int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return saturate(-static_cast<__int128>(a));
  return floor_quotient(a, b);
}

int64_t modulo(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : floor_remainder(a, b); }

int64_t power(int64_t a, int64_t b) {
  if (b < 0) return 0;
  if (a >= -1 && a <= 1) return b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a;
  __int128 product = 1;
  for (int64_t i = 0; i < b && product == saturate(product); ++i) product *= a;
  return saturate(product);
}

IntRange truth(bool can_be_false, bool can_be_true) { return {can_be_false ? 0 : 1, can_be_true ? 1 : 0}; }

IntRange corners(IntOp op, IntRange a, IntRange b) {
  const std::initializer_list<int64_t> v = {apply(op, a.lo, b.lo), apply(op, a.lo, b.hi),
                                            apply(op, a.hi, b.lo), apply(op, a.hi, b.hi)};
  return {std::min(v), std::max(v)};
}

}  // namespace

int64_t apply(IntOp op, int64_t a, int64_t b) {
  switch (op) {
    case IntOp::kAdd:
      return saturate(static_cast<__int128>(a) + b);
    case IntOp::kSub:
      return saturate(static_cast<__int128>(a) - b);
    case IntOp::kMul:
      return saturate(static_cast<__int128>(a) * b);
    case IntOp::kDiv:
      return quotient(a, b);
    case IntOp::kMod:
      return modulo(a, b);
    case IntOp::kPow:
      return power(a, b);
    case IntOp::kMin:
      return std::min(a, b);
    case IntOp::kMax:
      return std::max(a, b);
    case IntOp::kLt:
      return a < b;
    case IntOp::kLe:
      return a <= b;
    case IntOp::kEq:
      return a == b;
    case IntOp::kNe:
      return a != b;
    case IntOp::kAnd:
      return a != 0 && b != 0;
    case IntOp::kOr:
      return a != 0 || b != 0;
    case IntOp::kConst:
    case IntOp::kKnob:
      break;
  }
  CHECK(false) << "a leaf has no operands";
  return 0;
}

IntRange apply(IntOp op, IntRange a, IntRange b) {
  if (a.is_single() && b.is_single()) {
    const int64_t v = apply(op, a.lo, b.lo);
    return {v, v};
  }
  const auto has_zero = [](IntRange r) { return r.lo <= 0 && r.hi >= 0; };
  const auto is_zero = [](IntRange r) { return r.lo == 0 && r.hi == 0; };
  switch (op) {
    case IntOp::kAdd:
    case IntOp::kMin:
    case IntOp::kMax:
      return {apply(op, a.lo, b.lo), apply(op, a.hi, b.hi)};
    case IntOp::kSub:
      return {apply(op, a.lo, b.hi), apply(op, a.hi, b.lo)};
    case IntOp::kMul:
      return corners(op, a, b);
    case IntOp::kDiv:
      if (!has_zero(b)) return corners(op, a, b);
      // |a / b| <= |a| for integers, and x / 0 is 0.
      return {std::min({a.lo, apply(IntOp::kSub, 0, a.hi), int64_t{0}}),
              std::max({a.hi, apply(IntOp::kSub, 0, a.lo), int64_t{0}})};
    case IntOp::kMod:
      if (b.lo > 0 && a.lo >= 0) return a.hi < b.lo ? a : IntRange{0, std::min(a.hi, b.hi - 1)};
      return {std::min<int64_t>(b.lo, 0), std::max<int64_t>(b.hi, 0)};
    case IntOp::kPow: {
      if (a.lo >= 1 && b.lo >= 0) return corners(op, a, b);
      // No power is larger than that of the largest number; of 0 it may be 0 or 1, of a negative one of
      // either sign.
      const int64_t size = std::max(a.hi, apply(IntOp::kSub, 0, a.lo));
      const int64_t most = std::max<int64_t>(1, apply(op, size, b.hi));
      return {a.lo >= 0 ? 0 : apply(IntOp::kSub, -1, most), most};
    }
    case IntOp::kLt:
      return truth(a.hi >= b.lo, a.lo < b.hi);
    case IntOp::kLe:
      return truth(a.hi > b.lo, a.lo <= b.hi);
    case IntOp::kEq:
      return truth(true, a.lo <= b.hi && b.lo <= a.hi);
    case IntOp::kNe:
      return truth(a.lo <= b.hi && b.lo <= a.hi, true);
    case IntOp::kAnd:
      return truth(has_zero(a) || has_zero(b), !is_zero(a) && !is_zero(b));
    case IntOp::kOr:
      return truth(has_zero(a) && has_zero(b), !is_zero(a) || !is_zero(b));
    case IntOp::kConst:
    case IntOp::kKnob:
      break;
  }
  CHECK(false) << "a leaf has no operands";
  return {0, 0};
}

int64_t evaluate(const IntExprNode& e, const std::vector<int64_t>& values) {
  if (e.op == IntOp::kConst) return e.value;
  if (e.op == IntOp::kKnob) return values.at(static_cast<size_t>(e.value));
  return apply(e.op, evaluate(*e.a, values), evaluate(*e.b, values));
}

void collect_knobs(const IntExprNode& e, std::vector<bool>& used) {
  if (e.op == IntOp::kConst) return;
  if (e.op == IntOp::kKnob) {
    used.at(static_cast<size_t>(e.value)) = true;
    return;
  }
  collect_knobs(*e.a, used);
  collect_knobs(*e.b, used);
}

namespace {

struct Printed {
  std::string text;
  int strength;  // of the outermost operator; a leaf binds strongest
};

Printed print(const IntExprNode& e, const std::vector<KnobInfo>& knobs) {
  if (e.op == IntOp::kConst) return {str(e.value), 9};
  if (e.op == IntOp::kKnob) return {knobs.at(static_cast<size_t>(e.value)).name, 9};
  const Printed a = print(*e.a, knobs), b = print(*e.b, knobs);
  if (e.op == IntOp::kMin || e.op == IntOp::kMax)
    return {str(e.op == IntOp::kMin ? "min(" : "max(", a.text, ", ", b.text, ")"), 9};
  const char* sign = "";
  int strength = 0;
  switch (e.op) {
    case IntOp::kMul:
      sign = " * ";
      strength = 6;
      break;
    case IntOp::kDiv:
      sign = " / ";
      strength = 6;
      break;
    case IntOp::kPow:
      sign = " ** ";
      strength = 7;
      break;
    case IntOp::kMod:
      sign = " % ";
      strength = 6;
      break;
    case IntOp::kAdd:
      sign = " + ";
      strength = 5;
      break;
    case IntOp::kSub:
      sign = " - ";
      strength = 5;
      break;
    case IntOp::kLt:
      sign = " < ";
      strength = 4;
      break;
    case IntOp::kLe:
      sign = " <= ";
      strength = 4;
      break;
    case IntOp::kEq:
      sign = " == ";
      strength = 3;
      break;
    case IntOp::kNe:
      sign = " != ";
      strength = 3;
      break;
    case IntOp::kAnd:
      sign = " && ";
      strength = 2;
      break;
    default:
      sign = " || ";
      strength = 1;
      break;
  }
  const auto wrap = [](const Printed& p, bool needed) { return needed ? "(" + p.text + ")" : p.text; };
  const bool from_the_right = e.op == IntOp::kPow;
  return {wrap(a, a.strength < strength + (from_the_right ? 1 : 0)) + sign + wrap(b, b.strength <= strength),
          strength};
}

}  // namespace

std::string to_text(const IntExpr& e, const std::vector<KnobInfo>& knobs) {
  return print(*e.node(), knobs).text;
}

}  // namespace tuner
