#include "templates/workload/tolerance.h"

#include <algorithm>
#include <cmath>

#include "templates/workload/winograd_math.h"
#include "templates/workload/workload_math.h"

namespace tuner {
namespace {

constexpr double kRounding = 0x1p-24;  // the most one operation errs, relative to its result
// Errors are independent and their sum is nearly normal: this many standard deviations are never reached,
// also not by the worst of 2^40 elements.
constexpr double kDeviations = 8;
constexpr double kLeast = 1e-6;  // a few operations at the end: bias, activation
constexpr double kRelative = 1e-5;
constexpr double kTypicalRounding = 0.42;  // of kRounding; derived at product_sum_tolerance

// The largest of many sums of n products: four of their standard deviations (of 10,000 it is 3.8 to 4.7).
double largest_sum(double n) { return 4 * std::sqrt(n) / 3; }

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

// int8: integers do not round. Nor do answers differ where sums are requantised: that takes one conversion
// and one product of float32, which round alike everywhere, the reference included (te::with_float_type).
//
// bfloat16, float16: the product of two of their numbers is exact in float32, so that a product costs one
// rounding, that of the addition, as with a fused multiply-add of float32. Dot-product instructions round so
// too, product by product; that they flush denormal numbers is far below: products of numbers of 24 bits are
// no smaller than 2^-46. A result that is rounded to bfloat16 errs by half a last place more: 2^-8 of itself,
// with 8 bits. float16 has 11 bits, and below 2^-14 steps of 2^-24.
//
// allow_tf32: an operand loses between 0 and a step of 2^-10 (times its power of two), evenly. Over values that lie evenly, the
// square of what it loses is 1/7 of 2^-20 of its own square in the mean, and what it loses times itself 0.32 of 2^-10. So a product
// errs by a root mean square of 2^-10 * sqrt(2/7 + 2 * 0.32^2) = 0.70 * 2^-10 of its own, which is 1/3, and errors have
// the signs of products, which are even: the sum of n errs by 0.70 * 2^-10 * sqrt(n) / 3.
double tf32_error(int64_t terms) {
  return kDeviations * 0.70 * 0x1p-10 * std::sqrt(static_cast<double>(terms)) / 3;
}

template <class Product>
Tolerance of_product(const Product& w, int64_t terms) {
  if (w.dtype == DType::kInt8) return {0, 0};
  const double narrow = w.out_dtype() == DType::kBFloat16  ? 0x1p-8
                        : w.out_dtype() == DType::kFloat16 ? 0x1p-11
                                                           : 0;
  const double least = w.out_dtype() == DType::kFloat16 ? 0x1p-25 : 0;
  const double steep = std::max(1.0, steepest(w.activation));  // one that is flat still rounds its own result
  const double lost = w.allow_tf32 ? tf32_error(terms) : 0;
  return {(1 + narrow) * steep * (product_sum_tolerance(terms) + lost) + least, kRelative + narrow};
}
Tolerance of(const MatmulWorkload& w) { return of_product(w, w.k); }
Tolerance of(const Conv2dWorkload& w) {
  return of_product(w, w.in_channels / w.groups * w.kernel_height * w.kernel_width);
}

// The largest of numbers is one of them; an average errs as its sum does, divided, and by what a mean may.
Tolerance of(const Pool2dWorkload& w) {
  if (w.pooling == Pooling::kMax) return {0, 0};
  const int64_t terms = w.kernel_height * w.kernel_width;
  return {std::max(4 * kRounding, value_sum_error(terms) / static_cast<double>(terms)), kRelative};
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

// True if the activation gives one of the numbers it is given, or a limit: nothing is rounded.
bool is_exact(const Activation& a) {
  return a.kind == ActivationKind::kNone || a.kind == ActivationKind::kRelu ||
         a.kind == ActivationKind::kClip;
}

// Without arithmetic it is a copy.
Tolerance of(const ElementwiseWorkload& w) {
  const bool copies = !w.scale && !w.bias && !w.residual && is_exact(w.activation);
  return copies ? Tolerance{0, 0} : Tolerance{kLeast * std::max(1.0, steepest(w.activation)), kRelative};
}

Tolerance of(const ProgramWorkload& w) { return tolerance_of_program(w); }

// How much more than a direct sum F(m, 3) errs in one dimension, in variance; see winograd_tolerance.
double winograd_growth(int64_t m) {
  const Winograd w = winograd(m);
  const auto square = [](const std::vector<double>& row) {
    double sum = 0;
    for (const double x : row) sum += x * x;
    return sum;
  };
  double growth = 0;
  for (const std::vector<double>& row : w.a) {
    double sum = 0;
    for (size_t x = 0; x < row.size(); ++x) sum += row[x] * row[x] * square(w.b[x]) * square(w.g[x]);
    growth = std::max(growth, sum);
  }
  return growth;
}

}  // namespace

bool shares_errors(const Workload& workload) {
  return std::holds_alternative<SoftmaxWorkload>(workload.op()) ||
         std::holds_alternative<LayerNormWorkload>(workload.op());
}

Tolerance tolerance_of(const Workload& workload) {
  return std::visit([](const auto& w) { return of(w); }, workload.op());
}

float drawn_factor(const Workload& workload, std::string_view operand) {
  const auto scales = [&]<class W>(const W& w) {
    if constexpr (requires { w.narrow_out; }) return operand == "scale" && requantises(w);
    return false;
  };
  return std::visit(scales, workload.op()) ? 0x1p-12F : 1;
}

// The sum of n products of two numbers drawn evenly from [-1, 1) is about sqrt(n)/3, and so are its partial
// sums; each of the n roundings errs by up to 2^-24 of the partial sum at hand. Errors are independent, so
// their sum has a standard deviation of at most 2^-24 * sqrt(sum over i of i/9) = 2^-24 * n / (3 * sqrt(2)).
// Eight of those are never reached by a right kernel, in whatever order it sums, and a single missing term
// (about 1/3) is seen up to n of a million.
//
// Long sums may err by less: on average over what is rounded, the square of a rounding error is a third of
// the square of half a last place, which is 2^-24 / x for a mantissa x in [1, 2); over mantissas as they
// occur, 1/x^2 is 0.54. So the standard deviation of one is kTypicalRounding = sqrt(0.54 / 3) = 0.42 of
// kRounding.
double product_sum_tolerance(int64_t terms) {
  const double n = static_cast<double>(terms), deviation = kRounding * n / (3 * std::sqrt(2.0));
  const double most = std::max(kRelative * largest_sum(n), kDeviations * kTypicalRounding * deviation);
  return std::max(kLeast, std::min(kDeviations * deviation, most));
}

// Data and weights have a variance of 1/3. In one dimension their transforms at position x have
// ||B[x]||^2 / 3 and ||G[x]||^2 / 3 (rows of the matrices), so errors of the products there arrive at output
// i, taken together, with the variance of a direct sum's error times growth = sum over x of A[i, x]^2
// ||B[x]||^2 ||G[x]||^2: in two dimensions the product of both growths, of the worst i each. What errs at a
// position: the sum over n channels, whose roundings add up to n^2 / 2 in units of (typical rounding)^2 as in
// product_sum_tolerance, and the two transforms before and one behind it, some kTransforms roundings of terms
// as large as what they make, each channel's anew.
double winograd_tolerance(WinogradTile tile, int64_t channels) {
  constexpr double kTransforms = 14;
  const double n = static_cast<double>(channels);
  const double growth = std::sqrt(winograd_growth(tile.rows) * winograd_growth(tile.columns));
  const double deviation = kTypicalRounding * kRounding * growth * std::sqrt(n * n / 2 + kTransforms * n) / 3;
  return std::max(kLeast, kDeviations * deviation);
}

double winograd_relative_error(WinogradTile tile, int64_t channels) {
  return winograd_tolerance(tile, channels) / largest_sum(9.0 * static_cast<double>(channels));
}

}  // namespace tuner
