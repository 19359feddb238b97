// Networks in 8 bits in both forms of ONNX Runtime's quantiser: operators on bytes (QLinearConv, MaxPool,
// and QLinearAdd, QLinearSoftmax and others of its own domain), or those of float32 between DequantizeLinear
// and QuantizeLinear. Weights are drawn from a seed, and scales chosen so that activations stay within their
// range. Both forms of a network have the same weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/models/networks.h"

namespace tuner::testing {

// resnet50_int8, mobilenetv2_int8, transformer_int8; the other form: resnet50_qdq, mobilenetv2_qdq,
// transformer_qdq. `image` of a transformer: twice as many as it has tokens.
const std::vector<std::string>& quantized_network_names();
// As network().
Result<std::string> quantized_network(std::string_view name, const NetworkOptions& options = {});

}  // namespace tuner::testing
