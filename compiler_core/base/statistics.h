// Summaries of samples. Each figure is defined once, so that a race, `records diff`, a report and an estimate
// agree on the same samples.
//
// Pure arithmetic: the same samples give the same figures on every machine. The order of values does not
// matter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tuner {

// Returns the middle value; for an even number of values the mean of the middle two; 0 without values.
double median(std::span<const double> values);
// The same without a copy; it reorders `values`.
double median_in_place(std::span<double> values);

// Returns the value below which the share `level` (0 to 1) of the values lies. Sorted values stand at 0,
// 1/(n-1), .., 1, with interpolation between them (type 7 of Hyndman and Fan, as in R and NumPy). 0 without
// values.
double quantile(std::vector<double> values, double level);
// Returns the value that a quarter of the values are below. It is the time of a kernel in one process of a
// race, because disturbances make a call slower, never faster.
double lower_quartile(std::vector<double> values);

struct WeightedValue {
  double value, weight;
};
// Returns the smallest value that reaches the share `level` of the total weight, together with all smaller
// values. It does not interpolate, because weights are trust, not counts. 0 without values.
double weighted_quantile(std::vector<WeightedValue> values, double level);

// A mean with its spread and sample size.
struct Mean {
  double mean = 0;
  double deviation = 0;  // standard deviation of one value; 0 with fewer than two
  size_t n = 0;
  size_t degrees = 0;  // degrees of freedom of the deviation
  // Returns the standard deviation of the mean itself.
  double deviation_of_mean() const;
};
// Returns the arithmetic mean; zeros without values.
Mean mean_of(std::span<const double> values);
// Returns the mean after a fifth is cut off each end, with Yuen's deviation of a single value: that of the
// values with both ends pulled in, divided by the share left. Use it if some values are far off. Zeros
// without values.
Mean trimmed_mean_of(std::vector<double> values);

struct Interval {
  double low = 0, high = 0;
};
// Returns the 95 % bootstrap interval of the median: percentiles of the medians of all resamples; with more
// than 64 samples, of 2,000 resamples (own generator, fixed seed). One sample gives itself twice; none gives
// zeros.
Interval median_interval(std::span<const double> samples);

// Returns the value that Student's t with `degrees` of freedom (> 0, possibly fractional) stays below with
// `probability` (in (0, 1)).
double student_quantile(double probability, double degrees);

}  // namespace tuner
