// The two figures a time is published with: the median of its samples and how sure that median is.
#pragma once

#include <cstdint>
#include <span>

namespace tuner {

// Of an even number of values: the mean of the middle two. 0 of none.
double median(std::span<const double> values);

struct Interval {
  double low = 0, high = 0;
};
// 95 % bootstrap interval of the median: percentiles of the medians of 2,000 resamples. The same samples give
// the same interval on every machine (own generator, fixed seed). One sample: that sample twice; none: zeros.
Interval median_interval(std::span<const double> samples);

}  // namespace tuner
