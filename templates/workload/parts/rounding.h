// How far sums err: what tolerances of operators are made of. Values are drawn evenly from [-1, 1).
#pragma once

#include <cstdint>

namespace tuner {

inline constexpr double kRounding = 0x1p-24;  // the most one operation errs, relative to its result
// So many standard deviations of a sum whose roundings each err by the most they can are never reached. They
// are 19 of those of typical roundings (product_sum_tolerance). A normal law would need half as many, but how
// far one sum errs depends on the path of its partial sums, so over many sums the law is a mixture with long
// tails: of 400,000 sums in one chain the worst erred by 10.9 typical deviations, the hundredth by 6.6. Ten
// times fewer are further off for each 2.1 more: one of 1e10 by 19.
inline constexpr double kDeviations = 8;
inline constexpr double kLeastTolerance = 1e-6;  // a few operations at the end: bias, activation
inline constexpr double kRelativeTolerance = 1e-5;

// Returns the most that the sum of n values is off.
double value_sum_error(int64_t n);
// The same for n positive values, relative to the sum.
double positive_sum_error(int64_t n);
// Returns the largest of many sums of n products: four of their standard deviations (of 10,000 it is 3.8 to
// 4.7).
double largest_sum(double n);
// Returns the absolute part for outputs that are each a sum of `terms` products. Up to 14,000 terms it is at
// most 1e-5 of the largest output, of 70,000 terms 2.3e-5.
double product_sum_tolerance(int64_t terms);

}  // namespace tuner
