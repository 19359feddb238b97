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

// The next number of a generator that is the same on every machine (splitmix64). `state` is any number at
// first.
uint64_t next_random(uint64_t& state);

// The value that Student's t with that many degrees of freedom (>= 1, need not be whole) stays below with
// `probability` (in (0, 1)).
double student_quantile(double probability, double degrees);

}  // namespace tuner
