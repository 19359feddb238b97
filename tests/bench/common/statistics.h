// What samples say: medians, how sure they are, means of ratios.
#pragma once

#include <cstdint>
#include <vector>

namespace tuner {

double median(std::vector<double> values);  // 0 of none
// The value below which a share `q` (0 to 1) of the values lies, interpolated between neighbours; 0 of none.
double quantile(std::vector<double> values, double q);

// A figure and the range that holds it with 95 % confidence.
struct Interval {
  double low = 0, middle = 0, high = 0;
};

// The median, by bootstrap: resampled 2,000 times from a generator seeded with `seed`, so that the same
// samples give the same answer. None: zeros.
Interval median_interval(const std::vector<double>& samples, uint64_t seed);
// median(numerator) / median(denominator). Sample i of both comes from the same round, so rounds are
// resampled and pairs stay together: what slows a whole round (clocks, heat) does not widen the interval.
// Both have the same size.
Interval ratio_interval(const std::vector<double>& numerator, const std::vector<double>& denominator,
                        uint64_t seed);
// The same two of another quantile than the median.
Interval quantile_interval(const std::vector<double>& samples, double q, uint64_t seed);
Interval quantile_ratio_interval(const std::vector<double>& numerator, const std::vector<double>& denominator,
                                 double q, uint64_t seed);

double geometric_mean(const std::vector<double>& values);  // 0 of none

}  // namespace tuner
