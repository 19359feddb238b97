#include "templates/registry.h"

namespace tuner {

const std::vector<const AnyTemplate*>& all_templates() {
  static const std::vector<const AnyTemplate*> templates = {
      &matmul_cpu(),           &matmul_dot_cpu(),        &conv2d_direct_cpu(),
      &depthwise_conv2d_cpu(), &conv2d_1x1_pixels_cpu(), &conv2d_1x1_channels_cpu(),
      &conv2d_winograd2_cpu(), &conv2d_winograd4_cpu(),  &conv2d_winograd6_cpu(),
      &matmul_cuda(),          &conv2d_nchw_cuda(),      &depthwise_conv2d_nchw_cuda(),
      &pool2d_cpu(),           &softmax_cpu(),           &softmax_cuda(),
      &layer_norm_cpu(),       &layer_norm_cuda(),       &reduce_cpu(),
      &reduce_cuda(),          &transpose_cpu(),         &transpose_cuda(),
      &elementwise_cpu(),      &elementwise_cuda(),
  };
  return templates;
}

}  // namespace tuner
