// How far sums err: what tolerances of operators are made of. Values are drawn evenly from [-1, 1).
#pragma once

#include <cstdint>

namespace tuner {

inline constexpr double kRounding = 0x1p-24;  // the most one operation errs, relative to its result
// Errors are independent and their sum is nearly normal: this many standard deviations are never reached,
// also not by the worst of 2^40 elements.
inline constexpr double kDeviations = 8;
inline constexpr double kLeastTolerance = 1e-6;  // a few operations at the end: bias, activation
inline constexpr double kRelativeTolerance = 1e-5;
inline constexpr double kTypicalRounding = 0.42;  // of kRounding; derived at product_sum_tolerance

// Returns the most that the sum of n values is off.
double value_sum_error(int64_t n);
// The same for n positive values, relative to the sum.
double positive_sum_error(int64_t n);
// Returns the largest of many sums of n products: four of their standard deviations (of 10,000 it is 3.8 to
// 4.7).
double largest_sum(double n);
// Returns the absolute part for outputs that are each a sum of `terms` products. Up to 70,000 terms it is at
// most 1e-5 of the largest output.
double product_sum_tolerance(int64_t terms);

}  // namespace tuner
