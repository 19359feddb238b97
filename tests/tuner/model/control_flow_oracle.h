// What a model with control flow computes, found as the standard tells it: a branch is chosen when its
// condition is there, a body runs as often as it says. For models of a few operators on float32 tensors; it
// shares nothing with the reader, which leaves no control flow to run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tuner/model/onnx.pb.h"

namespace tuner::testing {

struct OracleTensor {
  std::vector<int64_t> shape;
  std::vector<double> numbers;  // row-major; of a bool 0 or 1
};

// Returns the graph's outputs. `inputs`: by name. A model that it does not know ends the test program.
std::vector<OracleTensor> run_control_flow(const onnx::GraphProto& graph,
                                           const std::map<std::string, OracleTensor>& inputs);

}  // namespace tuner::testing
