#include "templates/workload/tolerance.h"

#include <algorithm>
#include <cmath>

#include "templates/workload/parts/rounding.h"
#include "templates/workload/winograd_math.h"

namespace tuner {
namespace {

// How much more than a direct sum F(m, 3) errs in one dimension, in variance; see winograd_tolerance.
double winograd_growth(int64_t m) {
  const Winograd w = winograd(m);
  const auto square = [](const std::vector<double>& row) {
    double sum = 0;
    for (const double x : row) sum += x * x;
    return sum;
  };
  double growth = 0;
  for (const std::vector<double>& row : w.a) {
    double sum = 0;
    for (size_t x = 0; x < row.size(); ++x) sum += row[x] * row[x] * square(w.b[x]) * square(w.g[x]);
    growth = std::max(growth, sum);
  }
  return growth;
}

}  // namespace

bool shares_errors(const Workload& workload) {
  return std::visit([](const auto& w) { return w.facts().shares_errors(); }, workload.op());
}

std::optional<Tolerance> output_tolerance(const Workload& workload, size_t place) {
  return std::visit([&](const auto& w) { return w.facts().output_tolerance(w, place); }, workload.op());
}

Tolerance tolerance_of(const Workload& workload) {
  return std::visit([](const auto& w) { return w.facts().tolerance(w); }, workload.op());
}

float drawn_factor(const Workload& workload, std::string_view operand) {
  return std::visit([&](const auto& w) { return w.facts().drawn_factor(w, operand); }, workload.op());
}

// Data and weights have a variance of 1/3. In one dimension their transforms at position x have ||B[x]||^2 /
// 3 and ||G[x]||^2 / 3 (rows of the matrices), so errors of the products there arrive at output i, taken
// together, with the variance of a direct sum's error times growth = sum over x of A[i, x]^2 ||B[x]||^2
// ||G[x]||^2: in two dimensions the product of both growths, of the worst i each. What errs at a position:
// the sum over n channels, whose roundings add up to n^2 / 2 in units of (one rounding)^2 as in
// product_sum_tolerance, and the two transforms before and one behind it, some kTransforms roundings of terms
// as large as what they make, each channel's anew. At an output of a tile's corner one position makes most of
// the error, so its tails are as long as those of one chain: of 14,000 tiles of 6x6 over 224 channels the
// worst erred by 9.3 deviations of typical roundings.
double winograd_tolerance(WinogradTile tile, int64_t channels) {
  constexpr double kTransforms = 14;
  const double n = static_cast<double>(channels);
  const double growth = std::sqrt(winograd_growth(tile.rows) * winograd_growth(tile.columns));
  const double deviation = kRounding * growth * std::sqrt(n * n / 2 + kTransforms * n) / 3;
  return std::max(kLeastTolerance, kDeviations * deviation);
}

double winograd_relative_error(WinogradTile tile, int64_t channels) {
  return winograd_tolerance(tile, channels) / largest_sum(9.0 * static_cast<double>(channels));
}

}  // namespace tuner
