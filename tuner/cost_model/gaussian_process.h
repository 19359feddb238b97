// GaussianProcess: regression that knows its own uncertainty, for the few hundred rows of a search.
//
// The prior of a value is the sum of a constant, a weighted sum of the trends (predictions of models of
// similar tasks), a smooth function of the features with a length scale for each (Matern 5/2), and noise. One
// amplitude, fitted to the rows, scales everything. Deterministic, single-threaded; not thread-safe.
//
// Cost: fit() takes n^3 / 3; tune() takes about 30 of those on at most tune_rows rows; an append to a
// PoolPosterior takes n * pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tuner {

// Features of candidates, stored by column: each column has `rows` values between 0 and 1. The trends come
// last.
struct GpInputs {
  size_t rows = 0, columns = 0, trends = 0;
  std::vector<float> values;  // (columns + trends) x rows
  GpInputs() = default;
  GpInputs(size_t rows, size_t columns, size_t trends)
      : rows(rows), columns(columns), trends(trends), values(rows * (columns + trends)) {}
  float& at(size_t row, size_t column) { return values[column * rows + row]; }
  float at(size_t row, size_t column) const { return values[column * rows + row]; }
  GpInputs selected(std::span<const size_t> rows) const;
  void append(const GpInputs& more);
};

class GaussianProcess {
 public:
  GaussianProcess(size_t columns, size_t trends);

  // Moves length scales and noise from their present values to where the rows are more likely.
  void tune(const GpInputs& inputs, std::span<const float> y, int evaluations);
  // Conditions on the rows, whose values are `y`.
  void fit(const GpInputs& inputs, std::span<const float> y);
  // Returns the mean at each candidate.
  std::vector<float> mean(const GpInputs& pool) const;

  float noise() const { return noise_; }
  float amplitude() const { return amplitude_; }  // standard deviation
  const std::vector<float>& length_scales() const { return scale_; }

 private:
  friend class PoolPosterior;
  // Writes the prior covariances of row `row` of `a` with every row of `b`, without the amplitude.
  void covariances(const GpInputs& a, size_t row, const GpInputs& b, float* out) const;
  float variance(const GpInputs& inputs, size_t row) const;  // prior variance of one row
  double log_likelihood(const GpInputs& inputs, std::span<const float> y) const;
  double log_prior() const;

  std::vector<float> scale_;     // per column
  float noise_ = 0.05f;          // variance, relative to that of the smooth part
  float additive_ = 1;           // variance of the sum of one function per column, relative like noise_
  GpInputs inputs_;              // inputs of the fit
  std::vector<double> lower_;    // Cholesky factor, row-major n x n
  std::vector<double> solved_;   // lower^-1 y
  std::vector<double> weights_;  // (lower lower^T)^-1 y
  float amplitude_ = 1;
  // State of tune(): the step of each parameter, and which parameter is next.
  std::vector<float> step_;
  size_t next_ = 0;
};

// Mean and deviation at each candidate of a pool, updated as rows and candidates are added. A batch is chosen
// one candidate at a time, each as if those before it had turned out as predicted.
class PoolPosterior {
 public:
  // `gp` must be fitted, and must not change while this lives.
  PoolPosterior(const GaussianProcess& gp, const GpInputs& pool);
  size_t size() const { return pool_.rows; }
  size_t rows() const { return rows_.size(); }
  // Appends candidates to the pool.
  void extend(const GpInputs& more);
  // Assumes that candidate i has its predicted value: its deviation and its neighbours' shrink. It becomes
  // the last row.
  void believe(size_t i);
  // Sets the values of all rows in order: those of the fit, then the believed ones. NaN: as predicted.
  void set_values(std::span<const float> y);
  float mean(size_t i) const { return mean_[i]; }
  float deviation(size_t i) const;

 private:
  void solve_columns(size_t row, size_t first);
  void update_means(size_t first);

  const GaussianProcess& gp_;
  GpInputs pool_, row_inputs_;
  std::vector<std::vector<double>> lower_;  // row i of the Cholesky factor
  std::vector<double> solved_;              // lower^-1 y
  std::vector<std::vector<float>> rows_;    // lower^-1 k(row, pool), for each row
  std::vector<float> mean_, variance_;      // variance without the amplitude
};

}  // namespace tuner
