// TaskShape: a workload as others compare it: its dimensions as numbers, and the words that must be equal
// before a config of one workload means anything for another.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/workload/workload.h"

namespace tuner {

struct TaskShape {
  // Operator, types, layouts, transposes, packed operands: "conv2d dtype=float32 layout=NCHW const=weight".
  std::string variant;
  // The real dimensions, each at least 1: of a convolution the output channels, output height, ..., and also
  // strides and groups. An operator always has the same names in the same order.
  std::vector<std::pair<std::string_view, int64_t>> dimensions;
};
TaskShape shape_of(const Workload& workload);

// Returns the key without the epilogue (bias, residual, activation). It is equal for workloads that differ
// only there.
std::string key_without_epilogue(const Workload& workload);

// Returns the product of the output extents. Older tuners found the nearest shape by this number alone, which
// cannot tell 1x4096 from 64x64. Only benchmarks use it, to compare.
int64_t output_elements(const Workload& workload);

}  // namespace tuner
