// Operators on each element of one tensor.
#include <cmath>
#include <numbers>

#include "compiler_core/graph/families.h"

namespace tuner::graph {
namespace unary_ops {
namespace {

using std::numbers::inv_sqrtpi;
using std::numbers::sqrt2;

Expr call(UnaryOp op, const Expr& x) { return unary(op, x); }
Expr like(const Expr& x, double value) { return number(x->dtype, value); }
// log(1 + e^x), without e^x of a large x.
Expr softplus(const Expr& x) {
  return max(x, like(x, 0)) +
         call(UnaryOp::kLog, like(x, 1) + call(UnaryOp::kExp, unary(UnaryOp::kNeg, call(UnaryOp::kAbs, x))));
}
Expr exp_of(const Expr& x) { return call(UnaryOp::kExp, x); }
Expr clamp(const Expr& x, const Expr& least, const Expr& most) { return min(max(x, least), most); }
Expr is_positive(const Expr& x) { return binary(BinaryOp::kGt, x, like(x, 0)); }
Expr is_negative(const Expr& x) { return x < like(x, 0); }

// e^x - 1 and its like lose digits beside 0; there the first terms of the series are better.
Expr exp_minus_1(const Expr& x) {
  const Expr series = x + x * x * like(x, 0.5) + x * x * x * like(x, 1.0 / 6);
  return select(call(UnaryOp::kAbs, x) < like(x, 1e-3), series, exp_of(x) - like(x, 1));
}

template <class F>
void each(const Use& use, MathWriter& m, const F& f) {
  m.result([&](const te::Indices& i) { return f(use, load(m.in(0), i)); });
}

// Rows are functions without state, so a formula is one, too.
using Formula = Expr (*)(const Use&, const Expr&);
template <Formula kFormula>
void formula(const Use& use, MathWriter& m) {
  each(use, m, kFormula);
}

Result<std::vector<TensorType>> truth(const Use& use) { return one({DType::kBool, use.shape(0)}); }

template <UnaryOp kOp>
Expr direct(const Use& /*use*/, const Expr& x) {
  return unary(kOp, x);
}
Expr absolute(const Use& /*use*/, const Expr& x) {
  if (is_unsigned(x->dtype)) return x;
  return is_float(x->dtype) ? unary(UnaryOp::kAbs, x) : max(x, like(x, 0) - x);
}
Expr negative(const Use& /*use*/, const Expr& x) {
  return is_float(x->dtype) ? unary(UnaryOp::kNeg, x) : like(x, 0) - x;
}
Expr ceiling(const Use& /*use*/, const Expr& x) {
  return unary(UnaryOp::kNeg, unary(UnaryOp::kFloor, unary(UnaryOp::kNeg, x)));
}
Expr reciprocal(const Use& /*use*/, const Expr& x) { return like(x, 1) / x; }
// What is neither is 0 or a NaN.
Expr sign(const Use& /*use*/, const Expr& x) {
  return select(is_positive(x), like(x, 1), select(is_negative(x), like(x, -1), x));
}
Expr inverted(const Use& /*use*/, const Expr& x) { return logical_not(x); }
Expr bits_inverted(const Use& /*use*/, const Expr& x) { return bit_xor(x, number(x->dtype, -1)); }
Expr nan_found(const Use& /*use*/, const Expr& x) { return is_nan(x); }
Expr is_infinite(const Use& use, const Expr& x) {
  const Expr most = like(x, HUGE_VAL), least = like(x, -HUGE_VAL);
  Expr found = bool_imm(false);
  if (use.integer("detect_positive", 1) != 0) found = equals(x, most);
  if (use.integer("detect_negative", 1) != 0) found = found || equals(x, least);
  return found;
}
Expr same(const Use& /*use*/, const Expr& x) { return x; }

Expr relu(const Use& /*use*/, const Expr& x) { return max(x, like(x, 0)); }
Expr leaky_relu(const Use& use, const Expr& x) {
  return select(is_negative(x), x * like(x, use.number("alpha", 0.01)), x);
}
Expr thresholded_relu(const Use& use, const Expr& x) {
  return select(x <= like(x, use.number("alpha", 1)), like(x, 0), x);
}
Expr elu(const Use& use, const Expr& x) {
  return select(is_negative(x), like(x, use.number("alpha", 1)) * exp_minus_1(x), x);
}
Expr selu(const Use& use, const Expr& x) {
  const Expr alpha = like(x, use.number("alpha", 1.67326319217681884765625)),
             gamma = like(x, use.number("gamma", 1.05070102214813232421875));
  return gamma * select(is_positive(x), x, alpha * exp_minus_1(x));
}
Expr celu(const Use& use, const Expr& x) {
  const Expr alpha = like(x, use.number("alpha", 1));
  return max(x, like(x, 0)) + min(like(x, 0), alpha * exp_minus_1(x / alpha));
}
Expr logistic(const Use& /*use*/, const Expr& x) { return sigmoid(x); }
Expr hard_sigmoid(const Use& use, const Expr& x) {
  return clamp(x * like(x, use.number("alpha", 0.2)) + like(x, use.number("beta", 0.5)), like(x, 0),
               like(x, 1));
}
Expr hard_swish(const Use& /*use*/, const Expr& x) {
  return x * clamp(x * like(x, 1.0 / 6) + like(x, 0.5), like(x, 0), like(x, 1));
}
Expr soft_plus(const Use& /*use*/, const Expr& x) { return softplus(x); }
Expr soft_sign(const Use& /*use*/, const Expr& x) { return x / (like(x, 1) + unary(UnaryOp::kAbs, x)); }
Expr mish(const Use& /*use*/, const Expr& x) { return x * unary(UnaryOp::kTanh, softplus(x)); }
Expr swish(const Use& use, const Expr& x) { return x * sigmoid(x * like(x, use.number("alpha", 1))); }
Expr gelu(const Use& use, const Expr& x) {
  const Expr half = x * like(x, 0.5);
  if (use.word("approximate", "none") == "tanh") {
    const Expr inner = like(x, sqrt2 * inv_sqrtpi) * (x + x * x * x * like(x, 0.044715));
    return half * (like(x, 1) + unary(UnaryOp::kTanh, inner));
  }
  return half * (like(x, 1) + unary(UnaryOp::kErf, x * like(x, 1 / sqrt2)));
}
Expr shrink(const Use& use, const Expr& x) {
  const double lambda = use.number("lambd", 0.5), bias = use.number("bias", 0);
  return select(
      x < like(x, -lambda), x + like(x, bias),
      select(binary(BinaryOp::kGt, x, like(x, lambda)), x - like(x, bias), select(is_nan(x), x, like(x, 0))));
}

Result<std::vector<TensorType>> gelu_types(const Use& use) {
  const std::string way = use.word("approximate", "none");
  if (way != "none" && way != "tanh")
    return invalid_argument("approximate is ", way, ", expected none or tanh");
  return like_first(use);
}

// --- Clip, Cast, Dropout ---
// Bounds are attributes up to operator set 10, inputs since.
void clip(const Use& use, MathWriter& m) {
  m.result([&](const te::Indices& i) {
    Expr x = load(m.in(0), i);
    const auto bound = [&](size_t input) {
      return at(m.in(input), te::Indices(use.shape(input).size(), Expr(0)));
    };
    if (use.has(1)) x = max(x, as(x->dtype, bound(1)));
    if (use.has(2)) x = min(x, as(x->dtype, bound(2)));
    if (use.has_attribute("min")) x = max(x, like(x, use.number("min", 0)));
    if (use.has_attribute("max")) x = min(x, like(x, use.number("max", 0)));
    return x;
  });
}

Result<std::vector<TensorType>> cast_types(const Use& use) {
  const std::string name = use.word("to", "");
  const std::optional<DType> to = dtype_from_name(name);
  if (!to) return invalid_argument("a cast to \"", name, "\" is not served");
  return one({*to, use.shape(0)});
}
Result<std::vector<TensorType>> cast_like_types(const Use& use) { return one({use.dtype(1), use.shape(0)}); }

void cast_to(const Use& /*use*/, MathWriter& m) {
  const DType to = m.type().dtype;
  m.result([&](const te::Indices& i) {
    const Expr x = load(m.in(0), i);
    return is_float(x->dtype) && !is_float(to) && to != DType::kBool ? to_integer(to, x) : x;
  });
}

// Dropout of inference passes everything on. Its mask is all true.
Result<std::vector<TensorType>> dropout_types(const Use& use) {
  if (use.has(2)) {
    ASSIGN_OR_RETURN(const std::vector<double> training, use.numbers(2));
    if (training.at(0) != 0) return invalid_argument("training is not served");
  }
  return std::vector<TensorType>{use.type(0), {DType::kBool, use.shape(0)}};
}
void dropout(const Use& use, MathWriter& m) {
  formula<same>(use, m);
  m.result(1, [](const te::Indices& /*i*/) { return bool_imm(true); });
}

constexpr auto kKind = OperatorKind::kElementwise;
template <Formula kFormula>
constexpr Operator row(std::string_view name) {
  return {name, kKind, 1, 1, 1, like_first, formula<kFormula>};
}

constexpr Operator kRows[] = {
    row<absolute>("Abs"),
    row<negative>("Neg"),
    row<ceiling>("Ceil"),
    row<direct<UnaryOp::kFloor>>("Floor"),
    row<direct<UnaryOp::kRound>>("Round"),
    row<direct<UnaryOp::kExp>>("Exp"),
    row<direct<UnaryOp::kLog>>("Log"),
    row<direct<UnaryOp::kSqrt>>("Sqrt"),
    row<direct<UnaryOp::kTanh>>("Tanh"),
    row<direct<UnaryOp::kErf>>("Erf"),
    row<direct<UnaryOp::kSin>>("Sin"),
    row<direct<UnaryOp::kCos>>("Cos"),
    row<direct<UnaryOp::kTan>>("Tan"),
    row<direct<UnaryOp::kAsin>>("Asin"),
    row<direct<UnaryOp::kAcos>>("Acos"),
    row<direct<UnaryOp::kAtan>>("Atan"),
    row<direct<UnaryOp::kSinh>>("Sinh"),
    row<direct<UnaryOp::kCosh>>("Cosh"),
    row<direct<UnaryOp::kAsinh>>("Asinh"),
    row<direct<UnaryOp::kAcosh>>("Acosh"),
    row<direct<UnaryOp::kAtanh>>("Atanh"),
    row<reciprocal>("Reciprocal"),
    row<sign>("Sign"),
    row<bits_inverted>("BitwiseNot"),
    {"Not", kKind, 1, 1, 1, like_first, formula<inverted>},
    {"IsNaN", kKind, 1, 1, 1, truth, formula<nan_found>},
    {"IsInf", kKind, 1, 1, 1, truth, formula<is_infinite>},
    row<same>("Identity"),
    row<relu>("Relu"),
    row<leaky_relu>("LeakyRelu"),
    row<thresholded_relu>("ThresholdedRelu"),
    row<elu>("Elu"),
    row<selu>("Selu"),
    row<celu>("Celu"),
    row<logistic>("Sigmoid"),
    row<hard_sigmoid>("HardSigmoid"),
    row<hard_swish>("HardSwish"),
    row<soft_plus>("Softplus"),
    row<soft_sign>("Softsign"),
    row<mish>("Mish"),
    row<swish>("Swish"),
    {"Gelu", kKind, 1, 1, 1, gelu_types, formula<gelu>},
    row<shrink>("Shrink"),
    {"Clip", kKind, 1, 3, 1, like_first, clip},
    {"Cast", kKind, 1, 1, 1, cast_types, cast_to},
    {"CastLike", kKind, 2, 2, 1, cast_like_types, cast_to},
    {"Dropout", kKind, 1, 3, 2, dropout_types, dropout},
};

}  // namespace
}  // namespace unary_ops

std::span<const Operator> unary_operators() { return unary_ops::kRows; }

}  // namespace tuner::graph
