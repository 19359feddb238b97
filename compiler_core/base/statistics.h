// What samples are summarised by. One definition of each figure, so that a race, `records diff`, a report and
// an estimate that see the same samples say the same.
//
// Pure arithmetic: the same samples give the same figures on every machine. Values may stand in any order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tuner {

// The middle value; of an even number of values the mean of the middle two. 0 of none.
double median(std::span<const double> values);
// The same without a copy: leaves `values` in another order.
double median_in_place(std::span<double> values);

// The value that the share `level` (0 to 1) of the values lies below. Sorted values stand at 0, 1/(n-1), ..,
// 1, and between two of them it is interpolated (type 7 of Hyndman and Fan, as in R and NumPy). 0 of none.
double quantile(std::vector<double> values, double level);
// A quarter of the values are below: the time of a kernel in one process of a race. What disturbs a call
// makes it slower, never faster.
double lower_quartile(std::vector<double> values);

struct WeightedValue {
  double value, weight;
};
// The smallest of the values with which, together with all smaller ones, the share `level` of the weight is
// reached. Nothing is interpolated: weights are trust, not counts. 0 of none.
double weighted_quantile(std::vector<WeightedValue> values, double level);

// A mean and what it rests on.
struct Mean {
  double mean = 0;
  double deviation = 0;  // standard deviation of one value; 0 of fewer than two
  size_t n = 0;
  size_t degrees = 0;  // of freedom that the deviation has
  // Standard deviation of the mean itself.
  double deviation_of_mean() const;
};
// Arithmetic mean; zeros of none.
Mean mean_of(std::span<const double> values);
// Mean of what is left after a fifth is taken off each end, and Yuen's deviation of a single value: of the
// values with those ends drawn in, over the share left. For values of which some are far off. Zeros of none.
Mean trimmed_mean_of(std::vector<double> values);

struct Interval {
  double low = 0, high = 0;
};
// 95 % bootstrap interval of the median: percentiles of the medians of all resamples, or of 2,000 of them
// when there are more than 64 samples (own generator, fixed seed). One sample: that sample twice; none:
// zeros.
Interval median_interval(std::span<const double> samples);

// The value that Student's t with that many degrees of freedom (> 0, need not be whole) stays below with
// `probability` (in (0, 1)).
double student_quantile(double probability, double degrees);

}  // namespace tuner
