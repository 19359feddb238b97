#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/base/dtype.h"

namespace tuner {

template <class W>
class OperatorFacts;

// out[j, i] = x[i, j]
struct TransposeWorkload {
  static constexpr std::string_view kOp = "transpose";
  static constexpr bool kMemoryBound = true;
  static const OperatorFacts<TransposeWorkload>& facts();
  int64_t rows = 1, columns = 1;  // of x
  DType dtype = DType::kFloat32;
};

}  // namespace tuner
