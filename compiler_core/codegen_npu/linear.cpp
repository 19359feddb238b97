#include "compiler_core/codegen_npu/linear.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner {
namespace {

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }

bool compare(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

Linear difference(const Linear& a, const Linear& b, int64_t add) {
  Linear d = a;
  d.base += add - b.base;
  for (size_t i = 0; i < d.by.size(); ++i) d.by[i] -= b.by[i];
  return d;
}

}  // namespace

bool Linear::is_constant() const {
  return std::all_of(by.begin(), by.end(), [](int64_t each) { return each == 0; });
}

std::pair<int64_t, int64_t> LinearScope::range(const Linear& l) const {
  int64_t least = l.base, most = l.base;
  for (size_t i = 0; i < loops_.size(); ++i) {
    const int64_t a = l.by[i] * loops_[i].begin, b = l.by[i] * (loops_[i].end - 1);
    least += std::min(a, b);
    most += std::max(a, b);
  }
  return {least, most};
}

bool LinearScope::is_empty() const {
  return never_ ||
         std::any_of(loops_.begin(), loops_.end(), [](const InstructionLoop& l) { return l.begin >= l.end; });
}

// Where all factors are multiples of the divisor, or all values lie between two multiples of it.
std::optional<Linear> LinearScope::divided(const Linear& l, int64_t divisor, bool remainder) const {
  if (divisor <= 0 || is_empty()) return std::nullopt;
  Linear quotient = l;
  quotient.base = floor_quotient(l.base, divisor);
  const bool divides =
      std::all_of(l.by.begin(), l.by.end(), [&](int64_t each) { return each % divisor == 0; });
  if (divides) {
    for (int64_t& each : quotient.by) each /= divisor;
  } else {
    const auto [least, most] = range(l);
    quotient.base = floor_quotient(least, divisor);
    if (quotient.base != floor_quotient(most, divisor)) return std::nullopt;
    std::fill(quotient.by.begin(), quotient.by.end(), 0);
  }
  if (!remainder) return quotient;
  Linear rest = l;
  rest.base -= divisor * quotient.base;
  for (size_t i = 0; i < rest.by.size(); ++i) rest.by[i] -= divisor * quotient.by[i];
  return rest;
}

std::optional<bool> LinearScope::decided(const Expr& c) const {
  if (int64_t known = 0; is_const_int(c, &known)) return known != 0;
  if (c->kind == ExprKind::kUnary && c->unary_op == UnaryOp::kNot) {
    const std::optional<bool> inner = decided(c->operands[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (c->kind != ExprKind::kBinary) return std::nullopt;
  if (c->binary_op == BinaryOp::kAnd || c->binary_op == BinaryOp::kOr) {
    const std::optional<bool> a = decided(c->operands[0]), b = decided(c->operands[1]);
    const bool decides = c->binary_op == BinaryOp::kOr;  // either of them alone, when it has this value
    if ((a && *a == decides) || (b && *b == decides)) return decides;
    return a && b ? std::optional(!decides) : std::nullopt;
  }
  if (!is_comparison(c->binary_op)) return std::nullopt;
  const std::optional<int64_t> a = value(c->operands[0]), b = value(c->operands[1]);
  return a && b ? std::optional(compare(c->binary_op, *a, *b)) : std::nullopt;
}

std::optional<int64_t> LinearScope::value(const Expr& e) const {
  const std::optional<Linear> l = linear(e);
  return l && l->is_constant() ? std::optional(l->base) : std::nullopt;
}

std::optional<Linear> LinearScope::linear(const Expr& e) const {
  Linear l;
  l.by.assign(loops_.size(), 0);
  switch (e->kind) {
    case ExprKind::kIntImm:
      l.base = e->int_value;
      return l;
    case ExprKind::kVar: {
      for (size_t i = 0; i < loops_.size(); ++i)
        if (loops_[i].var == e->var.get()) {
          l.by[i] = 1;
          return l;
        }
      const auto found = values_.find(e->var.get());
      if (found == values_.end()) return std::nullopt;
      l.base = found->second;
      return l;
    }
    case ExprKind::kCast:
      return e->dtype == DType::kInt64 ? linear(e->operands[0]) : std::nullopt;
    case ExprKind::kSelect: {
      const std::optional<bool> which = decided(e->operands[0]);
      return which ? linear(e->operands[*which ? 1 : 2]) : std::nullopt;
    }
    case ExprKind::kBinary:
      break;
    default:
      return std::nullopt;
  }
  const std::optional<Linear> a = linear(e->operands[0]), b = linear(e->operands[1]);
  if (!a || !b) return std::nullopt;
  switch (e->binary_op) {
    case BinaryOp::kAdd:
      l = *a;
      l.base += b->base;
      for (size_t i = 0; i < l.by.size(); ++i) l.by[i] += b->by[i];
      return l;
    case BinaryOp::kSub:
      return difference(*a, *b, 0);
    case BinaryOp::kMul: {
      if (!a->is_constant() && !b->is_constant()) return std::nullopt;
      l = a->is_constant() ? *b : *a;
      const int64_t factor = a->is_constant() ? a->base : b->base;
      l.base *= factor;
      for (int64_t& each : l.by) each *= factor;
      return l;
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      if (!b->is_constant()) return std::nullopt;
      return divided(*a, b->base, e->binary_op == BinaryOp::kFloorMod);
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      const auto [least, most] = range(difference(*a, *b, 0));
      const bool is_min = e->binary_op == BinaryOp::kMin;
      if (most <= 0) return is_min ? a : b;
      if (least >= 0) return is_min ? b : a;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

bool LinearScope::narrow_to_positive(const Linear& l) {
  if (is_empty()) return true;
  const auto [least, most] = range(l);
  if (least >= 0) return true;
  size_t moving = 0, which = 0;
  for (size_t i = 0; i < loops_.size(); ++i) {
    if (l.by[i] == 0) continue;
    ++moving;
    which = i;
  }
  if (most < 0) {
    never_ = true;
    return true;
  }
  if (moving != 1) return false;
  InstructionLoop& loop = loops_[which];
  if (l.by[which] > 0)
    loop.begin = std::max(loop.begin, ceil_div(-l.base, l.by[which]));
  else
    loop.end = std::min(loop.end, floor_quotient(l.base, -l.by[which]) + 1);
  return true;
}

bool LinearScope::narrow(const Expr& c) {
  if (const std::optional<bool> known = decided(c)) {
    if (*known) return true;
    Linear never;
    never.base = -1;
    never.by.assign(loops_.size(), 0);
    return narrow_to_positive(never);
  }
  if (c->kind != ExprKind::kBinary) return false;
  if (c->binary_op == BinaryOp::kAnd) return narrow(c->operands[0]) && narrow(c->operands[1]);
  const std::optional<Linear> a = linear(c->operands[0]), b = linear(c->operands[1]);
  if (!a || !b) return false;
  switch (c->binary_op) {
    case BinaryOp::kLt:
      return narrow_to_positive(difference(*b, *a, -1));
    case BinaryOp::kLe:
      return narrow_to_positive(difference(*b, *a, 0));
    case BinaryOp::kGt:
      return narrow_to_positive(difference(*a, *b, -1));
    case BinaryOp::kGe:
      return narrow_to_positive(difference(*a, *b, 0));
    case BinaryOp::kEq:
      return narrow_to_positive(difference(*b, *a, 0)) && narrow_to_positive(difference(*a, *b, 0));
    default:
      return false;
  }
}

}  // namespace tuner
