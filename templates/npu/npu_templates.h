// The templates for the NPU, one per line. To add one: add its line here and its file's line in
// CMakeLists.txt.
#pragma once

#include "templates/schedule_template.h"

// clang-format off
#define TUNER_NPU_TEMPLATES(TEMPLATE) \
  TEMPLATE(matmul_npu) \
  TEMPLATE(conv2d_npu) \
  TEMPLATE(depthwise_conv2d_npu) \
  TEMPLATE(pool2d_npu) \
  TEMPLATE(quantized_add_npu) \
  TEMPLATE(quantized_softmax_npu) \
  TEMPLATE(quantized_norm_npu)
// clang-format on

namespace tuner {

// Each template is made once and lives as long as the process.
#define TUNER_DECLARE(name) const AnyTemplate& name();
TUNER_NPU_TEMPLATES(TUNER_DECLARE)
#undef TUNER_DECLARE

}  // namespace tuner
