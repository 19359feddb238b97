// What rounds of two programs say: figures of them and of their ratios, and how sure they are. Medians and
// quantiles are those of compiler_core/base/statistics.h.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler_core/base/statistics.h"

namespace tuner {

// A figure and the range that holds it with 95 % confidence.
struct Figure {
  double low = 0, middle = 0, high = 0;
};

// The median, by bootstrap: resampled 2,000 times from a generator seeded with `seed`, so that the same
// samples give the same answer. None: zeros.
Figure median_interval(const std::vector<double>& samples, uint64_t seed);
// median(numerator) / median(denominator). Sample i of both comes from the same round, so rounds are
// resampled and pairs stay together: what slows a whole round (clocks, heat) does not widen the interval.
// Both have the same size.
Figure ratio_interval(const std::vector<double>& numerator, const std::vector<double>& denominator,
                      uint64_t seed);
// The same two of another quantile than the median.
Figure quantile_interval(const std::vector<double>& samples, double q, uint64_t seed);
Figure quantile_ratio_interval(const std::vector<double>& numerator, const std::vector<double>& denominator,
                               double q, uint64_t seed);

double geometric_mean(const std::vector<double>& values);  // 0 of none

}  // namespace tuner
