#include "templates/registry.h"

namespace tuner {

const std::vector<const AnyTemplate*>& all_templates() {
  static const std::vector<const AnyTemplate*> templates = {
      &matmul_cpu(),
      &conv2d_direct_cpu(),
      &matmul_cuda(),
      &conv2d_nchw_cuda(),
      &depthwise_conv2d_nchw_cuda(),
      &softmax_cuda(),
      &layer_norm_cuda(),
      &reduce_cuda(),
      &transpose_cuda(),
      &elementwise_cuda(),
  };
  return templates;
}

}  // namespace tuner
