// How far a right answer may be from the double precision one: the one place that knows, for
// measuring, verifying and tests. All of it is for arguments drawn evenly from [-1, 1), as they are
// everywhere here.
#pragma once

#include <cstdint>

#include "templates/workload/workload.h"

namespace tuner {

// An element is right when |out - reference| <= absolute + relative * |reference|.
struct Tolerance {
  double absolute = 0, relative = 0;
};

// Loose enough that no right kernel is refused, in whatever order it sums and however it rounds exp and
// square roots; as tight as that allows. Exact (0, 0) where nothing is rounded.
// For the direct sums; a template that computes otherwise has its own (AnyTemplate::tolerance).
Tolerance tolerance_of(const Workload& workload);

// The absolute part for outputs that are each a sum of `terms` products: for up to 70,000 of them at most
// 1e-5 of the largest output.
double product_sum_tolerance(int64_t terms);

// The same for a 3x3 convolution by Winograd's F(m, 3), m = 2, 4, 6, over `channels`, and what part that is
// of the largest output.
double winograd_tolerance(int64_t m, int64_t channels);
double winograd_relative_error(int64_t m, int64_t channels);
constexpr double kMostWinogradError = 5e-5;  // a template whose answers may be further off declines

}  // namespace tuner
