#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tuner/cost_model/cost_model.h"

namespace tuner {
namespace {

// Position of each value in ascending order; equal values share the mean of their positions.
std::vector<double> ranks(std::span<const float> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) rank[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
    begin = end;
  }
  return rank;
}

}  // namespace

double rank_correlation(std::span<const float> a, std::span<const float> b) {
  CHECK(a.size() == b.size()) << "rank correlation of " << a.size() << " and " << b.size() << " values";
  if (a.size() < 2) return 0;
  const std::vector<double> ra = ranks(a), rb = ranks(b);
  const double mean = 0.5 * static_cast<double>(a.size() - 1);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - mean) * (rb[i] - mean);
    aa += (ra[i] - mean) * (ra[i] - mean);
    bb += (rb[i] - mean) * (rb[i] - mean);
  }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

std::string judged_text(double correlation, size_t trials) {
  const char* how = correlation >= 0.7   ? "well"
                    : correlation >= 0.4 ? "fairly"
                    : correlation >= 0.1 ? "poorly"
                                         : "no better than chance";
  char text[128];
  std::snprintf(text, sizeof text, "the model ranks new candidates %s (%.2f, of %zu trials)", how,
                correlation, trials);
  return text;
}

}  // namespace tuner
