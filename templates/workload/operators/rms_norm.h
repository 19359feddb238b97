#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/base/dtype.h"

namespace tuner {

template <class W>
class OperatorFacts;

// out[i, j] = x[i, j] / sqrt(mean of the squares of row i + epsilon) * gamma[j]
struct RmsNormWorkload {
  static constexpr std::string_view kOp = "rms_norm";
  static constexpr bool kMemoryBound = true;
  static const OperatorFacts<RmsNormWorkload>& facts();
  int64_t rows = 1, columns = 1;
  double epsilon = 1e-5;
  DType dtype = DType::kFloat32;
};

}  // namespace tuner
