// One case as the ONNX model that its user would hand to ONNX Runtime.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/cpu/bench_case.h"

namespace tuner {

struct SingleNodeGraph {
  std::string model;                // bytes
  std::string operators;            // "Conv, Relu": what the library may fuse
  std::vector<std::string> inputs;  // operands given with every call; the others are in the model
  bool has_weights = false;         // there are others
};

// Images are NCHW on both sides. Constant operands, and biases, scales and the like, are in the model, so
// that the library may fold and pack them. Failed: the operator set has no such operator, or it is not
// written here. `rounds_left`: of a product with weights of 4 bits, the library may round a to 8 bits, as its
// users often let it.
Result<SingleNodeGraph> onnx_graph(const BenchCase& bench_case, bool rounds_left = false);

}  // namespace tuner
