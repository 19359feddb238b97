// A matting network: an encoder and a decoder whose blocks are small encoders and decoders themselves, with
// many concats and resizes. At its published size (1024 x 1024) its file has 977 operators and 44 MB of
// weights, and its values take 134 MB each at most.
#pragma once

#include "tests/models/networks.h"

namespace tuner::testing {

// `options.image`: a multiple of 32. The bytes of an ONNX model.
std::string nested_u(const NetworkOptions& options);

}  // namespace tuner::testing
