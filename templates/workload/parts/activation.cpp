#include "templates/workload/parts/activation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numbers>

namespace tuner {
namespace {

struct KindText {
  std::string_view name;
  int numbers;
};
// In the order of ActivationKind.
constexpr KindText kKinds[] = {{"none", 0}, {"relu", 0},       {"clip", 2}, {"leaky", 1}, {"sigmoid", 0},
                               {"silu", 0}, {"hard_swish", 0}, {"tanh", 0}, {"gelu", 0},  {"gelu_tanh", 0}};
static_assert(std::size(kKinds) == kActivationKinds, "a kind has no text");

Expr like(const Expr& x, double value) { return float_imm(value, x->dtype); }
// x / (1 + e^-y). Where e^-y is infinite the quotient is 0, as it should be.
Expr over_one_plus_exp(const Expr& x, const Expr& minus_y) {
  return x / (like(x, 1) + unary(UnaryOp::kExp, minus_y));
}

}  // namespace

std::string_view activation_kind_name(ActivationKind kind) { return kKinds[static_cast<size_t>(kind)].name; }
int activation_numbers(ActivationKind kind) { return kKinds[static_cast<size_t>(kind)].numbers; }

std::optional<ActivationKind> activation_kind_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kKinds, name, &KindText::name);
  if (found == std::end(kKinds)) return std::nullopt;
  return static_cast<ActivationKind>(found - std::begin(kKinds));
}

std::string shortest_text(float number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string activation_text(const Activation& a) {
  std::string text(activation_kind_name(a.kind));
  const int numbers = activation_numbers(a.kind);
  if (numbers > 0) text += ":" + shortest_text(a.first);
  if (numbers > 1) text += ":" + shortest_text(a.second);
  return text;
}

std::optional<Activation> activation_from_text(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const auto kind = activation_kind_from_name(text.substr(0, colon));
  if (!kind) return std::nullopt;
  text.remove_prefix(colon);
  std::array<float, 2> values{};
  for (int i = 0; i < activation_numbers(*kind); ++i) {
    if (!text.starts_with(':')) return std::nullopt;
    text.remove_prefix(1);
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), values.at(i));
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
  }
  if (!text.empty()) return std::nullopt;
  const Activation read{*kind, values[0] + 0.0F, values[1] + 0.0F};
  return has_good_numbers(read) ? std::optional(read) : std::nullopt;
}

bool has_good_numbers(const Activation& a) {
  if (!std::isfinite(a.first) || !std::isfinite(a.second)) return false;
  if (a.kind == ActivationKind::kClip) return a.first <= a.second;
  const int numbers = activation_numbers(a.kind);
  return (numbers > 0 || a.first == 0) && a.second == 0;
}

Expr activated(const Activation& a, Expr x) {
  switch (a.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return max(x, is_float(x->dtype) ? like(x, 0) : int_imm(0, x->dtype));
    case ActivationKind::kClip:
      return min(max(x, like(x, a.first)), like(x, a.second));
    case ActivationKind::kLeaky:  // one of the summands is zero: nothing is rounded twice
      return max(x, like(x, 0)) + min(x, like(x, 0)) * like(x, a.first);
    case ActivationKind::kSigmoid:
      return over_one_plus_exp(like(x, 1), unary(UnaryOp::kNeg, x));
    case ActivationKind::kSilu:
      return over_one_plus_exp(x, unary(UnaryOp::kNeg, x));
    case ActivationKind::kHardSwish:
      return x * min(max(x * like(x, 1.0 / 6) + like(x, 0.5), like(x, 0)), like(x, 1));
    case ActivationKind::kTanh:
      return unary(UnaryOp::kTanh, x);
    case ActivationKind::kGelu:
      return x * like(x, 0.5) * (like(x, 1) + unary(UnaryOp::kErf, x * like(x, 1 / std::numbers::sqrt2)));
    case ActivationKind::kGeluTanh: {  // (1 + tanh(u)) / 2 = 1 / (1 + e^-2u)
      const double factor = -2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
      return over_one_plus_exp(x, x * (like(x, factor) + x * x * like(x, factor * 0.044715)));
    }
  }
  return x;
}

// Of silu at 2.40, of hard_swish at 3, of gelu at sqrt(2), where the second derivatives are 0 or jump.
double steepest(const Activation& a) {
  switch (a.kind) {
    case ActivationKind::kLeaky:
      return std::max(1.0, std::abs(static_cast<double>(a.first)));
    case ActivationKind::kSigmoid:
      return 0.25;
    case ActivationKind::kSilu:
      return 1.1;
    case ActivationKind::kHardSwish:
      return 1.5;
    case ActivationKind::kGelu:
    case ActivationKind::kGeluTanh:
      return 1.13;
    default:
      return 1;
  }
}

}  // namespace tuner
