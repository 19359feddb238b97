// The CPU templates, one per line. The first that serves a task, and not as second, gives its default config.
// To add one: add its line here and its file's line in CMakeLists.txt.
#pragma once

#include "templates/schedule_template.h"

// clang-format off
#define TUNER_CPU_TEMPLATES(TEMPLATE) \
  TEMPLATE(matmul_cpu) \
  TEMPLATE(matmul_tile_cpu) \
  TEMPLATE(matmul_dot_cpu) \
  TEMPLATE(matmul_nbits_cpu) \
  TEMPLATE(conv2d_tile_cpu) \
  TEMPLATE(conv2d_rows_dot_cpu) \
  TEMPLATE(conv2d_direct_cpu) \
  TEMPLATE(depthwise_conv2d_dot_cpu) \
  TEMPLATE(depthwise_conv2d_rows_cpu) \
  TEMPLATE(depthwise_conv2d_cpu) \
  TEMPLATE(conv2d_1x1_pixels_cpu) \
  TEMPLATE(conv2d_1x1_channels_cpu) \
  TEMPLATE(conv2d_winograd2_cpu) \
  TEMPLATE(conv2d_winograd2x4_cpu) \
  TEMPLATE(conv2d_winograd4_cpu) \
  TEMPLATE(conv2d_winograd5_cpu) \
  TEMPLATE(conv2d_winograd6_cpu) \
  TEMPLATE(pool2d_rows_cpu) \
  TEMPLATE(pool2d_cpu) \
  TEMPLATE(softmax_cpu) \
  TEMPLATE(layer_norm_cpu) \
  TEMPLATE(rms_norm_cpu) \
  TEMPLATE(reduce_cpu) \
  TEMPLATE(transpose_cpu) \
  TEMPLATE(elementwise_cpu) \
  TEMPLATE(attention_cpu) \
  TEMPLATE(recurrence_cpu) \
  TEMPLATE(program_cpu) \
  TEMPLATE(source_kernel_cpu)
// clang-format on

namespace tuner {

// Each template is made once and lives as long as the process.
#define TUNER_DECLARE(name) const AnyTemplate& name();
TUNER_CPU_TEMPLATES(TUNER_DECLARE)
#undef TUNER_DECLARE

}  // namespace tuner
