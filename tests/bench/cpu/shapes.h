// The shapes bench_cpu knows, in named sets.
#pragma once

#include <string>
#include <vector>

#include "templates/workload/workload.h"

namespace tuner {

struct BenchShape {
  std::string set, name;
  std::string group;  // shapes whose ratios are averaged together: "conv 3x3 s1 NCHW16c", "matmul large"
  Workload workload;
  int uses = 1;  // how often the network has it
};

// All of them, set by set. Convolutions have bias and ReLU and packed weights; products have packed b and no
// epilogue, as a BLAS has none, but for those that are requantised.
const std::vector<BenchShape>& bench_shapes();
// "resnet50, resnet50_16c, ...".
std::string bench_set_names();

}  // namespace tuner
