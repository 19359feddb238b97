// Shared by the templates of 1x1 convolutions. Such a convolution is a matrix product over the pixels of each
// image, and its math is written that way.
#pragma once

#include <string_view>

#include "templates/schedule_template.h"

namespace tuner {

// The math takes pixels in a row, with height and width as one axis p of OH * OW:
//
//   acc[n, oc, p] or acc[n, p, oc] = sum over ic of data[n, ic, p] * weight[oc, ic]
//   out[n, oc, p] = act(acc + bias[oc] + residual[n, oc, p])
//
// Arguments equal those of Workload::compute() byte for byte, with fewer dimensions: [N, C, P]; [N, P, C] of
// NHWC; [N, C/block, P, block] of a blocked layout. A stride first picks the pixels into the stage "picked",
// which then replaces data. With `wide_weight` the stage "wide" has the weights in the type of the sums, and
// replaces them.
Program pixels_math(const Conv2dWorkload& w, bool channels_innermost, bool wide_weight = false);

// Accepts 1x1 convolutions on a CPU.
Support supports_1x1(const Conv2dWorkload& w, const Target& t);

inline bool picks_pixels(const Conv2dWorkload& w) { return w.stride != std::array<int64_t, 2>{1, 1}; }

// The loops of a stage of such pixels, of out or of picked. `in_block`: only of blocked layouts.
struct PixelAxes {
  Axis n, c, p, in_block;
};
PixelAxes pixel_axes(Schedule& s, const Tensor& pixels, std::string_view layout);

// Schedules the stage "picked", if there is one: rows of pixels by vectors (of channels where these lie
// side by side). Returns the tensor that acc reads: picked or data.
Tensor pick_pixels(Schedule& s, const Conv2dWorkload& w, const Target& t);

}  // namespace tuner
