#include "templates/workload/needed_work.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"

namespace tuner {
namespace {

// Pairs of an output and a tap along one axis that meet inside the image.
int64_t pairs_inside(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                     int64_t before) {
  int64_t pairs = 0;
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const int64_t at = tap * dilation - before;  // where output 0 has this tap
    const int64_t first = std::max<int64_t>(0, ceil_div(-at, stride));
    const int64_t end = std::min(out, floor_quotient(in - 1 - at, stride) + 1);
    pairs += std::max<int64_t>(0, end - first);
  }
  return pairs;
}

}  // namespace

int64_t needed_flops(const Workload& workload) {
  const auto* w = workload.get_if<Conv2dWorkload>();
  if (w == nullptr) return workload.flops();
  const int64_t rows = pairs_inside(w->in_height, w->out_height(), w->kernel_height, w->stride[0],
                                    w->dilation[0], w->padding[0]),
                columns = pairs_inside(w->in_width, w->out_width(), w->kernel_width, w->stride[1],
                                       w->dilation[1], w->padding[1]);
  return 2 * w->batch * w->out_channels * (w->in_channels / w->groups) * rows * columns;
}

}  // namespace tuner
