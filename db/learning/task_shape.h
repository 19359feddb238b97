// Workloads as others compare them: by their TaskShape, which their operators say.
#pragma once

#include <cstdint>
#include <string>

#include "templates/workload/parts/operator.h"
#include "templates/workload/workload.h"

namespace tuner {

TaskShape shape_of(const Workload& workload);

// Returns the key without the epilogue (bias, residual, activation). It is equal for workloads that differ
// only there.
std::string key_without_epilogue(const Workload& workload);

// Returns the product of the output extents. Older tuners found the nearest shape by this number alone, which
// cannot tell 1x4096 from 64x64. Only benchmarks use it, to compare.
int64_t output_elements(const Workload& workload);

}  // namespace tuner
