#include "db/stats.h"

#include <algorithm>
#include <vector>

namespace tuner {

namespace {

double median_in_place(std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle)) + upper) / 2;
}

// splitmix64: the standard library's distributions differ between implementations, this does not.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

double median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> copy(values.begin(), values.end());
  return median_in_place(copy);
}

Interval median_interval(std::span<const double> samples) {
  if (samples.empty()) return {};
  constexpr size_t kResamples = 2000;
  uint64_t state = 0x7475'6e65'72u;
  std::vector<double> medians(kResamples), draw(samples.size());
  for (double& m : medians) {
    for (double& value : draw) value = samples[next_random(state) % samples.size()];
    m = median_in_place(draw);
  }
  std::sort(medians.begin(), medians.end());
  return {medians[kResamples / 40], medians[kResamples - 1 - kResamples / 40]};
}

}  // namespace tuner
