// One maker a template. Adding a template: its declaration here, its line in registry.cpp.
#pragma once

#include "templates/schedule_template.h"

namespace tuner {

const AnyTemplate& matmul_cpu();
const AnyTemplate& matmul_dot_cpu();
const AnyTemplate& conv2d_direct_cpu();
const AnyTemplate& depthwise_conv2d_cpu();
const AnyTemplate& conv2d_1x1_pixels_cpu();
const AnyTemplate& conv2d_1x1_channels_cpu();
const AnyTemplate& conv2d_winograd2_cpu();
const AnyTemplate& conv2d_winograd4_cpu();
const AnyTemplate& conv2d_winograd6_cpu();
const AnyTemplate& matmul_cuda();
const AnyTemplate& conv2d_nchw_cuda();
const AnyTemplate& depthwise_conv2d_nchw_cuda();
const AnyTemplate& pool2d_cpu();
const AnyTemplate& softmax_cpu();
const AnyTemplate& softmax_cuda();
const AnyTemplate& layer_norm_cpu();
const AnyTemplate& layer_norm_cuda();
const AnyTemplate& reduce_cpu();
const AnyTemplate& reduce_cuda();
const AnyTemplate& transpose_cpu();
const AnyTemplate& transpose_cuda();
const AnyTemplate& elementwise_cpu();
const AnyTemplate& elementwise_cuda();

}  // namespace tuner
