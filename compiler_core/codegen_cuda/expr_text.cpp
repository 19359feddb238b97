#include "compiler_core/codegen_cuda/expr_text.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "compiler_core/base/elements.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner::cuda {
namespace {

constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();

bool fits_int(const Expr& e, const RangeMap& ranges) {
  const auto bounds = const_bounds(e, ranges);
  return bounds.has_value() && bounds->first >= -kIntMax && bounds->second <= kIntMax;
}

bool non_negative(const Expr& e, const RangeMap& ranges) {
  const auto bounds = const_bounds(e, ranges);
  return bounds.has_value() && bounds->first >= 0;
}

template <class T>
std::string shortest(T value) {
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

// Numbers of 64 bits that come from data: an index of as many bits is printed as an int where it fits.
bool has_wide_data(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& at) {
    const bool is_wide = !is_float(at->dtype) && dtype_bytes(at->dtype) == 8;
    found |=
        is_wide && (at->kind == ExprKind::kLoad || at->kind == ExprKind::kCast || is_unsigned(at->dtype));
  });
  return found;
}

std::string parenthesised(std::string text, bool needed) {
  return needed ? "(" + std::move(text) + ")" : std::move(text);
}

}  // namespace

std::string_view c_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kInt8:
      return "signed char";
    case DType::kUInt8:
      return "unsigned char";
    case DType::kInt16:
      return "short";
    case DType::kUInt16:
      return "unsigned short";
    case DType::kInt32:
      return "int";
    case DType::kUInt32:
      return "unsigned";
    case DType::kInt64:
      return "long long";
    case DType::kUInt64:
      return "unsigned long long";
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kFloat16:
    case DType::kBFloat16:
      return "unsigned short";  // its bits: NVRTC gets no headers
  }
  return {};
}

std::string constant_text(double value, DType dtype) {
  if (!is_float(dtype)) return std::to_string(static_cast<int64_t>(value));
  if (dtype_bytes(dtype) == 2) {
    uint16_t bits = 0;
    store_elements(&value, 1, dtype, &bits);
    return std::to_string(bits);
  }
  const bool is_double = dtype == DType::kFloat64;
  // Written by their bits: the macros live in headers, and NVRTC gets none.
  if (std::isinf(value)) {
    const char* bits =
        is_double ? "__longlong_as_double(0x7ff0000000000000ll)" : "__int_as_float(0x7f800000)";
    return str(value < 0 ? "-" : "", bits);
  }
  if (std::isnan(value))
    return is_double ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fc00000)";
  return is_double ? shortest(value) : shortest(static_cast<float>(value)) + "f";
}

std::string ExprText::value(const Expr& e, const RangeMap& ranges) { return text(e, ranges, kLoose); }

std::string ExprText::index(const Expr& e, const RangeMap& ranges) {
  const bool was_wide = wide_;
  wide_ = !fits_int(e, ranges);
  std::string out = text(e, ranges, kLoose);
  wide_ = was_wide;
  return out;
}

std::string ExprText::element(const Buffer& buffer, const std::vector<Expr>& indices,
                              const RangeMap& ranges) {
  if (vectors_.contains(buffer.get())) {
    int64_t lane = 0;
    CHECK(is_const_int(indices[0], &lane) && lane >= 0 && lane < 4) << "a lane of " << buffer->name;
    return str(names_.of(buffer), ".", "xyzw"[lane]);
  }
  // A single register is a plain variable.
  if (buffer->scope == MemoryScope::kRegister && buffer->elements() == 1) return names_.of(buffer);
  const bool was_wide = wide_;
  const Expr offset = storage_offset(*buffer, indices);
  wide_ = storage_elements(*buffer) > kIntMax;
  std::string out = str(names_.of(buffer), "[", text(offset, ranges, kLoose), "]");
  wide_ = was_wide;
  return out;
}

void ExprText::forget(const Expr& e) {
  std::erase_if(aliases_, [&](const auto& alias) { return equal(alias.first, e); });
}

std::string ExprText::text(const Expr& e, const RangeMap& ranges, Level place) {
  for (const auto& [other, name] : aliases_)
    if (equal(other, e)) return wide_ ? "(long long)" + name : name;
  switch (e->kind) {
    case ExprKind::kIntImm:
      if (e->dtype == DType::kBool) return e->int_value != 0 ? "true" : "false";
      if (is_float(e->dtype)) return constant_text(static_cast<double>(e->int_value), e->dtype);
      return parenthesised(str(e->int_value, wide_ || std::abs(e->int_value) > kIntMax ? "ll" : ""),
                           e->int_value < 0 && place > kSum);
    case ExprKind::kFloatImm:
      return parenthesised(constant_text(e->float_value, e->dtype),
                           std::signbit(e->float_value) && place > kSum);
    case ExprKind::kVar:
      return wide_ && !wide_vars_.contains(e->var.get()) ? "(long long)" + names_.of(e->var)
                                                         : names_.of(e->var);
    case ExprKind::kLoad:
      return element(e->buffer, e->operands, ranges);
    case ExprKind::kBinary:
      return binary_text(e, ranges, place);
    case ExprKind::kUnary:
      return parenthesised(unary_text(e, ranges), e->unary_op <= UnaryOp::kNot && place > kUnary);
    case ExprKind::kSelect:
      return select_text(e, ranges, place);
    case ExprKind::kCast:
      return cast_text(e, ranges);
  }
  return {};
}

// Types of 16 bits are their bits: helpers turn them into float and back.
std::string ExprText::cast_text(const Expr& e, const RangeMap& ranges) {
  const auto is_half = [](DType t) { return is_float(t) && dtype_bytes(t) == 2; };
  const DType from = e->operands[0]->dtype;
  std::string value = text(e->operands[0], ranges, kUnary);
  if (from == e->dtype) return value;
  if (is_half(from)) {
    uses_half_helpers_ = true;
    value = str(dtype_name(from), "_value(", text(e->operands[0], ranges, kLoose), ")");
    if (e->dtype == DType::kFloat32) return value;
  }
  if (!is_half(e->dtype)) return str("(", c_type(e->dtype), ")", value);
  uses_half_helpers_ = true;
  return str(dtype_name(e->dtype), "_bits(", from == DType::kFloat32 ? "" : "(float)", value, ")");
}

std::string ExprText::binary_text(const Expr& e, const RangeMap& ranges, Level place) {
  struct Operator {
    const char* text;
    Level level;
  };
  const auto chain = [&](Operator op) {
    // The right operand binds tighter: floats are added in the order of the IR. Sums of indices may be
    // regrouped.
    const bool regroups = e->binary_op == BinaryOp::kAdd && e->dtype == DType::kInt64;
    const Level right = static_cast<Level>(op.level + (regroups ? 0 : 1));
    return parenthesised(
        str(text(e->operands[0], ranges, op.level), " ", op.text, " ", text(e->operands[1], ranges, right)),
        place > op.level);
  };
  const auto bitwise = [&](const char* op) {
    return str("(", text(e->operands[0], ranges, kUnary), " ", op, " ", text(e->operands[1], ranges, kUnary),
               ")");
  };
  // Indices compared with each other have a width of their own.
  const auto compare = [&](Operator op) {
    const bool was_wide = wide_;
    if (e->operands[0]->dtype == DType::kInt64)
      wide_ = !fits_int(e->operands[0], ranges) || !fits_int(e->operands[1], ranges);
    std::string out = chain(op);
    wide_ = was_wide;
    return out;
  };
  switch (e->binary_op) {
    case BinaryOp::kAdd:
      return chain({"+", kSum});
    case BinaryOp::kSub:
      return chain({"-", kSum});
    case BinaryOp::kMul:
      return chain({"*", kProduct});
    case BinaryOp::kDiv:
      return chain({"/", kProduct});
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return division(e, ranges, place);
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kAtLeast:
      return minmax(e, ranges);
    case BinaryOp::kEq:
      return compare({"==", kEquality});
    case BinaryOp::kNe:
      return compare({"!=", kEquality});
    case BinaryOp::kLt:
      return compare({"<", kCompare});
    case BinaryOp::kLe:
      return compare({"<=", kCompare});
    case BinaryOp::kGt:
      return compare({">", kCompare});
    case BinaryOp::kGe:
      return compare({">=", kCompare});
    case BinaryOp::kAnd:
      return chain({"&&", kAnd});
    case BinaryOp::kOr:
      return chain({"||", kOr});
    case BinaryOp::kXor:  // always in parentheses: few know where ^ binds
      return bitwise("^");
    case BinaryOp::kBitAnd:
      return bitwise("&");
    case BinaryOp::kBitOr:
      return bitwise("|");
    case BinaryOp::kShiftLeft:
      return bitwise("<<");
    case BinaryOp::kShiftRight:
      return bitwise(">>");
    case BinaryOp::kPow:
      return str(e->dtype == DType::kFloat64 ? "pow(" : "powf(", text(e->operands[0], ranges, kLoose), ", ",
                 text(e->operands[1], ranges, kLoose), ")");
  }
  return {};
}

std::string ExprText::division(const Expr& e, const RangeMap& ranges, Level place) {
  const bool is_div = e->binary_op == BinaryOp::kFloorDiv;
  const Expr &a = e->operands[0], &b = e->operands[1];
  if (is_unsigned(e->dtype) ||
      (e->dtype == DType::kInt64 && non_negative(a, ranges) && non_negative(b, ranges)))
    return parenthesised(str(text(a, ranges, kProduct), is_div ? " / " : " % ", text(b, ranges, kUnary)),
                         place > kProduct);
  uses_floor_helpers_ = true;
  if (has_wide_data(e))
    return str(is_div ? "index_div" : "index_mod", "((long long)", text(a, ranges, kUnary), ", (long long)",
               text(b, ranges, kUnary), ")");
  return str(is_div ? "index_div(" : "index_mod(", text(a, ranges, kLoose), ", ", text(b, ranges, kLoose),
             ")");
}

std::string ExprText::minmax(const Expr& e, const RangeMap& ranges) {
  const bool is_min = e->binary_op == BinaryOp::kMin;
  const char* name = is_float(e->dtype) ? (is_min ? "ieee_min" : "ieee_max") : (is_min ? "min" : "max");
  if (e->binary_op == BinaryOp::kAtLeast) name = e->dtype == DType::kFloat64 ? "fmax" : "fmaxf";
  if (has_wide_data(e)) {  // min and max take two of one type
    const std::string cast = str("(", c_type(e->dtype), ")");
    return str(name, "(", cast, text(e->operands[0], ranges, kUnary), ", ", cast,
               text(e->operands[1], ranges, kUnary), ")");
  }
  return str(name, "(", text(e->operands[0], ranges, kLoose), ", ", text(e->operands[1], ranges, kLoose),
             ")");
}

std::string ExprText::unary_text(const Expr& e, const RangeMap& ranges) {
  if (e->unary_op == UnaryOp::kNeg) return "-" + text(e->operands[0], ranges, kUnary);
  if (e->unary_op == UnaryOp::kNot) return "!" + text(e->operands[0], ranges, kUnary);
  if (e->unary_op == UnaryOp::kAbs && !is_float(e->dtype))
    return str("abs(", text(e->operands[0], ranges, kLoose), ")");
  if (e->unary_op == UnaryOp::kTf32)
    return str("__int_as_float(__float_as_int(", text(e->operands[0], ranges, kLoose), ") & -8192)");
  constexpr std::string_view kNames[] = {"",     "",      "fabs", "sqrt", "rsqrt", "exp",   "log",  "tanh",
                                         "erf",  "floor", "rint", "",     "sin",   "cos",   "tan",  "asin",
                                         "acos", "atan",  "sinh", "cosh", "asinh", "acosh", "atanh"};
  return str(kNames[static_cast<int>(e->unary_op)], e->dtype == DType::kFloat64 ? "(" : "f(",
             text(e->operands[0], ranges, kLoose), ")");
}

// The branch not taken is not evaluated, so its loads touch no memory; inside the branch taken the condition
// is known to hold.
std::string ExprText::select_text(const Expr& e, const RangeMap& ranges, Level place) {
  RangeMap inside = ranges;
  inside.assume(e->operands[0]);
  return parenthesised(str(text(e->operands[0], ranges, kUnary), " ? ", text(e->operands[1], inside, kOr),
                           " : ", text(e->operands[2], ranges, kSelectLevel)),
                       place > kSelectLevel);
}

}  // namespace tuner::cuda
