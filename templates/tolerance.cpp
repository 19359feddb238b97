#include "templates/tolerance.h"

#include <algorithm>
#include <cmath>

namespace tuner {
namespace {

constexpr double kRounding = 0x1p-24;  // the most one operation errs, relative to its result
// Errors are independent and their sum is nearly normal: this many standard deviations are never reached,
// also not by the worst of 2^40 elements.
constexpr double kDeviations = 8;
constexpr double kLeast = 1e-6;  // a few operations at the end: bias, activation
constexpr double kRelative = 1e-5;

// A sum of n values evenly from [-1, 1): partial sum i is about sqrt(i/3), so the errors of n roundings have
// a standard deviation of 2^-24 * sqrt(sum over i of i/3) = 2^-24 * n / sqrt(6).
double value_sum_error(int64_t n) {
  return kDeviations * kRounding * static_cast<double>(n) / std::sqrt(6.0);
}

// A sum of n positive values, relative to the sum: partial sums grow evenly, so the errors have a standard
// deviation of 2^-24 * sqrt(sum over i of i^2) / n = 2^-24 * sqrt(n/3).
double positive_sum_error(int64_t n) {
  return kDeviations * kRounding * std::sqrt(static_cast<double>(n) / 3);
}

// int8: integers do not round. bfloat16: the product of two of its numbers is exact in float32, so that a
// product costs one rounding, that of the addition, as with a fused multiply-add of float32. Dot-product
// instructions round so too, product by product; that they flush denormal numbers is far below: products of
// numbers of 24 bits are no smaller than 2^-46.
Tolerance of(const MatmulWorkload& w) {
  if (w.dtype == DType::kInt8) return {0, 0};
  return {product_sum_tolerance(w.k), kRelative};
}
Tolerance of(const Conv2dWorkload& w) {
  return {product_sum_tolerance(w.in_channels / w.groups * w.kernel_height * w.kernel_width), kRelative};
}

// All elements are between exp(-2) and exp(2) over the number of columns: an error of any of them is
// relative. exp itself is good to 2^-21 on every target (fast versions multiply by log2(e) first).
Tolerance of(const SoftmaxWorkload& w) {
  return {kLeast / static_cast<double>(w.columns), std::max(kRelative, positive_sum_error(w.columns))};
}

// Outputs are below a few units, since the variance of many columns is about 1/3. A row of few columns may
// have almost none: then the rounding of (x - mean) is divided by what is left, in the worst case by the root
// of epsilon.
Tolerance of(const LayerNormWorkload& w) {
  constexpr int64_t kManyColumns = 32;
  const double spread = std::max(2 * kLeast, 2 * positive_sum_error(w.columns));
  if (w.columns >= kManyColumns) return {spread, kRelative};
  return {std::max(spread, 4 * kRounding / std::sqrt(w.epsilon)), kRelative};
}

// The largest of numbers is one of them.
Tolerance of(const ReduceWorkload& w) {
  if (w.reduction == RowReduction::kMax || w.reduction == RowReduction::kMin) return {0, 0};
  const double error = value_sum_error(w.columns);
  if (w.reduction == RowReduction::kSum) return {std::max(kLeast, error), kRelative};
  // A mean is small, and so must be what it may err: 2^-22 for few columns.
  return {std::max(4 * kRounding, error / static_cast<double>(w.columns)), kRelative};
}

Tolerance of(const TransposeWorkload&) { return {0, 0}; }

// Without arithmetic it is a copy.
Tolerance of(const ElementwiseWorkload& w) {
  return w.scale || w.bias || w.residual ? Tolerance{kLeast, kRelative} : Tolerance{0, 0};
}

}  // namespace

Tolerance tolerance_of(const Workload& workload) {
  return std::visit([](const auto& w) { return of(w); }, workload.op());
}

// The sum of n products of two numbers drawn evenly from [-1, 1) is about sqrt(n)/3, and so are its partial
// sums; each of the n roundings errs by up to 2^-24 of the partial sum at hand. Errors are independent, so
// their sum has a standard deviation of at most 2^-24 * sqrt(sum over i of i/9) = 2^-24 * n / (3 * sqrt(2)).
// Eight of those are never reached by a right kernel, in whatever order it sums, and a single missing term
// (about 1/3) is seen up to n of a million.
double product_sum_tolerance(int64_t terms) {
  return std::max(kLeast, kDeviations * kRounding * static_cast<double>(terms) / (3 * std::sqrt(2.0)));
}

}  // namespace tuner
