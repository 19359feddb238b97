// TaskShape: what a workload is to those who compare it with others: its dimensions as numbers, and the words
// in which two workloads must agree before a config of one means anything for the other.
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
  // Real dimensions, each at least 1, always the same names in the same order for one operator: output
  // channels, output height, ... of a convolution; also strides and groups.
  std::vector<std::pair<std::string_view, int64_t>> dimensions;
};
TaskShape shape_of(const Workload& workload);

// The key without what is added in the last pass (bias, residual, activation): equal for workloads whose
// schedules do the same.
std::string key_without_epilogue(const Workload& workload);

// Output extents multiplied: the one number by which older tuners looked for the nearest shape (and by which
// 1x4096 and 64x64 are the same). Benchmarks compare with it; nothing else does.
int64_t output_elements(const Workload& workload);

}  // namespace tuner
