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

bool pools_whole_images(const Pool2dWorkload& w) {
  return is_planar(w.layout) && w.out_height() == 1 && w.out_width() == 1 && w.kernel_height == w.in_height &&
         w.kernel_width == w.in_width;
}

Support supports_pooling(const Target& t, const Pool2dWorkload& w) {
  if (!t.is_cpu()) return needs_target("a CPU", t);
  if (w.dtype == DType::kFloat32) return supported();
  const bool is_byte = w.dtype == DType::kUInt8 || w.dtype == DType::kInt8;
  const bool is_plain = channel_block(w.layout) == 1;
  if (is_byte && w.pooling == Pooling::kMax && is_plain && !pools_whole_images(w)) return supported();
  return declined("needs float32, or maxima of bytes by windows in NCHW or NHWC, got ", w.dtype, " in ",
                  w.layout);
}

int64_t channels_of_vector(const Target& t, const Pool2dWorkload& w) {
  return t.f32_lanes() * dtype_bytes(DType::kFloat32) / dtype_bytes(w.dtype);
}

int64_t pixels_of_vector(const Target& t, const Pool2dWorkload& w) {
  const int64_t lanes = t.f32_lanes();
  if (dtype_bytes(w.dtype) != 1) return lanes;
  int64_t pixels = lanes;
  while (pixels < 4 * lanes && pixels < w.out_width()) pixels *= 2;
  return pixels;
}

}  // namespace tuner::cpu
