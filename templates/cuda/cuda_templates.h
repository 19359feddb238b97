// The templates for NVIDIA GPUs, one per line. The first that serves a task gives its default config. To add
// one: add its line here and its file's line in CMakeLists.txt.
#pragma once

#include "templates/schedule_template.h"

// clang-format off
#define TUNER_CUDA_TEMPLATES(TEMPLATE) \
  TEMPLATE(matmul_tf32_cuda) \
  TEMPLATE(matmul_cuda) \
  TEMPLATE(matmul_wgmma_cuda) \
  TEMPLATE(matmul_mma_cuda) \
  TEMPLATE(matmul_dp4a_cuda) \
  TEMPLATE(matmul_tf32x3_cuda) \
  TEMPLATE(conv2d_nchw_cuda) \
  TEMPLATE(conv2d_implicit_gemm_cuda) \
  TEMPLATE(conv2d_nhwc_mma_cuda) \
  TEMPLATE(conv2d_nhwc_tf32_cuda) \
  TEMPLATE(conv2d_nhwc_tf32x3_cuda) \
  TEMPLATE(depthwise_conv2d_nchw_cuda) \
  TEMPLATE(depthwise_conv2d_nhwc_cuda) \
  TEMPLATE(conv2d_groups_cuda) \
  TEMPLATE(pool2d_cuda) \
  TEMPLATE(softmax_cuda) \
  TEMPLATE(layer_norm_cuda) \
  TEMPLATE(rms_norm_cuda) \
  TEMPLATE(reduce_cuda) \
  TEMPLATE(transpose_cuda) \
  TEMPLATE(elementwise_cuda) \
  TEMPLATE(program_cuda) \
  TEMPLATE(source_kernel_cuda)
// clang-format on

namespace tuner {

// Each template is made once and lives as long as the process.
#define TUNER_DECLARE(name) const AnyTemplate& name();
TUNER_CUDA_TEMPLATES(TUNER_DECLARE)
#undef TUNER_DECLARE

}  // namespace tuner
