// Shared by templates of images on CPUs: the loops of an image, whatever its layout.
#pragma once

#include <string_view>

#include "compiler_core/schedule/schedule.h"
#include "templates/schedule_template.h"

namespace tuner::cpu {

// `in_block`: over the channels of a block; only of blocked layouts.
struct ImageAxes {
  Axis n, c, h, w, in_block;
};
// Returns the loops of a stage of an image, or of sums in its order. Requires that none is split yet.
ImageAxes image_axes(Schedule& s, const Tensor& image, std::string_view layout);

// What poolings have in common: float32, or maxima of bytes of windows in NCHW or NHWC.
Support supports_pooling(const Target& t, const Pool2dWorkload& w);
// Returns how many channels of a pixel in NHWC are a vector.
int64_t channels_of_vector(const Target& t, const Pool2dWorkload& w);
// Returns how many pixels of a row are a vector: of bytes not many more than a row has.
int64_t pixels_of_vector(const Target& t, const Pool2dWorkload& w);
// True for one window an image of contiguous pixels.
bool pools_whole_images(const Pool2dWorkload& w);

}  // namespace tuner::cpu
