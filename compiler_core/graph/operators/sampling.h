// Elements between the elements of an image: which ones a place between them takes, and by which weights.
#pragma once

#include <string>

#include "compiler_core/graph/families.h"

namespace tuner::graph {

// Of one dimension: so many taps for each sample, whose place is -1 where it lies outside and counts as 0.
struct Taps {
  Buffer places, weights;  // [samples..., count]; int64, and the type of the coordinates
  int64_t count = 1;
};

// The value at a sample: the sum over all combinations of taps of weight times element. `samples`: place of
// the sample in `taps`, a list for each dimension. `element`: at places of the dimensions, in order.
Expr interpolated(std::span<const Taps> taps, std::span<const te::Indices> samples, DType dtype,
                  const std::function<Expr(const te::Indices&)>& element);

// A float that is whole as a place, kept where sums with small numbers stay in range.
Expr whole_place(const Expr& x);
// Coordinates are computed in float32 at least.
DType coordinate_type(DType dtype);

}  // namespace tuner::graph
