#include "tests/bench/sass_fit.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace tuner {
namespace {

constexpr double kBelowCounts = 5;
constexpr int kRounds = 20;  // until no error changes its side

// Solves a symmetric system by elimination. A row without a pivot gives 0.
std::vector<double> solve(std::vector<std::vector<double>> rows) {
  const size_t n = rows.size();
  for (size_t i = 0; i < n; ++i) {
    size_t pivot = i;
    for (size_t r = i; r < n; ++r)
      if (std::abs(rows[r][i]) > std::abs(rows[pivot][i])) pivot = r;
    std::swap(rows[i], rows[pivot]);
    for (size_t r = 0; r < n; ++r) {
      if (r == i || rows[i][i] == 0) continue;
      const double factor = rows[r][i] / rows[i][i];
      for (size_t c = i; c <= n; ++c) rows[r][c] -= factor * rows[i][c];
    }
  }
  std::vector<double> solution(n);
  for (size_t i = 0; i < n; ++i) solution[i] = rows[i][i] == 0 ? 0 : rows[i][n] / rows[i][i];
  return solution;
}

// The best weights of the kinds in `wanted`, whatever their sign; others keep theirs.
Weights best_weights(const std::vector<IssueSample>& samples, const std::vector<double>& counts,
                     const std::vector<size_t>& wanted, Weights weights) {
  for (const size_t kind : wanted) weights[kind] = 0;
  std::vector<std::vector<double>> rows(wanted.size(), std::vector<double>(wanted.size() + 1));
  for (size_t s = 0; s < samples.size(); ++s) {
    const IssueSample& sample = samples[s];
    const double error = 1 - weighted(sample.issues, weights) / sample.least;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double share = counts[s] * sample.issues[wanted[i]] / sample.least;
      for (size_t j = 0; j < wanted.size(); ++j)
        rows[i][j] += share * sample.issues[wanted[j]] / sample.least;
      rows[i].back() += share * error;
    }
  }
  const std::vector<double> found = solve(std::move(rows));
  for (size_t i = 0; i < wanted.size(); ++i) weights[wanted[i]] = found[i];
  return weights;
}

// Takes out the most negative kind until none is.
Weights no_negative_weights(const std::vector<IssueSample>& samples, const std::vector<double>& counts,
                            std::vector<size_t> wanted, const Weights& known) {
  Weights start = known;
  for (;;) {
    const Weights weights = best_weights(samples, counts, wanted, start);
    double worst = 0;
    size_t out = wanted.size();
    for (size_t i = 0; i < wanted.size(); ++i) {
      double share = 0;
      for (const IssueSample& s : samples) share += weights[wanted[i]] * s.issues[wanted[i]] / s.least;
      if (share < worst) worst = share, out = i;
    }
    if (out == wanted.size()) return weights;
    start[wanted[out]] = 0;
    wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(out));
  }
}

}  // namespace

double weighted(const Weights& issues, const Weights& weights) {
  return std::inner_product(issues.begin(), issues.end(), weights.begin(), 0.0);
}

Weights fit_weights(const std::vector<IssueSample>& samples, const Weights& known) {
  std::vector<size_t> wanted;
  for (size_t kind = 0; kind < known.size(); ++kind)
    if (known[kind] < 0) wanted.push_back(kind);
  std::vector<double> counts(samples.size(), 1);
  Weights weights = known;
  for (int round = 0; round < kRounds; ++round) {
    weights = no_negative_weights(samples, counts, wanted, known);
    for (size_t s = 0; s < samples.size(); ++s)
      counts[s] = weighted(samples[s].issues, weights) < samples[s].least ? kBelowCounts : 1;
  }
  return weights;
}

}  // namespace tuner
