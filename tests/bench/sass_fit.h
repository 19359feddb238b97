// What the kinds of issue that an estimate counts (warp_counts.h) take, fitted to machine code.
#pragma once

#include <array>
#include <vector>

#include "compiler_core/codegen_cuda/warp_work.h"

namespace tuner {

using Weights = std::array<double, cuda::kIssues>;

// A kernel: what the estimate counts, and what its machine code takes at least.
struct IssueSample {
  Weights issues{};
  double least = 0;
};

// Weights that are not negative, by least squares of the relative error. An error below what the machine code
// takes counts five times: such an estimate is wrong, one above may be right, because a floor leaves out what
// stands behind branches. Kinds that `known` has a weight for (>= 0) keep it.
Weights fit_weights(const std::vector<IssueSample>& samples, const Weights& known);

double weighted(const Weights& issues, const Weights& weights);

}  // namespace tuner
