// What a workload does to each element at the end: a function of one number, some with numbers of their own.
//
//   Activation::kSilu      Activation::clip(0, 6)      Activation::leaky(0.1F)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler_core/ir/expr.h"

namespace tuner {

enum class ActivationKind : uint8_t {
  kNone,
  kRelu,       // max(x, 0)
  kClip,       // min(max(x, low), high)
  kLeaky,      // x, below zero alpha * x
  kSigmoid,    // 1 / (1 + e^-x)
  kSilu,       // x / (1 + e^-x)
  kHardSwish,  // x * min(max(x / 6 + 1/2, 0), 1)
  kTanh,
  kGelu,      // x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,  // the same with tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) in place of erf
};
inline constexpr int kActivationKinds = static_cast<int>(ActivationKind::kGeluTanh) + 1;

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  // float32, so that kernels and reference answers take the same number. 0 where a kind has none.
  float first = 0;   // clip: low; leaky: alpha
  float second = 0;  // clip: high

  static const Activation kNone, kRelu, kSigmoid, kSilu, kHardSwish, kTanh, kGelu, kGeluTanh;
  // -0 becomes 0: equal activations have equal text. validate() says which numbers are good.
  static constexpr Activation clip(float low, float high) {
    return {ActivationKind::kClip, low + 0.0F, high + 0.0F};
  }
  static constexpr Activation leaky(float alpha) { return {ActivationKind::kLeaky, alpha + 0.0F}; }

  friend constexpr bool operator==(const Activation&, const Activation&) = default;
};
inline constexpr Activation Activation::kNone{};
inline constexpr Activation Activation::kRelu{ActivationKind::kRelu};
inline constexpr Activation Activation::kSigmoid{ActivationKind::kSigmoid};
inline constexpr Activation Activation::kSilu{ActivationKind::kSilu};
inline constexpr Activation Activation::kHardSwish{ActivationKind::kHardSwish};
inline constexpr Activation Activation::kTanh{ActivationKind::kTanh};
inline constexpr Activation Activation::kGelu{ActivationKind::kGelu};
inline constexpr Activation Activation::kGeluTanh{ActivationKind::kGeluTanh};

// Returns "none", "relu", "clip", ..., as texts and job files have it.
std::string_view activation_kind_name(ActivationKind kind);
// Returns how many of its two numbers the kind uses.
int activation_numbers(ActivationKind kind);
// Returns the kind of that name, or nothing.
std::optional<ActivationKind> activation_kind_from_name(std::string_view name);

// The text is "none", "relu", "silu", ..., or with numbers "clip:0:6", "leaky:0.1". It reads back as the same
// activation; nothing if a text is none, or its numbers are none that validate() takes.
std::string activation_text(const Activation& activation);
std::optional<Activation> activation_from_text(std::string_view text);

// True if the numbers are finite and low <= high.
bool has_good_numbers(const Activation& activation);

// Returns the shortest text that reads back as the same number.
std::string shortest_text(float number);

// Applies the activation to a value. Values of integers take only none and relu.
Expr activated(const Activation& activation, Expr x);

// Returns how much the activation enlarges an error of x at most: the largest size of its derivative.
double steepest(const Activation& activation);

}  // namespace tuner
