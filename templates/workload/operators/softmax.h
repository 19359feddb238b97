#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/base/dtype.h"
#include "compiler_core/ir/stmt.h"

namespace tuner {

template <class W>
class OperatorFacts;

// out[i, j] = exp(x[i, j] - max of row i) / (sum of these exps over row i)
struct SoftmaxWorkload {
  static constexpr std::string_view kOp = "softmax";
  static constexpr bool kMemoryBound = true;
  static const OperatorFacts<SoftmaxWorkload>& facts();
  int64_t rows = 1, columns = 1;
  DType dtype = DType::kFloat32;
};

// Its math with one division per row: row_scale = 1 / row_sum, out = exps * row_scale.
Program softmax_by_reciprocals(const SoftmaxWorkload& w);

}  // namespace tuner
