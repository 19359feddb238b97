// The gain that a search with a model looks for.
#pragma once

#include <cmath>

namespace tuner {

// Returns how far below 0 a value of this mean and deviation (above 0) is expected to be.
inline double expected_improvement(double mean, double deviation) {
  const double z = -mean / deviation;
  return -mean * 0.5 * std::erfc(-z * M_SQRT1_2) + deviation * 0.3989422804 * std::exp(-0.5 * z * z);
}

}  // namespace tuner
