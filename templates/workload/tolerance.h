// How far a right answer may be from the double precision one. Measuring, verifying and tests all take it
// from here. It holds for arguments drawn evenly from [-1, 1), which is what this project uses everywhere.
#pragma once

#include <cstdint>

#include "templates/workload/workload.h"

namespace tuner {

// An element is right when |out - reference| <= absolute + relative * |reference|.
struct Tolerance {
  double absolute = 0, relative = 0;
};

// Returns a tolerance loose enough that no right kernel is refused, whatever its order of sums and its
// rounding of exp and square roots, and as tight as that allows. Exact (0, 0) if nothing is rounded. It is
// for the direct sums; a template that computes differently has its own (AnyTemplate::tolerance).
Tolerance tolerance_of(const Workload& workload);

// Returns the absolute part for outputs that are each a sum of `terms` products. Up to 70,000 terms it is at
// most 1e-5 of the largest output.
double product_sum_tolerance(int64_t terms);

// The same for a 3x3 convolution by Winograd's F(m, 3), m = 2, 4, 6, over `channels`; and its share of the
// largest output.
double winograd_tolerance(int64_t m, int64_t channels);
double winograd_relative_error(int64_t m, int64_t channels);
constexpr double kMostWinogradError = 5e-5;  // a template declines if its answers may be further off

}  // namespace tuner
