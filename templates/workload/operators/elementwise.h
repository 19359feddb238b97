#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/base/dtype.h"
#include "templates/workload/parts/activation.h"

namespace tuner {

template <class W>
class OperatorFacts;

// out[i, j] = act(x[i, j] * scale[j] + bias[j] + residual[i, j]); scale, bias, residual and act are optional.
// A tensor of any shape without broadcast is one row of all its elements.
struct ElementwiseWorkload {
  static constexpr std::string_view kOp = "elementwise";
  static constexpr bool kMemoryBound = true;
  static const OperatorFacts<ElementwiseWorkload>& facts();
  int64_t rows = 1, columns = 1;
  bool scale = false;     // [columns]
  bool bias = false;      // [columns]
  bool residual = false;  // [rows, columns]
  Activation activation = Activation::kNone;
  DType dtype = DType::kFloat32;
};

}  // namespace tuner
