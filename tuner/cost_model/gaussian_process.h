// GaussianProcess: regression that knows how sure it is, for the few hundred rows of a search.
//
// Prior of a value: a constant + a weighted sum of the trends (predictions of models of similar tasks) + a
// smooth function of the features with a length scale for each (Matern 5/2) + noise. Everything is scaled by
// one amplitude, which the rows decide. Deterministic, single-threaded; not thread-safe.
//
// Cost: fit() n^3 / 3, tune() some 30 of those on at most tune_rows rows, an append to a PoolPosterior
// n * pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tuner {

// Features of some candidates, column by column, each column `rows` values between 0 and 1; then the trends.
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

  // Moves length scales and noise to where the rows are more likely, from where they are now.
  void tune(const GpInputs& inputs, std::span<const float> y, int evaluations);
  // Conditions on the rows.
  void fit(const GpInputs& inputs, std::span<const float> y);
  // Mean at each candidate.
  std::vector<float> mean(const GpInputs& pool) const;

  float noise() const { return noise_; }
  float amplitude() const { return amplitude_; }  // standard deviation
  const std::vector<float>& length_scales() const { return scale_; }

 private:
  friend class PoolPosterior;
  // Prior covariances, without the amplitude, of `row` of `a` with every row of `b`.
  void covariances(const GpInputs& a, size_t row, const GpInputs& b, float* out) const;
  float variance(const GpInputs& inputs, size_t row) const;  // of a row, before anything is known
  double log_likelihood(const GpInputs& inputs, std::span<const float> y) const;
  double log_prior() const;

  std::vector<float> scale_;     // by column
  float noise_ = 0.05f;          // variance, as a share of the smooth part's
  float additive_ = 1;           // variance of the part that is a sum of one function a column, as noise_
  GpInputs inputs_;              // of the fit
  std::vector<double> lower_;    // Cholesky factor, row-major n x n
  std::vector<double> solved_;   // lower^-1 y
  std::vector<double> weights_;  // (lower lower^T)^-1 y
  float amplitude_ = 1;
  // Of tune(): how far each parameter is moved at a time, and which is next.
  std::vector<float> step_;
  size_t next_ = 0;
};

// Mean and deviation at each candidate of a pool, kept up to date while rows and candidates are added: a
// batch is chosen one candidate at a time, each as if the ones before had turned out as predicted.
class PoolPosterior {
 public:
  // `gp` is fitted and stays as it is while this lives.
  PoolPosterior(const GaussianProcess& gp, const GpInputs& pool);
  size_t size() const { return pool_.rows; }
  size_t rows() const { return rows_.size(); }
  // More candidates, behind those there are.
  void extend(const GpInputs& more);
  // Conditions on candidate i having its predicted value: its deviation and its neighbours' shrink. It
  // becomes the last row.
  void believe(size_t i);
  // Values of all rows, in order: those of the fit, then the believed ones; NaN: as predicted.
  void set_values(std::span<const float> y);
  float mean(size_t i) const { return mean_[i]; }
  float deviation(size_t i) const;

 private:
  void solve_columns(size_t row, size_t first);
  void update_means(size_t first);

  const GaussianProcess& gp_;
  GpInputs pool_, row_inputs_;
  std::vector<std::vector<double>> lower_;  // by row: its row of the Cholesky factor
  std::vector<double> solved_;              // lower^-1 y
  std::vector<std::vector<float>> rows_;    // by row: lower^-1 k(row, pool)
  std::vector<float> mean_, variance_;      // variance without the amplitude
};

}  // namespace tuner
