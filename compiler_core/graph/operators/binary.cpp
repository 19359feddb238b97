// Operators on each element of several tensors, which are broadcast to one shape.
#include <algorithm>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace binary_ops {
namespace {

Result<Shape> broadcast_all(const Use& use) {
  Shape shape;
  for (size_t i = 0; i < use.inputs(); ++i) {
    ASSIGN_OR_RETURN(shape, broadcast(shape, use.shape(i)));
  }
  return shape;
}

// The result has the type of all operands.
Result<std::vector<TensorType>> same_type(const Use& use) {
  ASSIGN_OR_RETURN(const Shape shape, broadcast_all(use));
  return one({use.dtype(0), shape});
}
Result<std::vector<TensorType>> comparison(const Use& use) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, same_type(use));
  types[0].dtype = DType::kBool;
  return types;
}

using Formula = Expr (*)(const Expr&, const Expr&);
template <Formula kFormula>
void of_two(const Use& /*use*/, MathWriter& m) {
  m.result([&](const te::Indices& i) { return kFormula(at(m.in(0), i), at(m.in(1), i)); });
}
// Any number of operands, one after the other.
template <Formula kFormula>
void of_all(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    Expr x = at(m.in(0), i);
    for (size_t k = 1; k < use.inputs(); ++k) x = kFormula(x, at(m.in(k), i));
    return x;
  });
}

Expr added(const Expr& a, const Expr& b) { return a + b; }
Expr subtracted(const Expr& a, const Expr& b) { return a - b; }
Expr multiplied(const Expr& a, const Expr& b) { return a * b; }
// A divisor that is known before the model runs.
Result<std::vector<TensorType>> quotient_types(const Use& use) {
  if (!is_float(use.dtype(0)) && use.is_constant(1)) {
    ASSIGN_OR_RETURN(const std::vector<double> divisors, use.numbers(1));
    const auto zero = std::ranges::find(divisors, 0.0);
    if (zero != divisors.end())
      return invalid_argument("divides ", use.dtype(0), " by 0: element ", zero - divisors.begin(),
                              " of input 1 is 0, expected other integers");
  }
  return same_type(use);
}
// What integers are divided by. Math is total: by 0 they are divided as by 1, which is what compiled code
// does.
Expr divisor(const Expr& b) { return select(equals(b, number(b->dtype, 0)), number(b->dtype, 1), b); }
// Integers are divided toward zero.
Expr divided(const Expr& a, const Expr& b) {
  if (is_float(a->dtype)) return a / b;
  if (is_unsigned(a->dtype)) return floor_div(a, divisor(b));
  // Not by sizes: the least number has none of its own type.
  const Expr zero = number(a->dtype, 0), by = divisor(b), below = floor_div(a, by);
  const Expr is_rounded = binary(BinaryOp::kNe, below * by, a);
  return select(is_rounded && logical_not(equals(a < zero, by < zero)), below + number(a->dtype, 1), below);
}
Expr smaller(const Expr& a, const Expr& b) { return min(a, b); }
Expr larger(const Expr& a, const Expr& b) { return max(a, b); }
template <BinaryOp kOp>
Expr direct(const Expr& a, const Expr& b) {
  return binary(kOp, a, b);
}
// Truth values are compared as numbers.
template <BinaryOp kOp>
Expr compared(const Expr& a, const Expr& b) {
  return a->dtype == DType::kBool ? binary(kOp, as(DType::kInt32, a), as(DType::kInt32, b))
                                  : binary(kOp, a, b);
}
// Shifts by as many bits as the type has or more leave 0.
Expr shifted(BinaryOp op, const Expr& a, const Expr& b) {
  const Expr most = number(b->dtype, static_cast<double>(8 * dtype_bytes(a->dtype) - 1));
  return select(b <= most, binary(op, a, min(b, most)), number(a->dtype, 0));
}
Result<std::vector<TensorType>> shift_types(const Use& use) {
  if (!use.has_attribute("direction")) return invalid_argument("has no direction, expected LEFT or RIGHT");
  return same_type(use);
}
void bit_shift(const Use& use, MathWriter& m) {
  const bool left = use.word("direction", "") == "LEFT";
  m.result([&](const te::Indices& i) {
    return shifted(left ? BinaryOp::kShiftLeft : BinaryOp::kShiftRight, at(m.in(0), i), at(m.in(1), i));
  });
}
Expr differs(const Expr& a, const Expr& b) { return compared<BinaryOp::kNe>(a, b); }

void mean(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    Expr sum = at(m.in(0), i);
    for (size_t k = 1; k < use.inputs(); ++k) sum = sum + at(m.in(k), i);
    return sum / number(sum->dtype, static_cast<double>(use.inputs()));
  });
}

// The remainder has the sign of the divisor, with fmod that of the dividend.
Result<std::vector<TensorType>> mod_types(const Use& use) {
  if (is_float(use.dtype(0)) && use.integer("fmod", 0) == 0)
    return invalid_argument("needs fmod = 1 for ", use.dtype(0));
  return quotient_types(use);
}
void mod(const Use& use, MathWriter& m) {
  const bool of_dividend = use.integer("fmod", 0) != 0;
  m.result([&](const te::Indices& i) {
    const Expr a = at(m.in(0), i), b = at(m.in(1), i);
    if (!of_dividend) return floor_mod(a, divisor(b));
    if (!is_float(a->dtype)) return a - divided(a, b) * b;
    const Expr quotient = a / b, whole = unary(UnaryOp::kFloor, unary(UnaryOp::kAbs, quotient));
    return a - select(quotient < number(a->dtype, 0), unary(UnaryOp::kNeg, whole), whole) * b;
  });
}

// The result has the type of the base. Exponents that are one small number become products.
Result<std::vector<TensorType>> pow_types(const Use& use) {
  ASSIGN_OR_RETURN(const Shape shape, broadcast_all(use));
  return one({use.dtype(0), shape});
}
Expr powered(const Expr& x, double exponent) {
  if (exponent == 0.5) return unary(UnaryOp::kSqrt, x);
  if (exponent == -0.5) return unary(UnaryOp::kRsqrt, x);
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  return exponent == 3 ? x * x * x : binary(BinaryOp::kPow, x, number(x->dtype, exponent));
}
// A power of integers, from the same in float64. Small powers are products, and exact where float64 is not.
Expr integer_power(const Expr& x, const Expr& real, const std::optional<double>& exponent) {
  const Expr power = to_integer(x->dtype, real);
  const bool is_wide = dtype_bytes(x->dtype) == 8;
  if (!is_wide || (exponent != 1 && exponent != 2 && exponent != 3)) return power;
  const Expr product = *exponent == 1 ? x : *exponent == 2 ? x * x : x * x * x;
  const Expr end = number(real->dtype, is_unsigned(x->dtype) ? 0x1p64 : 0x1p63);
  return select(unary(UnaryOp::kAbs, real) < end, product, power);
}
void pow(const Use& use, MathWriter& m) {
  std::optional<double> exponent;
  if (use.is_constant(1) && elements_of(use.shape(1)) == 1) exponent = use.numbers(1)->at(0);
  const DType dtype = is_float(use.dtype(0)) ? use.dtype(0) : DType::kFloat64;
  m.result([&](const te::Indices& i) {
    const Expr base = at(m.in(0), i), x = as(dtype, base);
    const Expr power =
        exponent ? powered(x, *exponent) : binary(BinaryOp::kPow, x, as(dtype, at(m.in(1), i)));
    return is_float(base->dtype) ? power : integer_power(base, power, exponent);
  });
}

Result<std::vector<TensorType>> prelu_types(const Use& use) {
  ASSIGN_OR_RETURN(const Shape shape, broadcast(use.shape(0), use.shape(1)));
  if (shape != use.shape(0)) return invalid_argument("the slope does not broadcast to the input");
  return like_first(use);
}
void prelu(const Use& /*use*/, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    const Expr x = load(m.in(0), i);
    return select(x < number(x->dtype, 0), x * at(m.in(1), i), x);
  });
}

Result<std::vector<TensorType>> where_types(const Use& use) {
  ASSIGN_OR_RETURN(const Shape shape, broadcast_all(use));
  return one({use.dtype(1), shape});
}
void where(const Use& /*use*/, MathWriter& m) {
  m.result([&](const te::Indices& i) { return select(at(m.in(0), i), at(m.in(1), i), at(m.in(2), i)); });
}

constexpr auto kKind = OperatorKind::kElementwise;
constexpr Operator kRows[] = {
    {"Add", kKind, 2, 2, 1, same_type, of_two<added>},
    {"Sub", kKind, 2, 2, 1, same_type, of_two<subtracted>},
    {"Mul", kKind, 2, 2, 1, same_type, of_two<multiplied>},
    {"Div", kKind, 2, 2, 1, quotient_types, of_two<divided>},
    {"Mod", kKind, 2, 2, 1, mod_types, mod},
    {"Pow", kKind, 2, 2, 1, pow_types, pow},
    {"PRelu", kKind, 2, 2, 1, prelu_types, prelu},
    {"And", kKind, 2, 2, 1, same_type, of_two<direct<BinaryOp::kAnd>>},
    {"Or", kKind, 2, 2, 1, same_type, of_two<direct<BinaryOp::kOr>>},
    {"Xor", kKind, 2, 2, 1, same_type, of_two<differs>},
    {"BitShift", kKind, 2, 2, 1, shift_types, bit_shift},
    {"BitwiseAnd", kKind, 2, 2, 1, same_type, of_two<direct<BinaryOp::kBitAnd>>},
    {"BitwiseOr", kKind, 2, 2, 1, same_type, of_two<direct<BinaryOp::kBitOr>>},
    {"BitwiseXor", kKind, 2, 2, 1, same_type, of_two<direct<BinaryOp::kXor>>},
    {"Equal", kKind, 2, 2, 1, comparison, of_two<compared<BinaryOp::kEq>>},
    {"Less", kKind, 2, 2, 1, comparison, of_two<direct<BinaryOp::kLt>>},
    {"LessOrEqual", kKind, 2, 2, 1, comparison, of_two<direct<BinaryOp::kLe>>},
    {"Greater", kKind, 2, 2, 1, comparison, of_two<direct<BinaryOp::kGt>>},
    {"GreaterOrEqual", kKind, 2, 2, 1, comparison, of_two<direct<BinaryOp::kGe>>},
    {"Sum", kKind, 1, kAnyNumber, 1, same_type, of_all<added>},
    {"Min", kKind, 1, kAnyNumber, 1, same_type, of_all<smaller>},
    {"Max", kKind, 1, kAnyNumber, 1, same_type, of_all<larger>},
    {"Mean", kKind, 1, kAnyNumber, 1, same_type, mean},
    {"Where", kKind, 3, 3, 1, where_types, where},
};

}  // namespace
}  // namespace binary_ops

std::span<const Operator> binary_operators() { return binary_ops::kRows; }

}  // namespace tuner::graph
