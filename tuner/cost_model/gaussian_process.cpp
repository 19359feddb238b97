#include "tuner/cost_model/gaussian_process.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr float kConstantVariance = 4;  // of the constant, in units of the smooth part's variance
constexpr float kTrendVariance = 1;     // of the weight of a trend
constexpr double kAmplitudeRows = 4;    // how many rows of variance kAmplitude^2 are added to what is seen
constexpr double kAmplitude = 0.3;
constexpr float kLeastScale = 0.05f, kMostScale = 20;
constexpr double kUsualScale = 0.8, kScaleSpread = 1.0;  // of log(length scale): normal around it
constexpr float kLeastNoise = 1e-3f, kMostNoise = 1;
constexpr float kLeastAdditive = 1e-2f, kMostAdditive = 30;
constexpr double kUsualAdditive = 1, kAdditiveSpread = 1.0;
constexpr double kUsualNoise = 0.03, kNoiseSpread = 1.5;

// exp(-x) for x >= 0 to some 6 digits, in a form a compiler turns into vector instructions.
inline float exp_minus(float x) {
  const float t = std::min(x, 80.0f) * -1.44269504f;  // 2^t
  const float floor = static_cast<float>(static_cast<int>(t) - 1);
  const float f = t - floor;                  // 0..2
  const float half = 0.5f * f * 0.69314718f;  // exp(half)^2: a short polynomial is enough on 0..ln 2
  float p =
      1 +
      half * (1 + half * (0.5f + half * (1.0f / 6 + half * (1.0f / 24 + half * (1.0f / 120 + half / 720)))));
  p *= p;
  const int32_t bits = (static_cast<int32_t>(floor) + 127) << 23;
  return p * std::bit_cast<float>(bits);
}

inline float matern(float squared) {
  const float r = std::sqrt(5 * squared);
  return (1 + r + r * r * (1.0f / 3)) * exp_minus(r);
}

// Four sums at a time, so that an addition need not wait for the one before.
double dot(const double* a, const double* b, size_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    s0 += a[k] * b[k];
    s1 += a[k + 1] * b[k + 1];
    s2 += a[k + 2] * b[k + 2];
    s3 += a[k + 3] * b[k + 3];
  }
  for (; k < n; ++k) s0 += a[k] * b[k];
  return (s0 + s1) + (s2 + s3);
}

// In place; false when the matrix is not positive definite. Row-major, lower triangle.
bool cholesky(std::vector<double>& a, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    double* row = &a[i * n];
    for (size_t j = 0; j < i; ++j) {
      const double* other = &a[j * n];
      row[j] = (row[j] - dot(row, other, j)) / other[j];
    }
    const double sum = row[i] - dot(row, row, i);
    if (!(sum > 1e-10)) return false;
    row[i] = std::sqrt(sum);
  }
  return true;
}

std::vector<double> solve_lower(const std::vector<double>& lower, size_t n, std::span<const float> y) {
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = y[i];
    for (size_t k = 0; k < i; ++k) sum -= lower[i * n + k] * x[k];
    x[i] = sum / lower[i * n + i];
  }
  return x;
}

}  // namespace

GpInputs GpInputs::selected(std::span<const size_t> wanted) const {
  GpInputs out(wanted.size(), columns, trends);
  for (size_t c = 0; c < columns + trends; ++c)
    for (size_t r = 0; r < wanted.size(); ++r) out.at(r, c) = at(wanted[r], c);
  return out;
}

void GpInputs::append(const GpInputs& more) {
  CHECK(more.columns == columns && more.trends == trends) << "Gaussian process: another number of columns";
  std::vector<float> joined;
  joined.reserve((rows + more.rows) * (columns + trends));
  for (size_t c = 0; c < columns + trends; ++c) {
    const auto from = [&](const GpInputs& part) {
      const auto begin = part.values.begin() + static_cast<std::ptrdiff_t>(c * part.rows);
      joined.insert(joined.end(), begin, begin + static_cast<std::ptrdiff_t>(part.rows));
    };
    from(*this);
    from(more);
  }
  values = std::move(joined);
  rows += more.rows;
}

GaussianProcess::GaussianProcess(size_t columns, size_t trends)
    : scale_(columns, static_cast<float>(kUsualScale)), noise_(static_cast<float>(kUsualNoise)) {
  inputs_ = GpInputs(0, columns, trends);
}

void GaussianProcess::covariances(const GpInputs& a, size_t row, const GpInputs& b, float* out) const {
  std::fill(out, out + b.rows, 0.0f);
  std::vector<float> separate(b.rows, kConstantVariance + additive_);
  float total = 0;
  for (const float s : scale_) total += 1 / s;
  for (size_t c = 0; c < b.columns; ++c) {
    const float x = a.at(row, c), factor = 1 / scale_[c], share = additive_ * factor / total;
    const float* other = &b.values[c * b.rows];
    for (size_t i = 0; i < b.rows; ++i) {
      const float d = other[i] - x;
      out[i] += (d * factor) * (d * factor);
      separate[i] -= share * std::abs(d);
    }
  }
  for (size_t i = 0; i < b.rows; ++i) out[i] = separate[i] + matern(out[i]);
  for (size_t t = b.columns; t < b.columns + b.trends; ++t) {
    const float x = kTrendVariance * a.at(row, t);
    const float* other = &b.values[t * b.rows];
    for (size_t i = 0; i < b.rows; ++i) out[i] += x * other[i];
  }
}

float GaussianProcess::variance(const GpInputs& inputs, size_t row) const {
  float variance = kConstantVariance + additive_ + 1;
  for (size_t t = inputs.columns; t < inputs.columns + inputs.trends; ++t)
    variance += kTrendVariance * inputs.at(row, t) * inputs.at(row, t);
  return variance;
}

double GaussianProcess::log_prior() const {
  double sum = 0;
  for (const float s : scale_) {
    const double z = std::log(s / kUsualScale) / kScaleSpread;
    sum -= 0.5 * z * z;
  }
  const double z = std::log(noise_ / kUsualNoise) / kNoiseSpread;
  const double a = std::log(additive_ / kUsualAdditive) / kAdditiveSpread;
  return sum - 0.5 * z * z - 0.5 * a * a;
}

double GaussianProcess::log_likelihood(const GpInputs& inputs, std::span<const float> y) const {
  const size_t n = inputs.rows;
  std::vector<double> k(n * n);
  std::vector<float> row(n);
  for (size_t i = 0; i < n; ++i) {
    covariances(inputs, i, inputs, row.data());
    std::copy(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(i) + 1, &k[i * n]);
    k[i * n + i] += noise_;
  }
  if (!cholesky(k, n)) return -1e300;
  const std::vector<double> x = solve_lower(k, n, y);
  double fit = kAmplitudeRows * kAmplitude * kAmplitude, log_det = 0;
  for (size_t i = 0; i < n; ++i) {
    fit += x[i] * x[i];
    log_det += std::log(k[i * n + i]);
  }
  // The amplitude is integrated out.
  return -0.5 * (static_cast<double>(n) + kAmplitudeRows) * std::log(fit) - log_det;
}

void GaussianProcess::tune(const GpInputs& inputs, std::span<const float> y, int evaluations) {
  if (inputs.rows < 4) return;
  double best = log_likelihood(inputs, y) + log_prior();
  // One parameter at a time, up or down; the step that helped is taken again and grows.
  const size_t parameters = scale_.size() + 2;
  if (step_.size() != parameters) step_.assign(parameters, 0.7f);
  for (int used = 0; used < evaluations;) {
    const size_t p = next_++ % parameters;
    const bool is_noise = p == scale_.size(), is_additive = p == scale_.size() + 1;
    float& value = is_noise ? noise_ : is_additive ? additive_ : scale_[p];
    const float old = value;
    bool moved = false;
    for (const float sign : {1.0f, -1.0f}) {
      value = std::clamp(old * std::exp(sign * step_[p]),
                         is_noise      ? kLeastNoise
                         : is_additive ? kLeastAdditive
                                       : kLeastScale,
                         is_noise      ? kMostNoise
                         : is_additive ? kMostAdditive
                                       : kMostScale);
      if (value == old) continue;
      ++used;
      const double now = log_likelihood(inputs, y) + log_prior();
      if (now > best) {
        best = now;
        moved = true;
        step_[p] = std::copysign(std::min(1.5f, 1.3f * std::abs(step_[p])), sign * step_[p]);
        break;
      }
      value = old;
    }
    if (!moved) step_[p] = std::copysign(std::max(0.1f, 0.6f * std::abs(step_[p])), step_[p]);
    ++used;  // ends also where every parameter stands at a limit
  }
}

void GaussianProcess::fit(const GpInputs& inputs, std::span<const float> y) {
  const size_t n = inputs.rows;
  CHECK(y.size() == n) << "Gaussian process: " << y.size() << " values for " << n << " rows";
  CHECK(inputs.columns == scale_.size()) << "Gaussian process: another number of columns";
  inputs_ = inputs;
  std::vector<float> row(n);
  for (;;) {
    lower_.assign(n * n, 0);
    for (size_t i = 0; i < n; ++i) {
      covariances(inputs_, i, inputs_, row.data());
      std::copy(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(i) + 1, &lower_[i * n]);
      lower_[i * n + i] += noise_;
    }
    if (cholesky(lower_, n)) break;
    noise_ *= 4;  // rounding made it indefinite; noise on the diagonal mends that
  }
  solved_ = solve_lower(lower_, n, y);
  double fit = kAmplitudeRows * kAmplitude * kAmplitude;
  for (const double x : solved_) fit += x * x;
  amplitude_ = static_cast<float>(std::sqrt(fit / (static_cast<double>(n) + kAmplitudeRows)));
  weights_ = solved_;
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) weights_[i] -= lower_[k * n + i] * weights_[k];
    weights_[i] /= lower_[i * n + i];
  }
}

std::vector<float> GaussianProcess::mean(const GpInputs& pool) const {
  std::vector<float> mean(pool.rows, 0), row(pool.rows);
  for (size_t i = 0; i < inputs_.rows; ++i) {
    covariances(inputs_, i, pool, row.data());
    const float weight = static_cast<float>(weights_[i]);
    for (size_t j = 0; j < pool.rows; ++j) mean[j] += weight * row[j];
  }
  return mean;
}

PoolPosterior::PoolPosterior(const GaussianProcess& gp, const GpInputs& pool)
    : gp_(gp), pool_(0, pool.columns, pool.trends), row_inputs_(gp.inputs_), solved_(gp.solved_) {
  const size_t n = row_inputs_.rows;
  for (size_t r = 0; r < n; ++r) {
    lower_.emplace_back(gp.lower_.begin() + static_cast<std::ptrdiff_t>(r * n),
                        gp.lower_.begin() + static_cast<std::ptrdiff_t>(r * n + r + 1));
    rows_.emplace_back();
  }
  extend(pool);
}

void PoolPosterior::extend(const GpInputs& more) {
  const size_t first = pool_.rows;
  pool_.append(more);
  mean_.resize(pool_.rows, 0);
  variance_.resize(pool_.rows);
  for (size_t i = 0; i < more.rows; ++i) variance_[first + i] = gp_.variance(more, i);
  std::vector<float> prior(more.rows);
  for (size_t r = 0; r < rows_.size(); ++r) {
    gp_.covariances(row_inputs_, r, more, prior.data());
    rows_[r].insert(rows_[r].end(), prior.begin(), prior.end());
    solve_columns(r, first);
  }
  update_means(first);
}

// Candidates from `first` on of a row that holds its prior covariances.
void PoolPosterior::solve_columns(size_t r, size_t first) {
  std::vector<float>& row = rows_[r];
  const std::vector<double>& lower = lower_[r];
  const size_t end = pool_.rows;
  // Four rows at a time: the row is read and written once for all of them.
  size_t k = 0;
  for (; k + 4 <= r; k += 4) {
    const float a = static_cast<float>(lower[k]), b = static_cast<float>(lower[k + 1]),
                c = static_cast<float>(lower[k + 2]), d = static_cast<float>(lower[k + 3]);
    const float *ra = rows_[k].data(), *rb = rows_[k + 1].data(), *rc = rows_[k + 2].data(),
                *rd = rows_[k + 3].data();
    for (size_t j = first; j < end; ++j) row[j] -= a * ra[j] + b * rb[j] + c * rc[j] + d * rd[j];
  }
  for (; k < r; ++k) {
    const float factor = static_cast<float>(lower[k]);
    for (size_t j = first; j < end; ++j) row[j] -= factor * rows_[k][j];
  }
  const float scale = static_cast<float>(1 / lower[r]);
  for (size_t j = first; j < end; ++j) {
    row[j] *= scale;
    variance_[j] -= row[j] * row[j];
  }
}

void PoolPosterior::update_means(size_t first) {
  std::fill(mean_.begin() + static_cast<std::ptrdiff_t>(first), mean_.end(), 0.0f);
  for (size_t r = 0; r < rows_.size(); ++r) {
    const float solved = static_cast<float>(solved_[r]);
    if (solved == 0) continue;
    for (size_t j = first; j < pool_.rows; ++j) mean_[j] += solved * rows_[r][j];
  }
}

void PoolPosterior::believe(size_t i) {
  std::vector<double> lower;
  for (const std::vector<float>& row : rows_) lower.push_back(row[i]);
  lower.push_back(std::sqrt(std::max(1e-6f, variance_[i]) + gp_.noise_));
  const size_t one[] = {i};
  row_inputs_.append(pool_.selected(one));
  lower_.push_back(std::move(lower));
  solved_.push_back(0);  // as predicted: nothing to add to any mean
  rows_.emplace_back(pool_.rows);
  gp_.covariances(pool_, i, pool_, rows_.back().data());
  solve_columns(rows_.size() - 1, 0);
}

void PoolPosterior::set_values(std::span<const float> y) {
  CHECK(y.size() == rows_.size()) << "Gaussian process: " << y.size() << " values for " << rows_.size()
                                  << " rows";
  for (size_t r = 0; r < y.size(); ++r) {
    if (std::isnan(y[r])) {
      solved_[r] = 0;
      continue;
    }
    solved_[r] = (y[r] - dot(lower_[r].data(), solved_.data(), r)) / lower_[r][r];
  }
  update_means(0);
}

float PoolPosterior::deviation(size_t i) const {
  return gp_.amplitude_ * std::sqrt(std::max(1e-6f, variance_[i]));
}

}  // namespace tuner
