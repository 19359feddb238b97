// Shared by templates of images on CPUs: the loops of an image, whatever its layout.
#pragma once

#include <string_view>

#include "compiler_core/schedule/schedule.h"

namespace tuner::cpu {

// `in_block`: over the channels of a block; only of blocked layouts.
struct ImageAxes {
  Axis n, c, h, w, in_block;
};
// Returns the loops of a stage of an image, or of sums in its order. Requires that none is split yet.
ImageAxes image_axes(Schedule& s, const Tensor& image, std::string_view layout);

}  // namespace tuner::cpu
