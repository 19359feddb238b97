#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/base/dtype.h"

namespace tuner {

template <class W>
class OperatorFacts;

// out[i, j] = (x[i, j] - mean) / sqrt(variance + epsilon) * gamma[j] + beta[j], with mean and variance (the
// mean of the squared differences from the mean) over row i.
struct LayerNormWorkload {
  static constexpr std::string_view kOp = "layer_norm";
  static constexpr bool kMemoryBound = true;
  static const OperatorFacts<LayerNormWorkload>& facts();
  int64_t rows = 1, columns = 1;
  double epsilon = 1e-5;
  DType dtype = DType::kFloat32;
};

}  // namespace tuner
