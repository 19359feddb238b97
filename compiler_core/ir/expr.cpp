#include "compiler_core/ir/expr.h"

#include <optional>

#include "compiler_core/base/int_math.h"
#include "compiler_core/base/integer_types.h"
#include "compiler_core/base/status.h"

namespace tuner {
namespace {

Expr make(ExprNode node) { return Expr(std::make_shared<const ExprNode>(std::move(node))); }

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }
bool is_logical(BinaryOp op) { return op == BinaryOp::kAnd || op == BinaryOp::kOr; }

// The constant a op b of integers; nothing when it has none (division by zero). Of uint64 the upper half is
// negative here.
std::optional<int64_t> folded(BinaryOp op, DType type, int64_t a, int64_t b) {
  const bool is_wide = type == DType::kUInt64;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const auto bits = [](uint64_t x) { return static_cast<int64_t>(x); };
  switch (op) {
    case BinaryOp::kAdd:
      return bits(ua + ub);
    case BinaryOp::kSub:
      return bits(ua - ub);
    case BinaryOp::kMul:
      return bits(ua * ub);
    case BinaryOp::kFloorDiv:
      if (b == 0) return std::nullopt;
      return is_wide ? bits(ua / ub) : floor_quotient(a, b);
    case BinaryOp::kFloorMod:
      if (b == 0) return std::nullopt;
      return is_wide ? bits(ua % ub) : floor_remainder(a, b);
    case BinaryOp::kMin:
      return is_less(type, a, b) ? a : b;
    case BinaryOp::kMax:
      return is_less(type, a, b) ? b : a;
    case BinaryOp::kXor:
      return a ^ b;
    case BinaryOp::kBitAnd:
      return a & b;
    case BinaryOp::kBitOr:
      return a | b;
    case BinaryOp::kEq:
      return a == b;
    case BinaryOp::kNe:
      return a != b;
    case BinaryOp::kLt:
      return is_less(type, a, b);
    case BinaryOp::kLe:
      return !is_less(type, b, a);
    case BinaryOp::kGt:
      return is_less(type, b, a);
    case BinaryOp::kGe:
      return !is_less(type, a, b);
    default:
      return std::nullopt;
  }
}

// A number takes the type of what stands beside it: load(A, i) * 2 is a float product.
void match_immediate(Expr& number, const Expr& other) {
  if (number->dtype == other->dtype || other->dtype == DType::kBool) return;
  if (number->kind == ExprKind::kFloatImm && is_float(other->dtype))
    number = float_imm(number->float_value, other->dtype);
  else if (number->kind == ExprKind::kIntImm && number->dtype == DType::kInt64)
    number = is_float(other->dtype) ? float_imm(static_cast<double>(number->int_value), other->dtype)
                                    : int_imm(number->int_value, other->dtype);
}

bool is_true(const Expr& e) { return e->kind == ExprKind::kIntImm && e->int_value != 0; }
bool is_false(const Expr& e) { return e->kind == ExprKind::kIntImm && e->int_value == 0; }

// x+0, x*1, x*0, x/1, x%1 and the logical identities; an undefined Expr when none applies.
Expr identity(BinaryOp op, const Expr& a, const Expr& b) {
  if (op == BinaryOp::kAnd) {
    if (is_true(a) || is_false(b)) return b;
    if (is_true(b) || is_false(a)) return a;
    return {};
  }
  if (op == BinaryOp::kOr) {
    if (is_false(a) || is_true(b)) return b;
    if (is_false(b) || is_true(a)) return a;
    return {};
  }
  int64_t va = 0, vb = 0;
  const bool ca = is_const_int(a, &va), cb = is_const_int(b, &vb);
  switch (op) {
    case BinaryOp::kAdd:
      if (ca && va == 0) return b;
      if (cb && vb == 0) return a;
      return {};
    case BinaryOp::kSub:
      if (cb && vb == 0) return a;
      return {};
    case BinaryOp::kMul:
      if (ca && va == 1) return b;
      if (cb && vb == 1) return a;
      if (ca && va == 0) return a;
      if (cb && vb == 0) return b;
      return {};
    case BinaryOp::kXor:
      if (ca && va == 0) return b;
      if (cb && vb == 0) return a;
      return {};
    case BinaryOp::kFloorDiv:
      if (cb && vb == 1) return a;
      return {};
    case BinaryOp::kFloorMod:
      if (cb && vb == 1) return int_imm(0, a->dtype);
      return {};
    default:
      return {};
  }
}

}  // namespace

Expr::Expr(int64_t value) : Expr(int_imm(value)) {}
Expr::Expr(const Var& var) : Expr(make({.kind = ExprKind::kVar, .dtype = DType::kInt64, .var = var})) {
  CHECK(var != nullptr) << "an expression of no variable";
}

std::string_view memory_scope_name(MemoryScope scope) {
  constexpr std::string_view kNames[] = {"global", "shared", "register", "fragment"};
  return kNames[static_cast<int>(scope)];
}

Expr int_imm(int64_t value, DType dtype) {
  return make({.kind = ExprKind::kIntImm, .dtype = dtype, .int_value = value});
}
Expr float_imm(double value, DType dtype) {
  return make({.kind = ExprKind::kFloatImm, .dtype = dtype, .float_value = value});
}
Expr bool_imm(bool value) { return int_imm(value, DType::kBool); }

Expr load(const Buffer& buffer, std::vector<Expr> indices) {
  CHECK(indices.size() == buffer->shape.size())
      << buffer->name << " has " << buffer->shape.size() << " dimensions, indexed with " << indices.size();
  return make(
      {.kind = ExprKind::kLoad, .dtype = buffer->dtype, .buffer = buffer, .operands = std::move(indices)});
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  CHECK(a.defined() && b.defined()) << "an operand is missing";
  match_immediate(a, b);
  match_immediate(b, a);
  CHECK(a->dtype == b->dtype) << "operands are " << a->dtype << " and " << b->dtype << "; cast one of them";
  const DType dtype = is_comparison(op) || is_logical(op) ? DType::kBool : a->dtype;
  if (!is_float(a->dtype)) {
    int64_t va = 0, vb = 0;
    if (is_const_int(a, &va) && is_const_int(b, &vb))
      if (const auto value = folded(op, a->dtype, va, vb)) return int_imm(wrapped_to(dtype, *value), dtype);
    if (Expr same = identity(op, a, b); same.defined()) return same;
  }
  return make(
      {.kind = ExprKind::kBinary, .dtype = dtype, .binary_op = op, .operands = {std::move(a), std::move(b)}});
}

Expr unary(UnaryOp op, Expr a) {
  if (a->kind == ExprKind::kIntImm) {
    if (op == UnaryOp::kNot) return bool_imm(a->int_value == 0);
    if (op == UnaryOp::kNeg) return int_imm(-a->int_value, a->dtype);
  }
  const DType dtype = op == UnaryOp::kNot ? DType::kBool : a->dtype;
  return make({.kind = ExprKind::kUnary, .dtype = dtype, .unary_op = op, .operands = {std::move(a)}});
}

Expr select(Expr condition, Expr then_value, Expr else_value) {
  match_immediate(then_value, else_value);
  match_immediate(else_value, then_value);
  CHECK(then_value->dtype == else_value->dtype)
      << "branches are " << then_value->dtype << " and " << else_value->dtype << "; cast one of them";
  if (is_true(condition)) return then_value;
  if (is_false(condition)) return else_value;
  const DType dtype = then_value->dtype;
  return make({.kind = ExprKind::kSelect,
               .dtype = dtype,
               .operands = {std::move(condition), std::move(then_value), std::move(else_value)}});
}

Expr cast(DType dtype, Expr a) {
  if (a->dtype == dtype) return a;
  return make({.kind = ExprKind::kCast, .dtype = dtype, .operands = {std::move(a)}});
}

Var make_var(std::string name) { return std::make_shared<const VarNode>(VarNode{std::move(name)}); }

Buffer make_buffer(std::string name, DType dtype, std::vector<int64_t> shape, MemoryScope scope,
                   BufferRole role) {
  for (int64_t d : shape) CHECK(d >= 1) << name << " has a dimension of " << d;
  return std::make_shared<const BufferNode>(BufferNode{.name = std::move(name),
                                                       .dtype = dtype,
                                                       .shape = std::move(shape),
                                                       .scope = scope,
                                                       .role = role,
                                                       .layout = {}});
}

Expr operator+(Expr a, Expr b) { return binary(BinaryOp::kAdd, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return binary(BinaryOp::kSub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return binary(BinaryOp::kMul, std::move(a), std::move(b)); }
Expr operator/(Expr a, Expr b) { return binary(BinaryOp::kDiv, std::move(a), std::move(b)); }
Expr floor_div(Expr a, Expr b) { return binary(BinaryOp::kFloorDiv, std::move(a), std::move(b)); }
Expr floor_mod(Expr a, Expr b) { return binary(BinaryOp::kFloorMod, std::move(a), std::move(b)); }
Expr min(Expr a, Expr b) { return binary(BinaryOp::kMin, std::move(a), std::move(b)); }
Expr max(Expr a, Expr b) { return binary(BinaryOp::kMax, std::move(a), std::move(b)); }
Expr at_least(Expr a, Expr b) { return binary(BinaryOp::kAtLeast, std::move(a), std::move(b)); }
Expr operator<(Expr a, Expr b) { return binary(BinaryOp::kLt, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return binary(BinaryOp::kLe, std::move(a), std::move(b)); }
Expr operator>=(Expr a, Expr b) { return binary(BinaryOp::kGe, std::move(a), std::move(b)); }
Expr operator&&(Expr a, Expr b) { return binary(BinaryOp::kAnd, std::move(a), std::move(b)); }
Expr operator||(Expr a, Expr b) { return binary(BinaryOp::kOr, std::move(a), std::move(b)); }
Expr bit_xor(Expr a, Expr b) { return binary(BinaryOp::kXor, std::move(a), std::move(b)); }

bool is_const_int(const Expr& e, int64_t* value) {
  if (!e.defined() || e->kind != ExprKind::kIntImm) return false;
  if (value != nullptr) *value = e->int_value;
  return true;
}

bool equal(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (!a.defined() || !b.defined() || a->kind != b->kind || a->dtype != b->dtype) return false;
  if (a->operands.size() != b->operands.size()) return false;
  switch (a->kind) {
    case ExprKind::kIntImm:
      return a->int_value == b->int_value;
    case ExprKind::kFloatImm:
      return a->float_value == b->float_value ||
             (a->float_value != a->float_value && b->float_value != b->float_value);
    case ExprKind::kVar:
      return a->var == b->var;
    case ExprKind::kLoad:
      if (a->buffer != b->buffer) return false;
      break;
    case ExprKind::kBinary:
      if (a->binary_op != b->binary_op) return false;
      break;
    case ExprKind::kUnary:
      if (a->unary_op != b->unary_op) return false;
      break;
    case ExprKind::kSelect:
    case ExprKind::kCast:
      break;
  }
  for (size_t i = 0; i < a->operands.size(); ++i)
    if (!equal(a->operands[i], b->operands[i])) return false;
  return true;
}

}  // namespace tuner
