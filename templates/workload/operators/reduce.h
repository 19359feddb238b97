#pragma once

#include <cstdint>
#include <string_view>

#include "compiler_core/base/dtype.h"

namespace tuner {

template <class W>
class OperatorFacts;

enum class RowReduction : uint8_t { kSum, kMax, kMin, kMean };
std::string_view row_reduction_name(RowReduction r);  // "sum", "max", "min", "mean"

// out[i] = sum, max, min or mean over j of x[i, j]
struct ReduceWorkload {
  static constexpr std::string_view kOp = "reduce";
  static constexpr bool kMemoryBound = true;
  static const OperatorFacts<ReduceWorkload>& facts();
  int64_t rows = 1, columns = 1;
  RowReduction reduction = RowReduction::kSum;
  DType dtype = DType::kFloat32;
};

}  // namespace tuner
