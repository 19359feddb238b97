#include "templates/workload/parts/rounding.h"

#include <algorithm>
#include <cmath>

namespace tuner {

// Partial sum i is about sqrt(i/3), so the errors of n roundings have a standard deviation of
// 2^-24 * sqrt(sum over i of i/3) = 2^-24 * n / sqrt(6).
double value_sum_error(int64_t n) {
  return kDeviations * kRounding * static_cast<double>(n) / std::sqrt(6.0);
}

// Partial sums grow evenly, so the errors have a standard deviation of
// 2^-24 * sqrt(sum over i of i^2) / n = 2^-24 * sqrt(n/3).
double positive_sum_error(int64_t n) {
  return kDeviations * kRounding * std::sqrt(static_cast<double>(n) / 3);
}

double largest_sum(double n) { return 4 * std::sqrt(n) / 3; }

// The sum of n products of two numbers drawn evenly from [-1, 1) is about sqrt(n)/3, and so are its partial
// sums; each of the n roundings errs by up to 2^-24 of the partial sum at hand. Errors are independent, so
// their sum has a standard deviation of at most 2^-24 * sqrt(sum over i of i/9) = 2^-24 * n / (3 * sqrt(2)).
// Eight of those are never reached by a right kernel, in whatever order it sums, and a single missing term
// (about 1/3) is seen up to n of a million.
//
// Typical roundings err by less: on average over what is rounded, the square of a rounding error is a third
// of the square of half a last place, which is 2^-24 / x for a mantissa x in [1, 2); over mantissas as they
// occur, 1/x^2 is 0.54. So the standard deviation of one is sqrt(0.54 / 3) = 0.42 of kRounding.
double product_sum_tolerance(int64_t terms) {
  const double deviation = kRounding * static_cast<double>(terms) / (3 * std::sqrt(2.0));
  return std::max(kLeastTolerance, kDeviations * deviation);
}

}  // namespace tuner
