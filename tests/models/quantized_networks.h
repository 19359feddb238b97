// Networks in 8 bits as quantisers of ONNX Runtime write them: QLinearConv, QLinearMatMul, MaxPool on bytes,
// and QLinearAdd and QLinearGlobalAveragePool of its own domain. Weights are drawn from a seed, and scales
// chosen so that activations stay within their range.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/models/networks.h"

namespace tuner::testing {

// resnet50_int8, mobilenetv2_int8.
const std::vector<std::string>& quantized_network_names();
// As network().
Result<std::string> quantized_network(std::string_view name, const NetworkOptions& options = {});

}  // namespace tuner::testing
