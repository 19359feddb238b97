#include "templates/cpu/cpu_images.h"

#include "templates/workload/parts/image.h"

namespace tuner::cpu {

ImageAxes image_axes(Schedule& s, const Tensor& image, std::string_view layout) {
  if (is_channels_last(layout)) {
    const auto [n, h, w, c] = s.axes<4>(image);
    return {n, c, h, w, {}};
  }
  if (is_planar(layout)) {
    const auto [n, c, h, w] = s.axes<4>(image);
    return {n, c, h, w, {}};
  }
  const auto [n, c, h, w, in_block] = s.axes<5>(image);
  return {n, c, h, w, in_block};
}

}  // namespace tuner::cpu
