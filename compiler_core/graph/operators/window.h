// Windows that convolutions and poolings move over images of any number of dimensions: [N, C, D1, D2, ...].
#pragma once

#include "compiler_core/graph/families.h"

namespace tuner::graph {

struct Window {
  // One number an image dimension.
  Shape kernel, strides, dilations, before, behind;  // before, behind: padding
  Shape result;                                      // extents of the result

  // Where in the image, padding not counted, the window of result `o` has its element `k`.
  Expr place(size_t d, const Expr& o, const Expr& k) const {
    return o * Expr(strides[d]) + k * Expr(dilations[d]) - Expr(before[d]);
  }
};

// Reads kernel_shape, strides, dilations, pads, auto_pad, ceil_mode. `image`: the shape [N, C, D1, ...];
// `kernel`: extents of the window unless the attribute kernel_shape has them.
Result<Window> window_of(const Use& use, const Shape& image, const Shape& kernel);
// How much padding of auto_pad = SAME stands before, of `all`.
int64_t padding_before(const std::string& auto_pad, int64_t all);

// A transposed convolution: result element before[d] ... of what all image elements times the kernel add up
// to, each strides[d] from the next.
struct Transposed {
  // One number an image dimension.
  Shape kernel, strides, dilations, before, result;
};
// Reads the attributes of a ConvTranspose; of any number of dimensions.
Result<Transposed> transposed_of(const Use& use);

}  // namespace tuner::graph
