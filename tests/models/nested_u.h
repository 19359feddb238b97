// A matting network: an encoder and a decoder whose blocks are small encoders and decoders themselves, with
// many concats and resizes. At its published size (1024 x 1024) it has 37 MB of weights and values of 134 MB.
#pragma once

#include "tests/models/networks.h"

namespace tuner::testing {

// `options.image`: a multiple of 32. The bytes of an ONNX model.
std::string nested_u(const NetworkOptions& options);

}  // namespace tuner::testing
