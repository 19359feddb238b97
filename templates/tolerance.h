// How far a right answer may be from the double precision one: the one place that knows, for
// measuring, verifying and tests. All of it is for arguments drawn evenly from [-1, 1), as they are
// everywhere here.
#pragma once

#include <cstdint>

#include "templates/workload.h"

namespace tuner {

// An element is right when |out - reference| <= absolute + relative * |reference|.
struct Tolerance {
  double absolute = 0, relative = 0;
};

// Loose enough that no right kernel is refused, in whatever order it sums and however it rounds exp and
// square roots; as tight as that allows. Exact (0, 0) where nothing is rounded.
Tolerance tolerance_of(const Workload& workload);

// The absolute part for outputs that are each a sum of `terms` products.
double product_sum_tolerance(int64_t terms);

}  // namespace tuner
