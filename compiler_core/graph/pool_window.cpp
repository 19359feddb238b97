#include "compiler_core/graph/pool_window.h"

#include "compiler_core/base/int_math.h"

namespace tuner::graph {
namespace {

constexpr char kWhy[] = ": a window would have no element of the image";

bool meets_image(const PoolWindow& w, int64_t window) {
  const int64_t start = window * w.stride - w.before;
  const int64_t first =
      start >= 0 ? 0 : ceil_div(-start, w.dilation);  // element that is not before the image
  return first < w.kernel && start + first * w.dilation < w.extent;
}

}  // namespace

Status check_pool_window(const PoolWindow& w, const PoolWindowNames& names) {
  const int64_t span = (w.kernel - 1) * w.dilation + 1;
  const std::string of = w.dilation == 1
                             ? str(w.kernel, " ", names.unit, " of the kernel")
                             : str(span, " ", names.unit, " that the kernel spans at dilation ", w.dilation);
  if (w.before >= span)
    return invalid_argument(names.before, ": expected less than the ", of, ", found ", w.before, kWhy);
  if (w.behind >= span)
    return invalid_argument(names.behind, ": expected less than the ", of, ", found ", w.behind, kWhy);
  // Only windows that begin in the padding can miss it.
  for (int64_t o = 0; o < w.windows && o * w.stride < w.before; ++o)
    if (!meets_image(w, o))
      return invalid_argument(names.before, ": found ", w.before, " beside ", w.extent, " ", names.unit,
                              " of the image", kWhy);
  if (!meets_image(w, w.windows - 1))
    return invalid_argument(names.behind, ": found ", w.behind, " beside ", w.extent, " ", names.unit,
                            " of the image", kWhy);
  return Status::ok();
}

}  // namespace tuner::graph
