// A model of tensor cores, worse than what is published of any: how they round decides how far right answers
// may be.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "templates/workload/tolerance.h"

namespace tuner {

// Products and sum are aligned to the largest of them, and what lies below 24 + `spare` bits of that is cut
// off, towards zero, as is what does not fit the result. `width` products at once.
struct TensorCore {
  size_t width;
  int spare;

  float sum(float c, const float* a, const float* b) const {
    const auto cut = [](double x, double unit) { return std::trunc(x / unit) * unit; };
    const auto place = [](double x) {
      int exponent = 0;
      std::frexp(x, &exponent);
      return std::ldexp(1.0, exponent - 24);
    };
    std::vector<double> terms = {c};
    for (size_t i = 0; i < width; ++i) terms.push_back(static_cast<double>(high(a[i])) * high(b[i]));
    double largest = 0, all = 0;
    for (const double x : terms) largest = std::max(largest, std::abs(x));
    if (largest == 0) return 0;
    for (const double x : terms) all += cut(x, std::ldexp(place(largest), -spare));
    return all == 0 ? 0 : static_cast<float>(cut(all, place(all)));
  }
  // What it takes of a number: all of one of 16 bits.
  static float high(float x) { return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffffe000u); }
};
// The worst of `samples` sums of k products, all of it in the tensor cores, in tolerances. `draw(rng)`: a
// number in [-1, 1).
template <class Draw>
double worst_sum(const TensorCore& core, const Tolerance& tolerance, int64_t k, int samples, uint64_t seed,
                 Draw draw) {
  std::mt19937_64 rng(seed);
  double worst = 0;
  for (int sample = 0; sample < samples; ++sample) {
    double exact = 0;
    float sum = 0;
    std::vector<float> a(core.width), b(core.width);
    for (int64_t i = 0; i < k; i += static_cast<int64_t>(core.width)) {
      for (size_t lane = 0; lane < core.width; ++lane) {
        a[lane] = draw(rng), b[lane] = draw(rng);
        exact += static_cast<double>(a[lane]) * b[lane];
      }
      sum = core.sum(sum, a.data(), b.data());
    }
    const double error = std::abs(static_cast<double>(sum) - exact);
    worst = std::max(worst, error / (tolerance.absolute + tolerance.relative * std::abs(exact)));
  }
  return worst;
}
inline float drawn_float(std::mt19937_64& rng) {
  return static_cast<float>(rng() >> 40) / static_cast<float>(1 << 23) - 1;
}

inline constexpr TensorCore kTensorCores[] = {{.width = 4, .spare = 0}, {.width = 8, .spare = 2}};

}  // namespace tuner
