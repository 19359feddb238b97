#include "compiler_core/graph/operators/window.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner::graph {

int64_t padding_before(const std::string& auto_pad, int64_t all) {
  return auto_pad == "SAME_LOWER" ? all - all / 2 : all / 2;
}

Result<Window> window_of(const Use& use, const Shape& image, const Shape& kernel) {
  if (image.size() < 3)
    return invalid_argument("needs an image [N, C, D1, ...], got ", image.size(), " dimensions");
  const size_t rank = image.size() - 2;
  const Shape ones(rank, 1);
  Window w{.kernel = use.integers("kernel_shape", kernel),
           .strides = use.integers("strides", ones),
           .dilations = use.integers("dilations", ones)};
  Shape pads = use.integers("pads", Shape(2 * rank, 0));
  if (w.kernel.size() != rank || w.strides.size() != rank || w.dilations.size() != rank ||
      pads.size() != 2 * rank)
    return invalid_argument("kernel_shape, strides, dilations or pads do not have ", rank, " dimensions");
  const std::string auto_pad = use.word("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID")
    return invalid_argument("auto_pad \"", auto_pad, "\" is unknown");
  if (auto_pad == "VALID") pads.assign(2 * rank, 0);
  const bool up = use.integer("ceil_mode", 0) != 0;
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kMost = int64_t{1} << 20;
    for (const int64_t x : {w.kernel[d], w.strides[d], w.dilations[d]})
      if (x < 1 || x > kMost) return invalid_argument("kernel_shape, strides or dilations hold ", x);
    const int64_t extent = image[d + 2], span = (w.kernel[d] - 1) * w.dilations[d] + 1;
    int64_t before = pads[d], behind = pads[d + rank];
    if (same) {
      const int64_t all =
          std::max<int64_t>(0, (ceil_div(extent, w.strides[d]) - 1) * w.strides[d] + span - extent);
      before = padding_before(auto_pad, all);
      behind = all - before;
    }
    if (before < 0 || behind < 0 || before > kMost || behind > kMost)
      return invalid_argument("pads hold a negative or huge number");
    const int64_t room = extent + before + behind - span;
    if (room < 0)
      return invalid_argument("a window of ", span, " in dimension ", d, " of ", extent + before + behind);
    int64_t result = (up ? ceil_div(room, w.strides[d]) : room / w.strides[d]) + 1;
    // A window that begins behind the image and its padding before is none.
    if (up && (result - 1) * w.strides[d] >= extent + before) --result;
    w.before.push_back(before);
    w.behind.push_back(behind);
    w.result.push_back(result);
  }
  return w;
}

}  // namespace tuner::graph
