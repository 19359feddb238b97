// Networks people run, with weights drawn from a seed: models for tests and benchmarks, since trained ones
// are large and belong to others. Their operators are those exporters write: normalizations apart,
// activations as the steps they consist of, shapes computed from shapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner::testing {

struct NetworkOptions {
  // Height and width; 0: as published (224, U-Net 256, YOLO-like 320, MLP 28). For OCR the width of a line,
  // which is 32 high (320); for speech the number of frames (96).
  int64_t image = 0;
  int64_t batch = 1;
  int64_t narrower = 1;  // channels are divided by it: small networks for tests
  uint32_t seed = 1;
};

// resnet50, mobilenetv2, efficientnet_b0, vgg16, unet, yolo, mlp, ocr, speech_encoder.
const std::vector<std::string>& network_names();
// The bytes of an ONNX model, operator set 17. InvalidArgument: no network of this name.
Result<std::string> network(std::string_view name, const NetworkOptions& options = {});

}  // namespace tuner::testing
